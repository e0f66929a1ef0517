"""The daemon: start it, stop it, show its status and its log."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import BinaryIO

import click

from windlass.cli.arguments import command, daemon_and_json, examples
from windlass.cli.connection import launch
from windlass.cli.connection.client import Client, NotRunning, inside_a_run
from windlass.cli.connection.http import Gone, sleep_while_read
from windlass.cli.output import block, page, say, say_json, waiting_note
from windlass.core.display import age
from windlass.core.errors import NotFound, TimedOut

_ANSWERS_WITHIN = 5.0
"""Seconds after which a daemon that was asked something easy counts as frozen."""
_LEAVES_WITHIN = 30.0
_LOOK_SECONDS = 0.2


@click.group("daemon", epilog=examples("windlass daemon status\nwindlass daemon logs -f"))
def daemon_command() -> None:
    """The background process. Commands start it when they need it; agents outlive it."""


@command(
    "start", "windlass daemon start\nwindlass daemon start --foreground     for a service manager", group=daemon_command
)
@click.option("--foreground", is_flag=True, help="Stay in this terminal, and never leave by itself.")
@click.pass_obj
def start_command(daemon: Client, foreground: bool) -> None:
    """Start it, unless it runs."""
    if foreground:
        launch.replace_us(daemon.home)
    try:
        status = daemon.only_if_running().get("status")
        say(f"Already running, pid {status['pid']}.")
    except NotRunning:
        status = daemon.get("status")
        say(f"Started, pid {status['pid']}, home {status['home']}.")


@command(
    "stop", "windlass daemon stop\nwindlass daemon stop --force     also if it answers nobody", group=daemon_command
)
@click.option("--force", is_flag=True, help="Kill it if it has not left after 5 s.")
@click.pass_obj
def stop_command(daemon: Client, force: bool) -> None:
    """Stop it. Agents go on working; the next command starts it again and it finds them."""
    running, status = daemon.only_if_running(patience=_ANSWERS_WITHIN), {}
    with launch.listener(daemon.home) as found:
        try:
            status = running.get("status")
            running.post("shutdown")
        except NotRunning:
            say("It was not running.")
            return
        except Gone:
            pass  # it left before it had answered
        except TimedOut:
            if not found.pid or inside_a_run():
                raise
            found.signal(signal.SIGTERM, signal.SIGCONT)  # one that was stopped goes on, and leaves in order
        try:
            _wait_until_gone(found, _ANSWERS_WITHIN if force else _LEAVES_WITHIN)
        except TimedOut:
            if not force:
                raise
            found.signal(signal.SIGKILL)
            _wait_until_gone(found, _LEAVES_WITHIN)
        agents = f" {status['agents']} agents go on working." if status.get("agents") else ""
        say(f"Stopped, pid {found.pid or status.get('pid', 0)}.{agents}")


def _wait_until_gone(found: launch.ListeningProcess, within: float) -> None:
    began, note = time.monotonic(), waiting_note("Waiting for the daemon to leave,")
    while not found.has_ended(_LOOK_SECONDS):
        waited = time.monotonic() - began
        if waited > within:
            raise TimedOut(
                f"The daemon, pid {found.pid}, is still finishing something.",
                hint="Run `windlass daemon logs`; `windlass daemon stop --force` does not wait for it.",
            )
        note(waited)
    note(0.0)


@command("status", "windlass daemon status\nwindlass daemon status --json", group=daemon_command)
@daemon_and_json
def status_command(daemon: Client, as_json: bool) -> None:
    """Show whether it runs; exit 6 if not, 7 if it does not answer. Never starts it."""
    status = daemon.only_if_running(patience=_ANSWERS_WITHIN).get("status")
    if as_json:
        say_json(status)
        return
    troubles = status.get("troubles") or ()
    say(f"Running, pid {status['pid']}.")
    facts = (
        ("Version", status["version"]),
        ("Up", age(status["uptime_seconds"])),
        ("Home", status["home"]),
        ("Agents", status["agents"]),
        *(("Trouble", f"{trouble['tick']}: {trouble['message']} ({trouble['times']} times)") for trouble in troubles),
    )
    say("\n".join(page(facts)))


@command("logs", "windlass daemon logs\nwindlass daemon logs -f -n 20", group=daemon_command)
@click.option("-f", "--follow", is_flag=True, help="Go on as it writes.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="How many, from the end."
)
@click.pass_obj
def logs_command(daemon: Client, follow: bool, lines: int) -> None:
    """Show what it wrote to its log. Needs no daemon."""
    log = Path(daemon.home, "daemon.log")
    try:
        with log.open("rb") as file:
            for line in deque(file, maxlen=lines):
                _say_line(line)
            if follow:
                _follow(log, file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"There is no log yet: {log}.", hint="It begins when the daemon starts.") from error


def _follow(log: Path, file: BinaryIO) -> None:
    """Print new lines for ever; read a log that was cut or replaced from its beginning."""
    while True:
        while line := file.readline():
            _say_line(line)
        if _was_replaced(log, file):
            file = log.open("rb")
        sleep_while_read(_LOOK_SECONDS)


def _was_replaced(log: Path, file: BinaryIO) -> bool:
    try:
        found = log.stat()
    except FileNotFoundError:
        return False
    return found.st_ino != os.fstat(file.fileno()).st_ino or found.st_size < file.tell()


def _say_line(line: bytes) -> None:
    if sys.stdout:
        say(block(line.decode("utf-8", "replace").rstrip("\n")))

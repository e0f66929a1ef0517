"""Shared by commands that talk: sending once, waiting across restarts, and showing messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from windlass.cli.commands.watch import RETRY_SECONDS, when_back
from windlass.cli.connection.client import Client, NotRunning, OutOfReach, inside_a_run, repository
from windlass.cli.connection.http import Gone, sleep_while_read
from windlass.cli.output import Row, block, bold, dim, one_line, say, say_answer, say_json, tell
from windlass.core.errors import NotFound, TimedOut, Unavailable

LONGEST_SHOWN = 4000
"""Characters of a message that are shown without --full."""
AWAY = 60.0
"""Seconds that a command inside a run waits for a daemon that is away."""
UNSEEN = "nothing was looked at"
SLICE = 20.0
"""Seconds that one request waits at most, so that a restarted daemon is asked soon."""


def place() -> str | None:
    """The repository of the current folder; None inside a run, where the daemon knows the project."""
    return None if inside_a_run() else repository()


def project_place() -> str | None:
    """The same, for commands that need a project. Raises NotFound outside every repository."""
    found = place()
    if found is None and not inside_a_run():
        raise NotFound("This folder belongs to no project.", hint="Change to one that does, or run `windlass init`.")
    return found


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────


def post(daemon: Client, **message: Any) -> Row | None:
    """Send a message once, even if the daemon restarts meanwhile. None: it waits in chat.md for the daemon."""
    keyed = bool(message.get("key"))
    _identify(message)

    def send(client: Client) -> Row:
        sent: Row = _post_and_tell_hint(client, "messages", message)["message"]
        return sent

    fits_chat_line = message.get("to") and not any(map(message.get, ("all", "handoff", "reply_to", "channel")))
    if inside_a_run() and not keyed and fits_chat_line:  # chat.md has no keys: a message could arrive twice
        try:
            return send(daemon.only_if_running())
        except (NotRunning, OutOfReach):
            if _append_to_chat(message):
                return None
        except Gone:  # nobody knows whether it arrived; with its key it can be sent again
            return _repeat(partial(send, daemon.only_if_running()))
    return retried(daemon, send, "it was NOT sent")


def begin(daemon: Client, **question: Any) -> Row:
    """Begin a conversation once, even if the daemon restarts meanwhile."""
    _identify(question)
    return retried(daemon, lambda client: _post_and_tell_hint(client, "conversations", question), "it was NOT asked")


def _identify(request: dict[str, Any]) -> None:
    """Add a key, by which the daemon knows a repeated request, and the project's folder."""
    request["key"] = request.get("key") or os.urandom(10).hex()
    request["path"] = place()


def _post_and_tell_hint(daemon: Client, path: str, body: Row) -> Row:
    answer: Row = daemon.post(path, **body)
    if answer.get("hint"):
        tell(one_line(answer["hint"]))
    return answer


def retried(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Make a request that may be repeated: if the daemon leaves before it answers, ask the next one."""
    try:
        return reach(daemon, ask, lost)
    except Gone:
        return _repeat(partial(ask, daemon.only_if_running() if inside_a_run() else daemon))


def unrepeated(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Make a request that must not be repeated. Raises Unavailable if the daemon leaves before it answers."""
    try:
        return reach(daemon, ask, lost)
    except Gone as error:
        raise Unavailable(
            "The daemon went away, and it is not known whether it has done that.",
            hint="Look when it is back, before you do it again.",
        ) from error


def reach(daemon: Client, ask: Callable[[Client], Row], lost: str) -> Row:
    """Make a request. Inside a run, wait for a daemon that is away; `lost` says what did not happen without it."""
    if not inside_a_run():
        return ask(daemon)
    client, deadline, told = daemon.only_if_running(), time.monotonic() + AWAY, False
    while True:
        try:
            return ask(client)
        except NotRunning as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The daemon is away, and was not back in {AWAY:.0f} s: {lost}.",
                    hint="Go on working, and do it again later.",
                ) from error
            if not told:
                tell(f"windlass: the daemon is away; waiting for it, at most {AWAY:.0f} s.")
            told = True
            sleep_while_read(RETRY_SECONDS)


def _repeat(ask: Callable[[], Row]) -> Row:
    """Ask until a daemon answers, at most for one slice of waiting."""
    deadline = time.monotonic() + SLICE

    def once() -> Row:
        try:
            return ask()
        except (NotRunning, Gone) as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    "The daemon went away, and it is not known whether it has heard that.",
                    hint="Look with `windlass peek` when it is back, before you say it again.",
                ) from error
            raise

    return when_back(once)


def _append_to_chat(message: Row) -> bool:
    """Write a message into our worktree's chat.md, for the daemon to read when it is back; False if that fails."""
    me, signal = os.environ.get("WINDLASS_AGENT"), os.environ.get("WINDLASS_SIGNAL")
    if not (me and signal):
        return False
    from windlass.core.messages.chat_line import write_line  # noqa: PLC0415

    file = Path(signal).parent.parent / "chat.md"
    line = "\n" + write_line(me, message["to"], message["body"])
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "wb") as chat:  # only if it exists
            chat.write(line.encode("utf-8", "replace"))
    except OSError:
        return False
    return True


def say_sent(sent: Row | None, as_json: bool) -> None:
    """Show who gets a message, and what will happen with each of them."""
    if sent is None:
        left = "Left in chat.md: the daemon, which is away, sends it when it is back, or tells you why not."
        say_answer({"status": "left"}, left, as_json=as_json)
    elif as_json:
        say_json(sent)
    else:
        readers = sent["readers"]
        names = ", ".join(one_line(reader["name"]) for reader in readers)
        whom = f" to {names}" if names else "; nobody is addressed, so nobody is woken"
        say(f"{bold(sent['id'])} in {one_line(sent['channel'])}{whom}")
        room = max((len(reader["name"]) for reader in readers), default=0)
        for reader in readers:
            say(f"  {one_line(reader['name']).ljust(room)}  {one_line(reader['outlook'])}")


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────


def wait_for(
    ask: Callable[[Client, float], Any], daemon: Client, seconds: float | None, what: str, *, hint: str
) -> Any:
    """Ask in slices of time until there is an answer, also across restarts. Raises TimedOut."""
    deadline = None if seconds is None else time.monotonic() + seconds

    def once(client: Client) -> Any:
        left = SLICE if deadline is None else min(SLICE, deadline - time.monotonic())
        if left <= 0:
            raise TimedOut(f"{what} in {seconds:g} s.", hint=hint)
        return ask(client, left)

    first = Client(daemon.home, start=None if inside_a_run() else daemon.start, waiting=lambda _seconds: None)
    answer = None
    with suppress(Gone, NotRunning):
        answer = once(first)
    while not answer:
        answer = when_back(partial(once, first.going_on()))
    return answer


# ── showing ──────────────────────────────────────────────────────────────────────────────────────────────────


def say_messages(items: Sequence[Row], none: str, *, full: bool = True) -> None:
    """Show messages. Unless `full`, cut very long ones, and say how to see the rest."""
    for item in items:
        text = item["message"]
        say(_headline(item))
        say(block(text if full else text[:LONGEST_SHOWN], "  "))
        if not full and len(text) > LONGEST_SHOWN:
            more = f"{click.get_current_context().command_path} --full"
            say(dim(f"  … {len(text) - LONGEST_SHOWN} characters more: `{more}` shows them."))
    if not items:
        say(none)


def _headline(message: Row) -> str:
    to = ", ".join(map(one_line, message["to"]))
    claims = f" (says that it is {one_line(message['claims'])})" if message.get("claims") else ""
    about = [one_line(message["channel"])]
    about += [message["kind"]] if message["kind"] != "say" else []
    about += [f"in reply to {message['reply_to']}"] if message.get("reply_to") else []
    about += ["direct"] if message.get("direct") else []
    if message.get("receipt"):
        about += [": ".join(filter(None, (message["receipt"], one_line(message.get("reason")))))]
    about += [f"of {one_line(message['project'])}"] if message.get("project") and not message.get("here") else []
    at = time.strftime("%H:%M:%S", time.localtime(message["time"]))
    head = f"{bold(message['id'])}  {at}  {bold(one_line(message['from']))}{claims}" + (f" → {to}" if to else "")
    return f"{head}  {dim('(' + ', '.join(about) + ')')}"

"""Demo: run five scripted agents in a throw-away repository, offline and free."""

from __future__ import annotations

import json
import os
import time
from typing import Any, NamedTuple

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.connection.client import Client
from windlass.cli.demo.place import DemoPlace, throwaway
from windlass.cli.demo.repository import Repository, check_command, require_git
from windlass.cli.demo.story import STORIES, Storyline
from windlass.cli.demo.view import StepLines, chosen_view, say_kept, say_next, say_result
from windlass.cli.output import Row, say_json, waiting_note
from windlass.core.errors import TimedOut, Unavailable, WindlassError
from windlass.library import demo as texts

_PATIENCE = 120.0
"""Seconds after which something must be wrong, also on a slow machine."""

_NEEDED = ("WINDLASS_DEBUG",)
"""Shows where we fail."""


class DemoResult(NamedTuple):
    """The receipts, the state of each task, and whether git agrees with them."""

    receipts: list[Row]
    storyline: Storyline
    main: str
    green: bool
    seconds: float


@command(
    "demo", "windlass demo\nwindlass demo --keep       look around afterwards, and undo something\nwindlass demo --json"
)
@click.option("--keep", is_flag=True, help="Keep the folder, and say how to go on in it.")
@json_option
def demo_command(keep: bool, as_json: bool) -> None:
    """See five scripted agents work on a throw-away repository at once: offline, free, and gone afterwards."""
    for name in [*os.environ]:  # settings of the surrounding repository must not reach into the demo
        if name.startswith(("GIT_", "WINDLASS_")) and name not in _NEEDED:
            del os.environ[name]
    require_git()
    view = chosen_view(as_json=as_json)
    with throwaway(keep=keep) as place:
        outcome = _perform(place, view)
        if outcome.green and not as_json:
            say_result(outcome.receipts, outcome.storyline, outcome.seconds)
    _say_end(outcome, place, keep=keep, as_json=as_json)


def _perform(place: DemoPlace, view: StepLines) -> DemoResult:
    """Make the repository, let all agents work, and compare main with the receipts."""
    began = time.monotonic()
    check = check_command()
    view.begin(check)
    repository = Repository(place.repo)
    tests = repository.begin_check(check)
    daemon = place.client(waiting_note("Starting the daemon,"))
    daemon.post("projects", path=str(place.repo), checks_command=check, write=True)
    repository.expect_passed(tests)
    storyline = Storyline(tell=view.tell, sign=place.put_sign)
    try:
        for story in STORIES:
            options = {"script": texts.script(story.name), "script_name": f"{story.name}.yaml"}
            added = daemon.post("tasks", path=str(place.repo), title=story.title, provider="scripted", options=options)
            storyline.add(story, added["task"]["id"], added["agent"])
        view.watch(storyline)
        _follow(daemon, storyline)
    finally:
        view.end()
    storyline.judge()
    receipts = [daemon.get("changes", change, "receipt") for change in storyline.landed]
    main, green = repository.compare(receipts)
    return DemoResult(receipts, storyline, main, green, time.monotonic() - began)


def _follow(daemon: Client, storyline: Storyline) -> None:
    """Read events until all changes have landed."""
    deadline = time.monotonic() + _PATIENCE
    try:
        for line in daemon.lines("events", since=0, deadline=deadline):
            if line.startswith(b"data: "):
                storyline.follow(json.loads(line[6:]))
            if storyline.finished:
                return
    except TimedOut as error:
        missing = ", ".join(part.agent for part in storyline.parts.values() if part.ended is None)
        raise TimedOut(f"The demo did not end within {_PATIENCE:.0f} s: {missing} did not land.") from error
    raise WindlassError("The daemon left before the demo had ended.", hint="Run `windlass demo --keep` to see its log.")


def _say_end(outcome: DemoResult, place: DemoPlace, *, keep: bool, as_json: bool) -> None:
    if as_json:
        say_json(_plain(outcome, str(place.folder) if keep else None))
    elif keep:
        say_kept(place, outcome.receipts)
    elif place.clean:
        say_next()
    if not outcome.green:
        raise WindlassError("Main was at a commit that no check had passed.")
    if not place.clean:
        raise Unavailable("Something of the demo is left behind.")


def _plain(outcome: DemoResult, kept: str | None) -> dict[str, Any]:
    parts = outcome.storyline.parts.values()
    return {
        "landed": outcome.receipts,
        "returned": [
            {"change": part.change, "agent": part.agent, "reason": reason} for part in parts for reason in part.told
        ],
        "main": outcome.main,
        "green": outcome.green,
        "seconds": round(outcome.seconds, 3),
        "kept": kept,
    }

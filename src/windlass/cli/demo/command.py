"""Demo: the whole of it in a throw-away repository, offline and free."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.connection.client import Client
from windlass.cli.demo.place import DemoPlace, throwaway
from windlass.cli.demo.repository import Repository, check_command, git_is_there
from windlass.cli.demo.story import STORIES, Storyline
from windlass.cli.demo.view import StepLines, chosen_view, say_kept, say_next, say_result
from windlass.cli.output import Row, say_json, waiting_note
from windlass.core.errors import TimedOut, Unavailable, WindlassError
from windlass.library import demo as texts

_PATIENCE = 120.0
"""Seconds after which something must be wrong, also on a slow machine."""

_FOREIGN = ("GIT_", "WINDLASS_")
_NEEDED = ("WINDLASS_DEBUG", "WINDLASS_MARKER")
"""The first shows where we fail; by the second, who runs the demo inside a run can end all of it."""


class DemoResult(NamedTuple):
    """What it came to."""

    receipts: list[Row]
    board: Storyline
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
    _forget_surroundings()
    git_is_there()
    view = chosen_view(as_json=as_json)
    with throwaway(keep=keep) as place:
        outcome = _perform(place, view)
        if outcome.green and not as_json:
            say_result(outcome.receipts, outcome.board, outcome.seconds)
    _say_end(outcome, place, keep=keep, as_json=as_json)


def _forget_surroundings() -> None:
    """The repository and the settings that the demo is started in must not reach into it."""
    for name in [each for each in os.environ if each.startswith(_FOREIGN) and each not in _NEEDED]:
        del os.environ[name]


def _perform(place: DemoPlace, view: StepLines) -> DemoResult:
    """Make the repository, let everyone work, and look whether main is what the receipts say."""
    began = time.monotonic()
    check = check_command()
    view.begin(check)
    repository = Repository(place.repo)
    tests = repository.begin_check(check)
    daemon = place.client(waiting_note("Starting the daemon,"))
    daemon.post("projects", path=str(place.repo), checks_command=check, write=True)
    repository.expect_passed(tests)
    board = Storyline(tell=view.tell, sign=place.put_sign)
    try:
        _begin(daemon, place, board)
        view.watch(board)
        _follow(daemon, board)
    finally:
        view.end()
    board.judge()
    receipts = [daemon.get("changes", each, "receipt") for each in board.landed]
    main, green = repository.compare(receipts)
    return DemoResult(receipts, board, main, green, time.monotonic() - began)


def _begin(daemon: Client, place: DemoPlace, board: Storyline) -> None:
    """Give all the work out."""
    for story in STORIES:
        options = {"script": texts.script(story.name), "script_name": f"{story.name}.yaml"}
        added = daemon.post("tasks", path=str(place.repo), title=story.title, provider="scripted", options=options)
        board.add(story, added["task"]["id"], added["agent"])


def _follow(daemon: Client, board: Storyline) -> None:
    """Take every event in until all has landed."""
    import json  # noqa: PLC0415

    deadline = time.monotonic() + _PATIENCE
    try:
        for line in daemon.lines("events", since=0, deadline=deadline):
            if line.startswith(b"data: "):
                board.follow(json.loads(line[6:]))
            if board.finished:
                return
    except TimedOut as error:
        missing = ", ".join(part.agent for part in board.parts.values() if part.ended is None)
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
    parts = outcome.board.parts.values()
    return {
        "landed": outcome.receipts,
        "returned": [
            {"change": part.change, "agent": part.agent, "reason": each} for part in parts for each in part.told
        ],
        "main": outcome.main,
        "green": outcome.green,
        "seconds": round(outcome.seconds, 3),
        "kept": kept,
    }

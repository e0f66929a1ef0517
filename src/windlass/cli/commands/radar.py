"""The radar: show which agents are about to collide, and on which files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import click

from windlass.cli.arguments import command, daemon_and_json, here_option
from windlass.cli.commands.watch import when_back
from windlass.cli.connection.client import Client
from windlass.cli.connection.http import Gone
from windlass.cli.output import Column, Row, bold, count, dim, paint, say, say_items, say_json, say_json_line
from windlass.core.display import age, some

_SEVERITIES = {"conflict": "red", "overlap": "yellow", "declared": "cyan"}

_COLLISIONS = (
    Column("SEVERITY", lambda row: row["severity"], style=lambda text: paint(text, _SEVERITIES.get(text.strip(), ""))),
    Column("AGENTS", lambda row: " and ".join((*row["agents"], *(["main"] if row["with_main"] else []))), style=bold),
    Column("ON", lambda row: some(row["files"] or row["paths"]), gives=True),
    Column("AGE", lambda row: age(row["age_seconds"]), spare=True),
)


@command(
    "radar",
    """
    windlass radar
    windlass radar --watch                     again whenever it changes
    windlass radar --json | jq '.collisions[] | select(.severity == "conflict")'
    windlass work "Tidy the logins" --paths 'src/auth/**' --command CMD     say what a task is to change
    windlass config set radar.act tell         tell both agents of each new conflict; or hold, or show
    """,
)
@click.option("--watch", is_flag=True, help="Print it again whenever it changes; with --json one object a line.")
@here_option
@daemon_and_json
def radar_command(daemon: Client, watch: bool, path: str | None, as_json: bool) -> None:
    """Show which agents are about to collide, and on what, the worst first.

    Every two agents at work are merged as they are now, with what they have not committed; and each with main.

    \b
    conflict   git can't merge them: whoever lands second has to
    overlap    both change the same file, and for now that merges
    declared   only the --paths that they were given overlap

    \b
    --json is {as_of, collisions, agents}. A collision has severity, agents (one, if it is with main),
    with_main, files, paths, sentence, age_seconds (of the older look) and project. An agent that was
    compared has agent, project, files (how many it has changed), paths and age_seconds; files and
    age_seconds are null before the first look.
    """
    if not watch:
        answer = daemon.get("radar", path=path)
        say_json(answer) if as_json else _show(answer)
        return
    for number, answer in enumerate(_answers(daemon, path)):
        if as_json:
            say_json_line(answer)
        else:
            say("" if number else dim("Until you press Ctrl-C:"))
            _show(answer)


def _answers(daemon: Client, path: str | None) -> Iterator[Row]:
    """Yield each answer as it comes. When the daemon goes, wait for the next one and go on."""
    ask = partial(daemon.stream, "radar", "watch", path=path)
    while True:
        with suppress(Gone):
            yield from ask()
        ask = partial(when_back, partial(daemon.going_on().stream, "radar", "watch", path=path))


def _show(answer: Row) -> None:
    say_items({**answer, "items": answer["collisions"]}, _COLLISIONS, "", _summary(answer), as_json=False)


def _summary(answer: Row) -> str:
    """The worst collision, how many agents were compared, and the age of the oldest look."""
    agents = answer["agents"]
    if not agents:
        return "No agent is at work, so nothing can collide."
    ages = [agent["age_seconds"] for agent in agents if agent["age_seconds"] is not None]
    looked = f"; the oldest look is {age(max(ages))} old" if ages else ""
    unseen = f"; {len(agents) - len(ages)} could not be looked at yet" if len(ages) < len(agents) else ""
    found = f"First: {answer['collisions'][0]['sentence']}" if answer["collisions"] else "No collision in sight."
    return f"{found} Compared {count(len(agents), 'agent')}{looked}{unseen}."

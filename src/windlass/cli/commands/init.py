"""Init: make a repository a project."""

from __future__ import annotations

import sys

import click

from windlass.cli.arguments import command, daemon_and_json
from windlass.cli.connection.client import Client, here
from windlass.cli.output import Row, bold, on_terminal, one_line, page, say, say_json
from windlass.core.errors import BadInput


@command(
    "init",
    """
    windlass init                                        asks about the checks it finds
    windlass init --yes                                  takes what it finds
    windlass init --checks "make test" --setup "make deps"
    windlass init --main trunk                           changes land on trunk
    """,
)
@click.option("--yes", is_flag=True, help="Take the check command that is found, without asking.")
@click.option("--checks", metavar="CMD", help="What must pass before a change lands.")
@click.option("--setup", metavar="CMD", help="What prepares a tree for the checks; its result is kept.")
@click.option("--main", metavar="BRANCH", help="Where changes land. Default: the repository's own.")
@daemon_and_json
def init_command(
    daemon: Client, /, *, yes: bool, checks: str | None, setup: str | None, main: str | None, as_json: bool
) -> None:
    """Make this repository a project: find or ask what must pass before a change lands, and write it down."""
    known = daemon.get("projects", "checks", path=here())
    command, preparation = _chosen(known, checks, setup, yes=yes)
    project = daemon.post(
        "projects", path=here(), main=main, checks_command=command, checks_setup=preparation, write=True
    )
    in_force = {"command": command or known["command"], "setup": preparation or known["setup"]}
    say_json({**project, "checks": in_force}) if as_json else _say_made(project, in_force)


def _chosen(known: Row, checks: str | None, setup: str | None, *, yes: bool) -> tuple[str | None, str | None]:
    """The check and setup commands to write; None leaves the setting as it is."""
    if checks is not None or known["command"]:
        return checks, setup
    guess = known.get("guess") or {}
    if yes:
        return guess.get("command") or None, setup or guess.get("setup") or None
    if not (on_terminal(sys.stdin) and on_terminal(sys.stdout)):
        found = f"--yes takes `{guess['command']}`" if guess.get("command") else "--yes goes on without"
        raise BadInput("There is no terminal to ask about the checks.", hint=f"Add --checks CMD; {found}.")
    return _asked(guess, setup)


def _asked(guess: Row, setup: str | None) -> tuple[str | None, str | None]:
    found = guess.get("command") or ""
    if found:
        say(f"Found: {bold(one_line(found))} ({one_line(guess.get('because') or 'it looks right')})")
    else:
        say("Found no command that checks this repository.")
    question = "What must pass before a change lands (- for nothing yet)"
    command = click.prompt(question, default=found or "-", show_default=True).strip()
    if command == "-":
        return None, setup
    return command, setup or (guess.get("setup") or None if command == found else None)


def _say_made(project: Row, checks: Row) -> None:
    say(f"{bold(one_line(project['name']))} is a project.")
    facts = (("Main", project["main"]), ("Checks", checks["command"]), ("Setup", checks["setup"]))
    say("\n".join(page((*facts, ("Wrote", project["config"])))))
    if not checks["command"]:
        say("There is no check command yet: changes are held, not landed, until there is one.")
        say('  windlass config set checks.command "make test"')
    say("Commit .windlass/ if others who work on this repository should have the same settings.")
    say('  windlass work "Fix the login race" --command CMD    give an agent something to do')

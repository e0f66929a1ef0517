"""Agent files: show the agents that a repository defines, and the problems in their files."""

from __future__ import annotations

import click

from windlass.cli.arguments import command, json_option
from windlass.cli.connection.client import here
from windlass.cli.output import Column, Row, bold, say, say_json, say_problem, table
from windlass.core.files.problems import FileProblem

_DEFINITIONS = (
    Column("NAME", lambda row: row["name"], style=bold),
    Column("ROLE", lambda row: row["role"], gives=True),
    Column("PROVIDER", lambda row: row["provider"] or "as set", spare=True),
    Column("MODEL", lambda row: row["model"], spare=True),
    Column("STAYS", lambda row: "persistent" if row["persistent"] else "", spare=True),
    Column("MAY", lambda row: row["permissions"], spare=True),
    Column("FILE", lambda row: row["file"], gives=True),
)


@command(
    "agents",
    """
    windlass agents                  who is defined in this repository
    windlass agents --check          exit 1 if a file has an error, for your own checks
    windlass agents --json
    windlass work "Fix it" --agent coder
    """,
)
@click.option("--check", is_flag=True, help="Exit 1 if there is an error in any file.")
@json_option
@click.pass_context
def agents_command(ctx: click.Context, /, *, check: bool, as_json: bool) -> None:
    """Show the agents that this repository defines, and what is wrong with their files, by line."""
    found = ctx.obj.get("projects", "agents", path=here())
    say_json(found) if as_json else _say(found)
    if check and any(problem["gravity"] == "error" for problem in found["problems"]):
        ctx.exit(1)


def _say(found: Row) -> None:
    if found["agents"]:
        say("\n".join(table(_DEFINITIONS, found["agents"])))
    elif not found["problems"]:
        say("No agent is defined here. Write a file such as .windlass/agents/coder.md:")
        say("\n  ---\n  name: coder\n  role: Senior developer\n  ---\n  Write clean, well-tested code.\n")
        say('Then: windlass work "Fix the login race" --agent coder')
    for problem in found["problems"]:
        say_problem(FileProblem(**problem))

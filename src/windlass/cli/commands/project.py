"""Projects: show how each stands, and forget one."""

from __future__ import annotations

import posixpath
import sys

import click

from windlass.cli.arguments import WORD, command, daemon_and_json, examples, json_option
from windlass.cli.connection.client import Client, here
from windlass.cli.output import Column, Row, ago, bold, on_terminal, one_line, paint_state, say, say_answer, say_items

_EXAMPLES = "windlass project list\nwindlass project forget shop"

_PROJECTS = (
    Column("PROJECT", lambda row: row["name"], style=bold),
    Column("STATE", lambda row: row["state"], style=paint_state),
    Column("SINCE", lambda row: f"{ago(row['since'])} ago" if row["since"] else "", spare=True),
    Column("AGENTS", lambda row: row["agents"], spare=True),
    Column("CHANGES", lambda row: row["changes"], spare=True),
    Column("FOLDER", lambda row: row["path"], gives=True),
    Column("REASON", lambda row: row["reason"], gives=True),
)

WHAT_HAPPENS = """What its agents have not landed is saved in the hub first; `windlass rescue` brings it back.
Its changes are given up, its agents retired, and it is not shown any more. Your repository is not touched."""

DELETES = "Then the hub is DELETED, with every commit that is only there: nothing of it can be brought back."


@click.group("project", epilog=examples(_EXAMPLES))
def project_command() -> None:
    """Show the projects, and forget one whose repository is gone or that you do not need here any more."""


@command(
    "list",
    """
    windlass project list
    windlass project list --all      forgotten ones, too
    windlass project list --json
    """,
    group=project_command,
)
@click.option("--all", "everything", is_flag=True, help="Forgotten projects, too.")
@daemon_and_json
def list_command(daemon: Client, everything: bool, as_json: bool) -> None:
    """Show every project: ready, paused, red, or gone because its repository is not where it was."""
    answer = daemon.get("projects", all=int(everything))
    gone = [item["name"] for item in answer["items"] if item["state"] == "gone"]
    notes = [f"Put it back, or give it up: windlass project forget {one_line(name)}" for name in gone[:1]]
    say_items(answer, _PROJECTS, "There is no project yet: windlass init", *notes, as_json=as_json)


@command(
    "forget",
    """
    windlass project forget shop                 its repository is gone: unlanded work is saved, and it is not shown
    windlass project forget                      the project here; you are asked first
    windlass project forget ~/code/shop --yes    by its folder, without being asked
    windlass project forget shop --delete-hub    saved work is deleted, too
    """,
    group=project_command,
)
@click.argument("project", type=WORD, required=False)
@click.option("--delete-hub", is_flag=True, help="Delete the hub, too, and with it all work that is saved there.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@json_option
@click.pass_context
def forget_command(ctx: click.Context, project: str | None, delete_hub: bool, yes: bool, as_json: bool) -> None:
    """Forget a project, by its name, folder or id.

    What its agents have not landed is saved in the hub first, under refs that are printed; `windlass rescue` brings it
    back. Its changes are given up and its agents retired. Your repository is not touched, the journal keeps the
    history, and the repository can be added again with `windlass init`. While agents run there, nothing is done.
    """
    place = posixpath.abspath(posixpath.join(here(), project)) if project and "/" in project else None
    sure = yes or _agreed(project, delete_hub=delete_hub)
    named = {"project": place or project} if project else {"path": here()}
    done = ctx.obj.post("projects", "forget", **named, sure=sure, delete_hub=delete_hub)
    say_answer(done, "\n".join(_told(done)), as_json=as_json)


def _agreed(project: str | None, *, delete_hub: bool) -> bool:
    """Ask where there is a terminal. Elsewhere the daemon refuses what must not be done without a word."""
    if not (on_terminal(sys.stdin) and on_terminal(sys.stdout)):
        return False
    say(f"{WHAT_HAPPENS}\n{DELETES}" if delete_hub else WHAT_HAPPENS)
    click.confirm(f"Forget {project or 'the project here'}?", abort=True)
    return True


def _told(done: Row) -> list[str]:
    name = one_line(done["project"]["name"])
    lines = [f"{name} is forgotten." + (" Its hub is deleted." if done["hub_deleted"] else "")]
    lines += [f"Given up: {', '.join(done['changes'])}"] if done["changes"] else []
    lines += [f"Saved     {one_line(each['agent'])}: {each['ref']}" for each in done["rescued"]]
    lines += [f"Kept      {one_line(each['why'])}" for each in done["kept"]]
    if not done["hub_deleted"]:
        lines += ["  windlass rescue list       see what is saved", "  windlass init              add it again, there"]
    return lines

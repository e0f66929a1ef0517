"""Rescue: list, show and restore work that was saved before a removal or a refusal."""

from __future__ import annotations

import posixpath
import sys
from binascii import a2b_base64

import click

from windlass.cli.arguments import (
    SAVED_WORK,
    command,
    daemon_and_json,
    examples,
    here_option,
    json_option,
    page_options,
)
from windlass.cli.commands.receipt import rest
from windlass.cli.connection.client import Client, here
from windlass.cli.output import (
    Column,
    Row,
    ago,
    bold,
    count,
    listed,
    on_terminal,
    one_line,
    page,
    paint_diff,
    say_answer,
    say_items,
    tell,
)
from windlass.core.display import short

saved_argument = click.argument("saved", type=SAVED_WORK, metavar="NUMBER|REF")

_EXAMPLES = "windlass rescue list\nwindlass rescue show swift-otter/1\nwindlass rescue restore swift-otter/1"


_SAVED = (
    Column("NUMBER", lambda row: row["number"]),
    Column("SAVED", lambda row: row["id"], style=bold),
    Column("AGE", lambda row: ago(row["saved_at"]), spare=True),
    Column("COMMITS", lambda row: row["commits"], spare=True),
    Column("FILES", lambda row: listed(row["files"], row["file_count"]) if row["files"] else "none", gives=True),
    Column("WHY", lambda row: row["why"], gives=True, spare=True),
    Column("PROJECT", lambda row: row["project"], spare=True),
)


@click.group("rescue", epilog=examples(_EXAMPLES))
def rescue_command() -> None:
    """Bring back work that was saved before a worktree was removed or a change refused. Nothing is removed here."""


@command(
    "list",
    """
    windlass rescue list
    windlass rescue list --all       what main has, too
    windlass rescue list --json
    windlass rescue list --since 88  the older ones
    """,
    group=rescue_command,
)
@click.option("--all", "everything", is_flag=True, help="Saved work that main has all of, too.")
@click.option("--since", type=click.IntRange(min=1), metavar="N", help="Go on after number N: the older ones.")
@click.option("--limit", type=click.IntRange(1, 200), metavar="N", help="Look at so many, the newest. Default: 200.")
@here_option
@daemon_and_json
def list_command(daemon: Client, everything: bool, path: str | None, as_json: bool, **which: int | None) -> None:
    """Show what is saved and main does not have, the newest first.

    Of each it names ten files at most; file_count of --json is all of them.
    """
    answer = daemon.get("rescue", all=int(everything), path=path, **which)
    notes = [f"Look at one: windlass rescue show {item['id']}" for item in answer["items"][:1]]
    none = "Nothing is saved." if everything else "Main has all that is saved."
    if answer["left_out"]:
        options = f"{' --all' if everything else ''}{' --here' if path else ''} --since {answer['since']}"
        notes += [f"{count(answer['left_out'], 'older one')} not looked at yet: windlass rescue list{options}"]
        none = "Main has all of these."
    say_items(answer, _SAVED, none, *notes, as_json=as_json)
    if as_json and answer["left_out"]:
        tell(notes[-1])  # the list alone does not say that it goes on


@command(
    "show",
    """
    windlass rescue show 3
    windlass rescue show swift-otter/1
    windlass rescue show swift-otter/1 | git apply
    windlass rescue show swift-otter/1 --since 100     more of its files
    """,
    group=rescue_command,
)
@saved_argument
@page_options
@daemon_and_json
def show_command(daemon: Client, saved: str, since: int | None, limit: int | None, as_json: bool) -> None:
    """Show what is in it, as a difference from where its branch left main. In a pipe: exact, for git to apply.

    Its head names 100 files, and --since shows the next ones, without the difference. With --since or --limit it is
    to be read, in a pipe, too.
    """
    readable = as_json or on_terminal(sys.stdout) or since is not None or limit is not None
    item = daemon.get("rescue", "show", ref=saved, exact=None if readable else 1, since=since, limit=limit)
    if readable:
        difference = () if since else ("", paint_diff(item["diff"]) or _no_difference(item))
        text = "\n".join((*_head(item, since or 0), *difference))
        say_answer(item, text, as_json=as_json)
    elif sys.stdout:
        sys.stdout.buffer.write(a2b_base64(item["raw"]))


def _no_difference(item: Row) -> str:
    """Why there is no difference to show. That main has all of it is said only where it has the commits, too."""
    if item["landed"]:
        return "Main has all of it."
    if item["also"]:
        return f"No file differs here, but what is named above does: windlass rescue show {one_line(item['also'][0])}"
    return "No file differs, but main does not have its commits: restore it, and read them with `git log`."


def _head(item: Row, since: int) -> list[str]:
    facts = (
        ("Project", item["project"]),
        ("Commits", item["commits"]),
        ("Files", listed(item["files"], item["file_count"], since)),
        ("More", rest(f"windlass rescue show {item['id']}", item, since)),
        ("Since", f"{short(item['base'])}, where the branch left main"),
        ("Ref", item["ref"]),
        *(("Also", f"{ref}, which is restored by that name") for ref in item["also"]),
        ("Restore", f"windlass rescue restore {item['id']}"),
    )
    return [f"{bold(one_line(item['id']))}  saved {ago(item['saved_at'])} ago: {one_line(item['why'])}", *page(facts)]


@command(
    "restore",
    """
    windlass rescue restore 3                                      as a branch: rescue/swift-otter-1
    windlass rescue restore swift-otter/1 --branch mine            as a branch with that name
    windlass rescue restore swift-otter/1 --to ../swift-otter      as files in a new folder
    """,
    group=rescue_command,
)
@saved_argument
@click.option("--branch", metavar="NAME", help="The new branch in your repository. Default: rescue/AGENT-NUMBER.")
@click.option("--to", "folder", metavar="DIR", help="Write the files into this new folder instead.")
@json_option
@click.pass_context
def restore_command(ctx: click.Context, saved: str, branch: str | None, folder: str | None, as_json: bool) -> None:
    """Bring it back: as a new branch in your repository, or into a new folder. It never overwrites anything."""
    if branch is not None and folder is not None:
        raise click.UsageError("Choose --branch or --to: it goes to one or the other.", ctx)
    for option, value in (("--branch", branch), ("--to", folder)):
        if value is not None and not value.strip():
            raise click.UsageError(f"{option} is empty.", ctx)
    place = posixpath.abspath(posixpath.join(here(), folder)) if folder else None
    made = ctx.obj.post("rescue", "restore", ref=saved, branch=branch, to=place)
    if place:
        text = f"The files of {one_line(saved)} are in {one_line(made['folder'])}."
    else:
        name = one_line(made["branch"])
        text = f"The work of {one_line(saved)} is on branch {name}, at {short(made['commit'])}."
        text += f"\n  git switch {name}      have its files\n  git log -p main..{name}    read it"
    say_answer(made, text, as_json=as_json)

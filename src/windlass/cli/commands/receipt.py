"""Landed changes: show the receipt, and undo one."""

from __future__ import annotations

import click

from windlass.cli.arguments import change_argument, command, daemon_and_json, page_options
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, ago, bold, count, listed, one_line, page, paint_state, say, say_json
from windlass.core.display import short
from windlass.core.errors import WindlassError

_ENDED = ("landed", "closed", "held", "rejected")


@command("receipt", "windlass receipt c3\nwindlass receipt c3 --json\nwindlass receipt c3 --since 100")
@change_argument
@page_options
@daemon_and_json
def receipt_command(daemon: Client, change: str, since: int | None, limit: int | None, as_json: bool) -> None:
    """Show what landed, on which proof, and how to take it back.

    Of very many commits and files it names 100, and --since goes on from there; file_count and commit_count of --json
    are all of them.
    """
    receipt = daemon.get("changes", change, "receipt", since=since, limit=limit)
    say_json(receipt) if as_json else say("\n".join(_lines(receipt, since or 0)))


def _lines(receipt: Row, since: int) -> list[str]:
    """A receipt for people, ending with the command that undoes it."""
    commits, failed = [short(commit) for commit in receipt["commits"]], receipt["failed_before"]
    facts = (
        ("Landed", f"on {receipt['main']}, {ago(receipt['landed_at'])} ago"),
        ("By", ", ".join(filter(None, (receipt["agent"], receipt["task"])))),
        ("Main", f"{short(receipt['before'])} → {short(receipt['after'])}"),
        ("Tree", _tree(receipt)),
        *(("Check", check_line(check)) for check in receipt["checks"]),
        ("Tests", _tests(receipt["tests"], "these" if receipt["tested_with"] else receipt["agent"] or "this")),
        ("Failed", f"{count(failed, 'time')} before, with these commits" if failed else ""),
        ("Commits", listed(commits, receipt["commit_count"], since)),
        ("Files", listed(receipt["files"], receipt["file_count"], since)),
        ("More", rest(f"windlass receipt {receipt['change']}", receipt, since)),
        ("Undone", f"by {receipt['undone_by']}") if receipt.get("undone_by") else ("Undo", receipt["undo"]),
    )
    return [f"{bold(receipt['change'])}  {one_line(receipt['title'])}", *page(facts)]


def rest(command: str, answer: Row, since: int) -> str:
    """The command that shows the next part of an answer's files; nothing where this is the last."""
    shown = since + len(answer["files"])
    return f"{command} --since {shown}" if answer["files"] and shown < answer["file_count"] else ""


def check_line(check: Row) -> str:
    """One check in one line: its command, its result, the tree, and what kept it in a sandbox."""
    verdict = "passed" if check["passed"] else f"failed ({check['reason']})"
    where = f"on tree {short(check['tree'])} ({check['sandbox']})"
    return f"{check['command']}: {verdict} in {check['seconds']:.1f} s {where}"


def _tests(tests: Row, who: str) -> str:
    """How many tests ran, and whether there are fewer than before."""
    after, complaint = tests["after"], tests["complaint"]
    if after is None:
        return ""
    told = f"{after['ran']} ran" + (f", {after['skipped']} skipped" if after["skipped"] else "")
    return told + (f"; {complaint} than before {who} landed" if complaint else "")


def _tree(receipt: Row) -> str:
    """Which tree the checks ran on: the change's own, or one with other changes on top."""
    tree, others = short(receipt["tree"]), ", ".join(receipt["tested_with"])
    if not others:
        return f"{tree}, the one that was checked"
    return f"{tree}; landed at once with {others}, checked together as {short(receipt['tested_tree'])}"


@command("undo", "windlass undo c3\nwindlass undo c3 --wait       return when it is undone")
@change_argument
@click.option("--wait", is_flag=True, help="Return when main is as it was; exit 0 only then.")
@daemon_and_json
def undo_command(daemon: Client, change: str, wait: bool, as_json: bool) -> None:
    """Take a landed change back. The undoing is a change like any other: it must pass the checks."""
    undoing = daemon.post("changes", change, "undo")
    if not as_json:
        say(f"{undoing['id']} takes {change} back, once it has passed the checks. See it: windlass queue")
    if wait:
        undoing = _follow(daemon, undoing["id"], quiet=as_json)
    if as_json:
        say_json(undoing)
    if wait and undoing["state"] != "landed":
        raise WindlassError(
            f"{change} was not taken back: {undoing['id']} is {undoing['state']}: {undoing['reason']}",
            hint="Run `windlass queue` to see what it waits for.",
        )


def _follow(daemon: Client, change: str, *, quiet: bool) -> Row:
    """Wait until a change ends or is held. Listening begins before the first look, so that no step is missed."""
    lines = daemon.lines("events")
    seen = ""
    while True:
        latest: Row = daemon.get("changes", change)
        if latest["state"] != seen and not quiet:
            reason = f": {one_line(latest['reason'])}" if latest["reason"] else ""
            say(f"{latest['id']}  {paint_state(latest['state'])}{reason}")
        seen = latest["state"]
        if seen in _ENDED:
            return latest
        if next((line for line in lines if change.encode() in line), None) is None:
            lines = daemon.lines("events")

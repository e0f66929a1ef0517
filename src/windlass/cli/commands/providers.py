"""Providers: show the coding CLIs that are installed, and what their agents can and may do."""

from __future__ import annotations

import shlex

from windlass.cli.arguments import command, daemon_and_json
from windlass.cli.connection.client import Client
from windlass.cli.output import Row, bold, dim, one_line, page, paint, paragraph, say, say_json


@command("providers", "windlass providers\nwindlass providers --json")
@daemon_and_json
def providers_command(daemon: Client, as_json: bool) -> None:
    """Show which coding CLIs are here, whether you are logged in, and what their agents can do and may do."""
    items = daemon.get("providers")["items"]
    if as_json:
        say_json(items)
        return
    for item in items:
        names = " ".join((one_line(item["name"]), *(f"({one_line(alias)})" for alias in item["aliases"])))
        say("\n".join((f"{bold(names)}  {one_line(item['summary'])}", *page(_facts(item)), "")))
    say(dim(paragraph(_sandbox(items[0]["sandbox"]))))


def _sandbox(sandbox: str) -> str:
    """How every agent is confined, whatever its CLI's own flags allow."""
    if sandbox == "unenforced":
        return "Sandbox: none (unenforced), so their own flags are all that holds them. See `windlass doctor`."
    return f"Sandbox: {one_line(sandbox)}. In it, none can write beyond its worktree, and who may read not even there."


def _facts(item: Row) -> list[tuple[str, object]]:
    if not item["installed"]:
        return [("  here", paint("not installed", "yellow")), ("  install", item["install"])]
    return [
        ("  here", " ".join(filter(None, (item["version"], item["path"]))) or "needs no program"),
        ("  login", _login(item)),
        ("  verified", _verified(item)),
        ("  can", _can(item)),
        *_permissions(item["permissions"]),
    ]


def _permissions(levels: Row) -> list[tuple[str, object]]:
    """A line for each permission; one line if all permissions allow the same."""
    allowed = {}
    for level, about in levels.items():
        allowed[level] = about["may"] + (f" ({shlex.join(about['flags'])})" if about["flags"] else "")
    if len(set(allowed.values())) == 1:
        return [("  may", f"{next(iter(allowed.values()))}, by any permission")]
    return [(f"  may {level}", words) for level, words in allowed.items()]


def _login(item: Row) -> str:
    if item["login"] == "unknown":
        return ""
    if item["login"] == "yes":
        return f"yes, by {item['login_evidence']}"
    return f"not that we can see. {item['log_in']}"


def _verified(item: Row) -> str:
    if item["verified"] is None:
        return "no: described in your settings" if item["own"] else ""
    tried = f"with {item['verified']['version']} on {item['verified']['on']}"
    return tried if item["verified_here"] else f"{tried}; this is {item['version'] or 'another version'}"


def _can(item: Row) -> str:
    return ", ".join(
        (
            "takes a model" if item["models"] else "has no choice of models",
            "goes on in its session" if item["resumes"] else "begins anew in every run",
            "prints events" if item["structured"] else "prints text",
            f"is stopped by {item['stopped_by']}",
            "is done by its signal" + (", or by exit 0 and a commit" if item["done_by"] == "exit" else ""),
        )
    )

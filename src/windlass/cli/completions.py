"""Names that a shell offers for an unfinished word: from the daemon, or from the repository's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from windlass.cli.connection.client import Client, here, home, repository, top
from windlass.core.errors import WindlassError

if TYPE_CHECKING:  # no command waits for an import that only names a type
    import click
    from click.shell_completion import CompletionItem

PATIENCE = 0.5
"""Seconds that a shell waits for names."""

Named = tuple[str, str]
"""A name, and its title."""


def offered(
    ctx: click.Context, param: click.Parameter, incomplete: str, found: Iterable[Named]
) -> list[CompletionItem]:
    """The names that begin with the word: each once, and none that was typed already."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    from windlass.cli.output import one_line  # noqa: PLC0415

    given = ctx.params.get(param.name or "")
    typed = given if isinstance(given, tuple) else ()
    items: dict[str, CompletionItem] = {}
    for name, title in found:
        if name.startswith(incomplete) and name not in typed:
            items.setdefault(name, CompletionItem(name, help=one_line(title)))
    return list(items.values())


def known(key: str, title: str, *path: str, within: str = "items", **query: Any) -> list[Named]:
    """Names from a list of the daemon; none if it does not run: completing never starts it and never fails."""
    return [(row[key], str(row.get(title) or "")) for row in _listed(*path, within=within, **query)]


def at_work(*, everyone: bool = False) -> list[Named]:
    """The addresses of agents at work in all projects; with `everyone`, of finished ones, too."""
    rows = _listed("agents", all=1 if everyone else None)
    return [(address_of(row), str(row.get("task_title") or "")) for row in rows]


def readers() -> list[Named]:
    """Agents that one can write to from here: those that this repository defines, and those at work in its project."""
    rows = _listed("agents", path=repository())
    return [*_defined(), *((_short(row), str(row.get("task_title") or "")) for row in rows)]


def instances() -> list[Named]:
    """Every `@instance` of this project that has agents."""
    names = (_short(row) for row in _listed("agents", path=repository()))
    return [(f"@{name.partition('@')[2]}", "") for name in names if "@" in name]


def address_of(row: Mapping[str, Any]) -> str:
    """An agent's address: `coder`, or `coder@web-shop` where several have that name."""
    return f"{row['name']}@{row['instance']}" if row.get("instance") else str(row["name"])


def _short(row: dict[str, Any]) -> str:
    """An agent's name without the instance that only tells its project from others."""
    from windlass.core.agents.definition import is_home  # noqa: PLC0415

    return str(row["name"]) if is_home(row.get("instance") or "", row.get("project") or "") else address_of(row)


def _defined() -> Iterator[Named]:
    """Agents that this repository's files define; read here if no daemon does it."""
    try:
        rows = _client().get("projects", "agents", path=here())["agents"]
        yield from ((row["name"], str(row.get("role") or "")) for row in rows)
    except (WindlassError, OSError, ValueError, KeyError):
        yield from _in_files()


def _in_files() -> Iterator[Named]:
    folder = top()
    if folder is None:
        return
    import asyncio  # noqa: PLC0415

    from windlass.library.agent_files import RepositoryLibrary  # noqa: PLC0415

    try:
        roster = asyncio.run(RepositoryLibrary({}).roster(folder))
    except (WindlassError, OSError):
        return
    yield from ((definition.name, definition.role) for definition in roster.definitions)


def _listed(*path: str, within: str = "items", **query: Any) -> list[dict[str, Any]]:
    try:
        return list(_client().get(*path, **query)[within])
    except (WindlassError, OSError, ValueError, KeyError):
        return []


def _client() -> Client:
    return Client(home(), start=None, waiting=lambda _seconds: None, patience=PATIENCE)

"""The tools of a model, by what it may do."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import wraps
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed

from windlass.core.errors import WindlassError
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.agent import ToolKind as Kind
from windlass.model.commands import Commands
from windlass.model.files import Files
from windlass.model.mcp_client import OurTool, Refused, ToolClient

_IN_TURN = frozenset(("write_file", "edit_file", "shell", "windlass"))
"""Tools that change something: each call waits for the calls before it."""


def local(
    files: Files, commands: Commands, permissions: Permissions, only: Collection[Kind] | None = None
) -> list[Tool[None]]:
    """The tools for this machine. An agent that may only read has no shell, and writes only its report."""
    groups: dict[Kind, tuple[Callable[..., Any], ...]] = {
        Kind.READ: (files.read_file, files.list_files),
        Kind.SEARCH: (commands.search_files,),
    }
    if permissions is not Permissions.READ:
        groups |= {Kind.EDIT: (files.write_file, files.edit_file), Kind.SHELL: (commands.shell,)}
    chosen = [each for kind, tools in groups.items() if only is None or kind in only for each in tools]
    reports = (files.write_file, commands.windlass) if permissions is Permissions.READ else ()
    return [Tool(_safe(tool), takes_ctx=False, sequential=tool.__name__ in _IN_TURN) for tool in (*chosen, *reports)]


def ours(server: ToolClient, tools: Sequence[OurTool]) -> list[Tool[None]]:
    """The tools to talk with other agents."""
    return [
        Tool.from_schema(_call(server, tool.name), tool.name, tool.about, tool.schema, sequential=True)
        for tool in tools
    ]


def _safe(function: Callable[..., Any]) -> Callable[..., Awaitable[str]]:
    """Wrap a tool: its refusals and errors of the file system become answers to the model."""

    @wraps(function)
    async def call(*args: Any, **given: Any) -> str:
        try:
            found = function(*args, **given)
            return str(await found if inspect.isawaitable(found) else found)
        except WindlassError as error:
            raise ToolFailed(f"{error} {'' if error.hint == type(error).hint else error.hint}".strip()) from error
        except OSError as error:
            raise ToolFailed(f"{error.strerror or error}.") from error

    return call


def _call(server: ToolClient, name: str) -> Callable[..., Awaitable[str]]:
    async def call(**given: Any) -> str:
        try:
            return await server.call(name, given)
        except (Refused, WindlassError) as error:
            raise ToolFailed(str(error)) from error

    return call

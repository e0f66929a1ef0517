"""Who calls a tool: the run or the person that was let in, and their project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from windlass.core.errors import BadInput
from windlass.core.messages.members import Speaker
from windlass.engine import Engine
from windlass.engine.messages.callers import CallerInProject

Context = ServerRequestContext[Any, Any]

SPEAKER = "windlass.speaker"
"""Where a request keeps who was let in with it."""
KEY_HEADER = "windlass-request"
"""A client's own name for a request: one that it sends again has the same."""
PATH_HEADER = "windlass-path"
"""The folder that a person stands in, percent-encoded."""
LONGEST_KEY = 100
MOST_PLACES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCaller:
    """Who sent one request."""

    speaker: Speaker
    path: str
    key: str


def request_of(ctx: Context) -> Request:
    """The HTTP request in which something was asked."""
    return cast(Request, ctx.request)


class McpCallers:
    """Knows callers by what they were let in as, and by nothing that they say."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._places: dict[str, str] = {}
        """Projects by people's folders: git takes longer to find one than a tool to answer."""

    def caller(self, ctx: Context) -> McpCaller:
        request = request_of(ctx)
        return McpCaller(
            speaker=request.scope[SPEAKER],
            path=unquote(request.headers.get(PATH_HEADER, "")),
            key=request.headers.get(KEY_HEADER, "")[:LONGEST_KEY],
        )

    async def identify(self, caller: McpCaller, name: str) -> CallerInProject:
        """An agent is in its own project; a person in the one of their folder, or in the only one there is."""
        speaker, path = caller.speaker, caller.path
        if speaker.run:
            return await self.engine.callers.identify(speaker, name=name)
        known = self._places.get(path) if path else await self.engine.callers.only_project()
        if not (known or path):
            raise BadInput(
                "It is not clear which project is meant.",
                hint=f"Say so with the header {PATH_HEADER}, or use `windlass mcp` in the project's folder.",
            )
        if known and (await self.engine.projects.get(known)).forgotten:
            known = ""  # another may be at that path by now
        named = await self.engine.callers.identify(speaker, path=path, project=known or "", name=name)
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        self._places[path] = named.project.id
        return named

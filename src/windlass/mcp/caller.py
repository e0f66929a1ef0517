"""Who calls a tool: the run or the person that was let in, and the project they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.nouns.project import Project
from windlass.engine import Engine
from windlass.engine.messages.directory import Speaker

Context = ServerRequestContext[Any, Any]

RUN = "windlass.run"
"""Where a request keeps the run that it comes from."""
KEY_HEADER = "windlass-request"
"""A client's own name for a request: one that it sends again has the same."""
PATH_HEADER = "windlass-path"
"""The folder that a person stands in, percent-encoded."""
LONGEST_KEY = 100
MOST_PLACES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCaller:
    """One request."""

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
        """Projects by the folders that people stood in: to find one takes longer than to speak."""

    async def visit(self, ctx: Context) -> McpCaller:
        request = request_of(ctx)
        return McpCaller(
            speaker=await self.engine.talk.speaker(str(request.scope[RUN])),
            path=unquote(request.headers.get(PATH_HEADER, "")),
            key=request.headers.get(KEY_HEADER, "")[:LONGEST_KEY],
        )

    async def project(self, visit: McpCaller) -> str:
        """An agent is in its own project; a person where they stand, or in the only one there is."""
        if visit.speaker.run:
            return visit.speaker.project
        if visit.path:
            return self._places.get(visit.path) or await self._found(visit.path)
        known = await self.engine.ports.store.read(lambda store: store.page(Project, after=0, limit=2))
        if len(known) != 1:
            raise BadInput(
                "It is not clear which project is meant.",
                hint=f"Say so with the header {PATH_HEADER}, or use `windlass mcp` in the project's folder.",
            )
        return known[0][1].id

    async def _found(self, path: str) -> str:
        found = await self.engine.projects.known_at(path)
        if found is None:
            raise NotFound("This folder is no project yet.", hint="Run `windlass init` there.")
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        self._places[path] = found.id
        return found.id

    async def claimed(self, visit: McpCaller, project: str, name: str) -> str:
        """The agent that a person says to be, which must be there; an agent is itself and nobody else."""
        own = visit.speaker.address
        if not name or name in (own, own.partition("@")[0]):  # in its own instance a bare name is nobody else's
            return ""
        if visit.speaker.run:
            raise NotAllowed(f"You are {own}, and can't speak as {name[:80]}.", hint="Leave `from` out.")
        found = await self.engine.ports.store.read(lambda store: store.find(Project, project))
        if found is not None:
            await self.engine.directory.known(found, visit.speaker, name[:80])
        return name

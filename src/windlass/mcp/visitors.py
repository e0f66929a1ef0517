"""Who calls a tool: the run or the person that was let in, and the project they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.project import Project
from windlass.core.run import Run
from windlass.engine import Engine
from windlass.engine.readers import Speaker

Context = ServerRequestContext[Any, Any]

RUN = "windlass.run"
"""Where a request keeps the run that it comes from."""
KEY_HEADER = "windlass-request"
"""A client's own name for a request: one that it sends again has the same."""
PATH_HEADER = "windlass-path"
"""The folder that a person stands in, percent-encoded."""
LONGEST_KEY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request."""

    speaker: Speaker
    path: str
    key: str


class Visitors:
    """Knows callers by what they were let in as, and by nothing that they say."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def visit(self, ctx: Context) -> Visit:
        request: Request = ctx.request
        run = str(request.scope[RUN])
        await self.must_be_live(run)
        return Visit(
            speaker=await self.engine.talk.speaker(run),
            path=unquote(request.headers.get(PATH_HEADER, "")),
            key=request.headers.get(KEY_HEADER, "")[:LONGEST_KEY],
        )

    async def must_be_live(self, run: str) -> None:
        """Refuse a run that has ended: its token and what it left running speak for nobody."""
        if not run:
            return
        found = await self.engine.ports.store.read(lambda store: store.find(Run, run))
        if found is None or not found.live:
            raise NotAllowed("This run is over, so nobody speaks for it any more.")

    async def project(self, visit: Visit) -> str:
        """An agent is in its own project; a person where they stand, or in the only one there is."""
        if visit.speaker.run:
            return visit.speaker.project
        if visit.path:
            found = await self.engine.projects.known_at(visit.path)
            if found is None:
                raise NotFound("This folder is no project yet.", hint="Run `windlass init` there.")
            return found.id
        known = await self.engine.ports.store.read(lambda store: store.page(Project, after=0, limit=2))
        if len(known) != 1:
            raise BadInput(
                "It is not clear which project is meant.",
                hint=f"Say so with the header {PATH_HEADER}, or use `windlass mcp` in the project's folder.",
            )
        return known[0][1].id

    def claimed(self, visit: Visit, name: str) -> str:
        """The agent that a person says to be; an agent is itself and nobody else."""
        own = visit.speaker.address
        if not name or name == own:
            return ""
        if visit.speaker.run:
            raise NotAllowed(f"You are {own}, and can't speak as {name[:80]}.", hint="Leave `from` out.")
        return name

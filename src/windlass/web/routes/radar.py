"""The radar: who is about to collide with whom, now and as it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response

from windlass.engine import Engine
from windlass.web import http_io, views
from windlass.web.request import Answer, Call, PlaceQuery

EVERY = 20.0
"""Seconds after which the radar is reminded that someone watches."""


async def show(call: Call, given: PlaceQuery) -> Answer:
    """The picture as it is. A run is shown what is known: only a person has everyone looked at."""
    picture = await call.engine.radar.picture(await call.project(given.path), look=not call.caller.run)
    return views.radar(picture, now=call.now)


async def watch(call: Call, given: PlaceQuery) -> Response:
    """The picture, and again whenever it is another one."""
    return http_io.lines(_follow(call.engine, await call.project(given.path), look=not call.caller.run))


async def _follow(engine: Engine, project: str, *, look: bool) -> AsyncIterator[dict[str, Any]]:
    told: object = None
    async for _ in engine.bell.rings(every=EVERY):
        seen = views.radar(await engine.radar.picture(project, look=look), now=engine.ports.clock.now())
        look = False  # while someone watches, the tick goes on looking
        if _facts(seen) != told:
            told = _facts(seen)
            yield seen


def _facts(seen: dict[str, Any]) -> object:
    """The part of a picture whose change is told: not that everything grows older."""
    who = sorted(agent["agent"] for agent in seen["agents"])
    return who, [{**collision, "age_seconds": 0} for collision in seen["collisions"]]

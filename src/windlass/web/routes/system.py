"""The daemon itself: status, settings, doctor, leaving."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core.requests import Request
from windlass.web import http_io
from windlass.web.request import Answer, Call, Folder, PlaceQuery


class SettingRequest(Request):
    key: str
    value: str
    path: Folder = ""
    home: bool = False


async def status(call: Call) -> Answer:
    """The daemon itself: since when, where, and, for people, what troubles it: that may be any project's."""
    return {
        "pid": call.context.pid,
        "version": call.context.version,
        "uptime_seconds": round(call.engine.ports.clock.monotonic() - call.context.started, 3),
        "home": call.context.home,
        "agents": len(await call.engine.status.live_runs()),
        "troubles": [] if call.caller.run else call.engine.troubles.all(),
    }


async def settings(call: Call, given: PlaceQuery) -> Answer:
    """Every setting in force, and the files they come from."""
    values, files = call.context.editor.shown(await call.top(given.path))
    return {"values": values, "files": files}


async def change_setting(call: Call, given: SettingRequest) -> Answer:
    """Change one setting."""
    top = "" if given.home else await call.top(given.path)
    value, file = call.context.editor.change(top, given.key, given.value)
    call.engine.bell.ring()
    return {"key": given.key, "value": value, "file": file}


async def doctor(call: Call, given: PlaceQuery) -> Answer:
    """What is wrong, and what to do about it."""
    return call.listing(await call.context.examine(given.path))


async def check(call: Call) -> Response:
    """One line for each promise, as soon as it is known: looking at all of them may take long."""
    return http_io.lines(call.context.check())


async def shutdown(call: Call) -> Answer:
    """Let the daemon leave; agents go on."""
    call.context.leave()
    return {"leaving": True}

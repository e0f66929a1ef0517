"""The daemon itself: status, settings, doctor, leaving."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core import codec
from windlass.web import http_io
from windlass.web.request import Call


async def status(call: Call) -> Response:
    """The daemon itself: since when, where, and what troubles it."""
    live = await call.engine.ports.store.read(lambda store: store.live_runs())
    return http_io.answer(
        {
            "pid": call.house.pid,
            "version": call.house.version,
            "uptime_seconds": round(call.engine.ports.clock.monotonic() - call.house.started, 3),
            "home": call.house.home,
            "agents": len(live),
            "troubles": codec.plain(call.engine.troubles.all()),
        }
    )


async def settings(call: Call) -> Response:
    """Every setting in force, and the files they come from."""
    values, files = call.house.desk.shown(await call.top())
    return http_io.answer({"values": values, "files": files})


async def change_setting(call: Call) -> Response:
    """Change one setting."""
    given = await http_io.body(call.request)
    path = http_io.text(given, "path", "")
    top = await call.engine.projects.locate(path) if path and not given.get("home") else ""
    key = http_io.text(given, "key")
    value, file = call.house.desk.change(top, key, http_io.text(given, "value"))
    call.engine.bell.ring()
    return http_io.answer({"key": key, "value": value, "file": file})


async def doctor(call: Call) -> Response:
    """What is wrong, and what to do about it."""
    findings = await call.house.examine(call.path)
    return http_io.listing([codec.plain(finding) for finding in findings], now=call.now)


async def check(call: Call) -> Response:
    """One line for each promise, as soon as it is known: looking at all of them may take long."""
    return http_io.lines(codec.plain(each) async for each in call.house.check())


async def shutdown(call: Call) -> Response:
    """Let the daemon leave; agents go on."""
    call.house.leave()
    return http_io.answer({"leaving": True})

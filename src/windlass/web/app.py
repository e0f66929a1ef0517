"""The API: every route in one table, every error in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from windlass.core.errors import NotFound, Unavailable, WindlassError
from windlass.engine import Engine
from windlass.web import http_io, openapi, schemas
from windlass.web.authentication import Authenticator, SocketAuthenticator
from windlass.web.request import AppContext, Call
from windlass.web.route import READ, WRITE, ApiRoute
from windlass.web.routes import (
    agents,
    changes,
    conversations,
    documents,
    events,
    instances,
    messages,
    projects,
    providers,
    radar,
    rescue,
    reviews,
    system,
    tasks,
)

_PLACE = {"path": schemas.PATH}
_SHOWN = {**_PLACE, "all": schemas.TRUTH}
_SAID = {**_PLACE, "channel": schemas.TEXT, "since": schemas.TEXT}
_WAITS = {"timeout": schemas.NUMBER}


async def describe(call: Call) -> Response:
    """This description: every route, how it is called and what it answers."""
    return http_io.answer(openapi.describe(RULES, version=call.house.version))


RULES = (
    ApiRoute(READ, "/status", system.status, by_runs=True),
    ApiRoute(READ, "/doctor", system.doctor, by_runs=True, asks=_PLACE),
    ApiRoute(READ, "/doctor/check", system.check),
    ApiRoute(READ, "/settings", system.settings, by_runs=True, asks=_PLACE),
    ApiRoute(WRITE, "/settings", system.change_setting, takes=schemas.SETTING),
    ApiRoute(WRITE, "/shutdown", system.shutdown, takes=schemas.NOTHING),
    ApiRoute(READ, "/providers", providers.every, by_runs=True),
    ApiRoute(WRITE, "/projects", projects.add, takes=schemas.PROJECT),
    ApiRoute(READ, "/projects/checks", projects.checks, by_runs=True, asks=_PLACE),
    ApiRoute(READ, "/projects/agents", projects.definitions, by_runs=True, asks=_PLACE),
    ApiRoute(WRITE, "/tasks", tasks.add),
    ApiRoute(READ, "/tasks/{id}", tasks.show, by_runs=True),
    ApiRoute(READ, "/tasks/{id}/wait", tasks.wait, by_runs=True),
    ApiRoute(READ, "/instances", instances.every, asks=_PLACE),
    ApiRoute(WRITE, "/instances", instances.begin, takes=schemas.INSTANCE),
    ApiRoute(READ, "/instances/{name}", instances.show, asks=_PLACE),
    ApiRoute(READ, "/instances/{name}/wait", instances.wait, asks={**_PLACE, "since": schemas.TEXT}),
    ApiRoute(WRITE, "/instances/{name}/drain", instances.drain, takes=schemas.PLACE),
    ApiRoute(WRITE, "/instances/{name}/stop", instances.stop, takes=schemas.PLACE),
    ApiRoute(READ, "/agents", agents.every, by_runs=True, asks=_SHOWN),
    ApiRoute(WRITE, "/agents", agents.add, takes=schemas.HIRE),
    ApiRoute(READ, "/agents/{name}", agents.show, by_runs=True),
    ApiRoute(
        *(READ, "/agents/{name}/logs", agents.logs),
        by_runs=True,
        asks={"run": schemas.WHOLE, "follow": schemas.TRUTH, "newer": schemas.NUMBER},
    ),
    ApiRoute(READ, "/agents/{name}/diff", agents.diff, by_runs=True),
    ApiRoute(WRITE, "/agents/{name}/stop", agents.stop, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/agents/{name}/answer", agents.reply, takes=schemas.REPLY),
    ApiRoute(READ, "/questions", agents.questions, by_runs=True, asks=_PLACE),
    ApiRoute(WRITE, "/agent/signal", agents.signal, by_runs=True),
    ApiRoute(WRITE, "/agent/check", agents.check, by_runs=True, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/stop", agents.stop_all, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/messages", messages.send, by_runs=True, takes=schemas.SEND, gives=schemas.SENT),
    ApiRoute(
        *(READ, "/messages", messages.every),
        by_runs=True,
        asks={**_SAID, "to": schemas.TEXT, "limit": schemas.WHOLE},
        gives=schemas.listing(schemas.MESSAGE),
    ),
    ApiRoute(
        *(READ, "/messages/wait", messages.wait),
        by_runs=True,
        asks=_SAID | _WAITS,
        gives=schemas.listing(schemas.MESSAGE),
    ),
    ApiRoute(WRITE, "/messages/{id}/ack", messages.ack, by_runs=True, takes=schemas.ACK, gives=schemas.DELIVERY),
    ApiRoute(
        *(READ, "/inbox", messages.inbox),
        by_runs=True,
        asks={**_PLACE, "name": schemas.TEXT, "all": schemas.TRUTH},
        gives=schemas.listing(schemas.LETTER),
    ),
    ApiRoute(
        *(WRITE, "/inbox/read", messages.read),
        by_runs=True,
        takes=schemas.READ,
        gives=schemas.READING,
    ),
    ApiRoute(
        *(WRITE, "/inbox/ack", messages.acks),
        by_runs=True,
        takes=schemas.ACKS,
        gives=schemas.listing(schemas.DELIVERY),
    ),
    ApiRoute(WRITE, "/conversations", conversations.ask, by_runs=True, takes=schemas.ASK, gives=schemas.BEGUN),
    ApiRoute(
        *(READ, "/conversations/listen", conversations.listen),
        by_runs=True,
        asks={**_PLACE, "agent_id": schemas.TEXT, **_WAITS},
        gives=schemas.LISTENED,
    ),
    ApiRoute(READ, "/conversations/{id}", conversations.show, by_runs=True, asks=_WAITS, gives=schemas.CONVERSATION),
    ApiRoute(
        *(WRITE, "/conversations/{id}/answer", conversations.answer),
        by_runs=True,
        takes=schemas.ANSWER,
        gives=schemas.ANSWERED,
    ),
    ApiRoute(
        *(READ, "/documents", documents.every),
        by_runs=True,
        asks={**_PLACE, "instance": schemas.TEXT},
        gives=schemas.listing(schemas.TITLE),
    ),
    ApiRoute(
        *(READ, "/documents/{name}", documents.show),
        by_runs=True,
        asks={**_PLACE, "instance": schemas.TEXT, "revision": schemas.WHOLE},
        gives=schemas.DOCUMENT,
    ),
    ApiRoute(
        *(READ, "/documents/{name}/history", documents.history),
        by_runs=True,
        asks={**_PLACE, "instance": schemas.TEXT},
        gives=schemas.listing(schemas.TITLE),
    ),
    ApiRoute(
        *(WRITE, "/documents/{name}", documents.write),
        by_runs=True,
        takes=schemas.WRITE,
        gives=schemas.DOCUMENT,
    ),
    ApiRoute(READ, "/queue", changes.queue, by_runs=True, asks=_SHOWN),
    ApiRoute(WRITE, "/queue", changes.add, takes=schemas.BRANCH),
    ApiRoute(WRITE, "/queue/pause", changes.pause, takes=schemas.PAUSE),
    ApiRoute(WRITE, "/queue/resume", changes.resume, takes=schemas.PLACE),
    ApiRoute(READ, "/changes/{id}", changes.show, by_runs=True),
    ApiRoute(READ, "/changes/{id}/receipt", changes.receipt, by_runs=True),
    ApiRoute(READ, "/changes/{id}/diff", reviews.diff, by_runs=True),
    ApiRoute(WRITE, "/changes/{id}/review", reviews.start, takes=schemas.REVIEW),
    ApiRoute(WRITE, "/changes/{id}/comments", reviews.comment, by_runs=True, takes=schemas.COMMENT),
    ApiRoute(WRITE, "/changes/{id}/comments/{comment}/resolve", reviews.resolve, by_runs=True, takes=schemas.RESOLVE),
    ApiRoute(WRITE, "/changes/{id}/undo", changes.undo, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/changes/{id}/drop", changes.drop, takes=schemas.REASON),
    ApiRoute(WRITE, "/changes/{id}/hold", changes.hold, takes=schemas.REASON),
    ApiRoute(WRITE, "/changes/{id}/release", changes.release, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/changes/{id}/retry", changes.retry, takes=schemas.NOTHING),
    ApiRoute(WRITE, "/changes/{id}/first", changes.first, takes=schemas.NOTHING),
    ApiRoute(READ, "/radar", radar.show, by_runs=True, asks=_PLACE),
    ApiRoute(READ, "/radar/watch", radar.watch, by_runs=True, asks=_PLACE),
    ApiRoute(READ, "/rescue", rescue.every, by_runs=True, asks=_SHOWN),
    ApiRoute(
        *(READ, "/rescue/show", rescue.show),
        by_runs=True,
        asks={"ref": schemas.TEXT, "exact": schemas.TRUTH},
    ),
    ApiRoute(WRITE, "/rescue/restore", rescue.restore, takes=schemas.RESTORE),
    ApiRoute(
        READ, "/events", events.stream, by_runs=True, asks={**_PLACE, "since": schemas.WHOLE, "feed": schemas.TRUTH}
    ),
    ApiRoute(READ, "/openapi.json", describe, by_runs=True),
)


Tools = Callable[[str, Scope, Receive, Send], Awaitable[None]]
"""What answers at `/mcp`; it is told which run calls, nothing for a person."""


def build(engine: Engine, house: AppContext, door: SocketAuthenticator, tools: Tools) -> Starlette:
    """The whole API."""
    routes = [Route(rule.path, _endpoint(engine, house, door, rule), methods=[rule.method]) for rule in RULES]
    return _app([*routes, Route("/mcp", McpEntrance(door, tools))])


def build_port(keeper: Authenticator, tools: Tools) -> Starlette:
    """What is served on the port: the tools, and nothing else."""
    return _app([Route("/mcp", McpEntrance(keeper, tools))])


def _app(routes: list[Route]) -> Starlette:
    app = Starlette(routes=routes, exception_handlers={404: _no_route, 405: _no_route})
    app.router.redirect_slashes = False
    return app


class McpEntrance:
    """Lets callers in to the tools, once it is clear who they are."""

    def __init__(self, keeper: Authenticator, tools: Tools) -> None:
        self.keeper = keeper
        self.tools = tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = self.keeper.caller(Request(scope))
            await self.tools(caller.run, scope, receive, send)
        except WindlassError as error:
            await http_io.refusal(error)(scope, receive, send)


def _endpoint(
    engine: Engine, house: AppContext, door: SocketAuthenticator, rule: ApiRoute
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            caller = door.caller(request)
            if not rule.by_runs:
                caller.must_be_human()
            http_io.check_query(request, rule.asks)
            if rule.takes:
                http_io.expect(request, rule.takes["properties"])
            return await rule.verb(Call(engine, house, request, caller))
        except WindlassError as error:
            return http_io.refusal(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets our answer and the log the rest
            engine.troubles.report("api", error)
            return http_io.refusal(Unavailable(f"Something went wrong: {error}.", hint="See `windlass daemon logs`."))

    return endpoint


def _no_route(request: Request, _: Exception) -> Response:
    return http_io.refusal(
        NotFound(
            f"There is no {request.method} {request.url.path}.",
            hint="`GET /openapi.json` lists what there is. If this is `windlass` itself, which may be newer than the "
            "daemon: `windlass daemon stop`.",
        )
    )

"""The API: every route in one table, every error in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from windlass.core.address import Address
from windlass.core.agents.grants import Grant
from windlass.core.errors import NotFound, Unavailable, WindlassError
from windlass.core.requests import Request as NoFields
from windlass.engine import Engine
from windlass.web import http_io, openapi
from windlass.web.authentication import Authenticator
from windlass.web.request import Answer, AppContext, Call
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


async def describe(call: Call) -> Answer:
    """This description: every route, how it is called and what it answers."""
    return openapi.describe(ROUTES, version=call.context.version)


ROUTES = (
    ApiRoute(READ, "/status", system.status, grant=Grant.OPEN),
    ApiRoute(READ, "/doctor", system.doctor),
    ApiRoute(READ, "/doctor/check", system.check),
    ApiRoute(READ, "/settings", system.settings, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/settings", system.change_setting),
    ApiRoute(WRITE, "/shutdown", system.shutdown),
    ApiRoute(READ, "/providers", providers.every, grant=Grant.OPEN),
    ApiRoute(WRITE, "/projects", projects.add, status=201),
    ApiRoute(READ, "/projects", projects.every),
    ApiRoute(WRITE, "/projects/forget", projects.forget),
    ApiRoute(READ, "/projects/checks", projects.checks, grant=Grant.PROJECT),
    ApiRoute(READ, "/projects/agents", projects.definitions, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/tasks", tasks.add, status=201),
    ApiRoute(READ, "/tasks/{id}", tasks.show, grant=Grant.TASK),
    ApiRoute(READ, "/tasks/{id}/wait", tasks.wait, grant=Grant.TASK),
    ApiRoute(READ, "/instances", instances.every),
    ApiRoute(WRITE, "/instances", instances.begin, largest=instances.LARGEST_START),
    ApiRoute(READ, "/instances/{name}", instances.show),
    ApiRoute(READ, "/instances/{name}/wait", instances.wait),
    ApiRoute(WRITE, "/instances/{name}/drain", instances.drain),
    ApiRoute(WRITE, "/instances/{name}/stop", instances.stop),
    ApiRoute(READ, "/agents", agents.every, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/agents", agents.add, status=201),
    ApiRoute(READ, "/agents/{name}", agents.show, grant=Grant.AGENT),
    ApiRoute(READ, "/agents/{name}/logs", agents.logs, grant=Grant.AGENT),
    ApiRoute(READ, "/agents/{name}/diff", agents.diff, grant=Grant.AGENT),
    ApiRoute(WRITE, "/agents/{name}/stop", agents.stop),
    ApiRoute(WRITE, "/agents/{name}/answer", agents.reply),
    ApiRoute(READ, "/questions", agents.questions, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/agent/signal", agents.signal, grant=Grant.RUN),
    ApiRoute(WRITE, "/agent/check", agents.check, grant=Grant.RUN),
    ApiRoute(WRITE, "/stop", agents.stop_all),
    ApiRoute(WRITE, "/messages", messages.send, grant=Grant.PROJECT, status=201),
    ApiRoute(READ, "/messages", messages.every, grant=Grant.PROJECT),
    ApiRoute(READ, "/messages/wait", messages.wait, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/messages/{id}/ack", messages.ack, grant=Grant.PROJECT),
    ApiRoute(READ, "/inbox", messages.inbox, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/inbox/read", messages.read, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/inbox/ack", messages.acks, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/conversations", conversations.ask, grant=Grant.PROJECT, status=201),
    ApiRoute(READ, "/conversations/listen", conversations.listen, grant=Grant.PROJECT),
    ApiRoute(READ, "/conversations/{id}", conversations.show, grant=Grant.CONVERSATION),
    ApiRoute(WRITE, "/conversations/{id}/answer", conversations.answer, grant=Grant.CONVERSATION),
    ApiRoute(READ, "/documents", documents.every, grant=Grant.PROJECT),
    ApiRoute(READ, "/documents/{name}", documents.show, grant=Grant.PROJECT),
    ApiRoute(READ, "/documents/{name}/history", documents.history, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/documents/{name}", documents.write, grant=Grant.PROJECT),
    ApiRoute(READ, "/queue", changes.queue, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/queue", changes.add, status=201),
    ApiRoute(WRITE, "/queue/pause", changes.pause),
    ApiRoute(WRITE, "/queue/resume", changes.resume),
    ApiRoute(READ, "/changes/{id}", changes.show, grant=Grant.CHANGE),
    ApiRoute(READ, "/changes/{id}/receipt", changes.receipt, grant=Grant.CHANGE),
    ApiRoute(READ, "/changes/{id}/diff", reviews.diff, grant=Grant.CHANGE),
    ApiRoute(WRITE, "/changes/{id}/review", reviews.start, status=201),
    ApiRoute(WRITE, "/changes/{id}/comments", reviews.comment, grant=Grant.CHANGE, status=201),
    ApiRoute(WRITE, "/changes/{id}/comments/{comment}/resolve", reviews.resolve, grant=Grant.CHANGE),
    ApiRoute(WRITE, "/changes/{id}/undo", changes.undo, status=201),
    ApiRoute(WRITE, "/changes/{id}/drop", changes.drop),
    ApiRoute(WRITE, "/changes/{id}/hold", changes.hold),
    ApiRoute(WRITE, "/changes/{id}/release", changes.release),
    ApiRoute(WRITE, "/changes/{id}/retry", changes.retry),
    ApiRoute(WRITE, "/changes/{id}/first", changes.first),
    ApiRoute(READ, "/radar", radar.show, grant=Grant.PROJECT),
    ApiRoute(READ, "/radar/watch", radar.watch, grant=Grant.PROJECT),
    ApiRoute(READ, "/rescue", rescue.every, grant=Grant.PROJECT),
    ApiRoute(READ, "/rescue/show", rescue.show, grant=Grant.PROJECT),
    ApiRoute(WRITE, "/rescue/restore", rescue.restore, status=201),
    ApiRoute(READ, "/events", events.stream, grant=Grant.PROJECT),
    ApiRoute(READ, "/openapi.json", describe, grant=Grant.OPEN),
)


Tools = Callable[[str, Scope, Receive, Send], Awaitable[None]]
"""Answers a request at `/mcp`. The text is the run that calls; empty for a person."""


def build(engine: Engine, context: AppContext, authenticator: Authenticator, tools: Tools) -> Starlette:
    """The whole API."""
    endpoint = partial(_endpoint, engine, context, authenticator)
    routes = [Route(route.path, endpoint(route), methods=[route.method]) for route in ROUTES]
    return _app([*routes, Route("/mcp", McpEntrance(authenticator, tools))])


def build_port(authenticator: Authenticator, tools: Tools) -> Starlette:
    """The port serves the tools, and nothing else."""
    return _app([Route("/mcp", McpEntrance(authenticator, tools))])


def _app(routes: list[Route]) -> Starlette:
    app = Starlette(routes=routes, exception_handlers={404: _no_route, 405: _no_route})
    app.router.redirect_slashes = False
    return app


class McpEntrance:
    """Identifies a caller, and passes the request on to the tools."""

    def __init__(self, authenticator: Authenticator, tools: Tools) -> None:
        self.authenticator = authenticator
        self.tools = tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = self.authenticator.caller(Request(scope))
            await self.tools(caller.run, scope, receive, send)
        except WindlassError as error:
            await http_io.refusal(error)(scope, receive, send)


def _endpoint(
    engine: Engine, context: AppContext, authenticator: Authenticator, route: ApiRoute
) -> Callable[[Request], Awaitable[Response]]:
    given = route.given

    async def answered(request: Request) -> Any:
        run = authenticator.caller(request).run
        content = b"" if route.method == READ else await http_io.content(request, route.largest)
        caller = await engine.callers.admit(run, route.grant, _named(route, request))  # its run may have been stopped
        call = Call(engine, context, request, caller)
        if route.method == READ:
            value: Any = http_io.query(request, given or NoFields)
        else:
            value = http_io.body(content, given or NoFields)
        if caller.run and hasattr(value, "path"):
            value.path = ""  # an agent is in its own project, whatever folder it names
        return await (route.verb(call, value) if given else route.verb(call))

    async def endpoint(request: Request) -> Response:
        try:
            answer = await answered(request)
            return answer if isinstance(answer, Response) else http_io.answer(answer, status=route.status)
        except WindlassError as error:
            return http_io.refusal(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets our answer and the log the rest
            engine.troubles.report("api", error)
            return http_io.refusal(Unavailable(f"Something went wrong: {error}.", hint="See `windlass daemon logs`."))

    return endpoint


def _named(route: ApiRoute, request: Request) -> str:
    """The id of what a path names, where that decides who may call."""
    named = request.path_params
    return str(Address.parse(named["name"])) if route.grant is Grant.AGENT else str(named.get("id", ""))


def _no_route(request: Request, _: Exception) -> Response:
    return http_io.refusal(
        NotFound(
            f"There is no {request.method} {request.url.path}.",
            hint="`GET /openapi.json` lists what there is. If this is `windlass` itself, which may be newer than the "
            "daemon: `windlass daemon stop`.",
        )
    )

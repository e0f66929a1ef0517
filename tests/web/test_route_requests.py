"""Every route checks what it is given. The cases are made from the table of routes, so a new route is covered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlencode

import msgspec
import pytest
from stage import Stage
from starlette.types import Message

from windlass.core.agents.grants import Grant
from windlass.core.requests import Request
from windlass.web.app import ROUTES, build
from windlass.web.authentication import CALLER, Caller, SocketAuthenticator
from windlass.web.request import AppContext
from windlass.web.route import READ, ApiRoute

Ask = Callable[..., tuple[int, str]]
"""Calls a route as a person does, with more headers if given. Returns its answer's number, and the error in words."""


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    engine = Stage(tmp_path_factory.mktemp("repo"), tmp_path_factory.mktemp("home")).engine

    async def no_tools(*_: Any) -> None:
        raise AssertionError("no tool is called")

    app = build(engine, cast(AppContext, None), SocketAuthenticator(), no_tools)

    async def answered(route: ApiRoute, given: dict[str, Any], *headers: tuple[bytes, bytes]) -> list[Message]:
        scope = {
            "type": "http",
            "method": route.method,
            "path": route.path.format_map({"id": "x1", "name": "x", "comment": "x2"}),
            "query_string": urlencode(given).encode() if route.method == READ else b"",
            "headers": [(b"host", b"windlass"), *headers],
            "state": {CALLER: Caller()},
        }
        sent: list[Message] = []
        body = b"" if route.method == READ else json.dumps(given).encode()
        coming: list[Message] = [{"type": "http.request", "body": body}]

        async def receive() -> Message:
            return coming.pop() if coming else {"type": "http.disconnect"}  # a stream that began by mistake ends

        async def send(message: Message) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent

    def asked(route: ApiRoute, given: dict[str, Any], *headers: tuple[bytes, bytes]) -> tuple[int, str]:
        head, body = asyncio.run(answered(route, given, *headers))
        error = json.loads(body["body"])["error"]
        return head["status"], f"{error['message']} {error['hint']}"

    return asked


def fields(route: ApiRoute) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields that a route may be given, by the names that callers use."""
    kind = route.given
    checked = isinstance(kind, type) and issubclass(kind, Request)
    return {field.encode_name: field for field in msgspec.structs.fields(kind)} if checked and kind else {}


def is_text(field: msgspec.structs.FieldInfo) -> bool:
    return bool(msgspec.json.schema(field.type).get("type") == "string")


def filled(route: ApiRoute) -> dict[str, Any]:
    """All that a route needs."""
    return {name: "x" if is_text(each) else ["x"] for name, each in fields(route).items() if each.required}


def cases(fits: Callable[[ApiRoute, msgspec.structs.FieldInfo], bool]) -> list[Any]:
    """Each field of each route that fits."""
    return [
        pytest.param(route, name, id=f"{route.method} {route.path} {name}")
        for route in ROUTES
        for name, field in fields(route).items()
        if fits(route, field)
    ]


CHECKED = [route for route in ROUTES if route.grant is not Grant.RUN]
"""A signal is checked where signals in files are, too; what else only a run may call, `test_other_projects` calls."""


def test_every_route_that_writes_is_checked() -> None:
    """Also one to which nothing is to be said."""
    assert [each.path for each in ROUTES if each.given and not fields(each)] == ["/agent/signal"]


@pytest.mark.parametrize("route", CHECKED, ids=lambda route: f"{route.method} {route.path}")
def test_an_unknown_field_is_refused(ask: Ask, route: ApiRoute) -> None:
    """Nothing that a caller says is left out silently."""
    number, words = ask(route, {"zzzz": "1"})
    assert (number, "'zzzz' is not a" in words, "/openapi.json" in words) == (400, True, True), words


@pytest.mark.parametrize(("route", "name"), cases(lambda _route, _field: True))
def test_a_misspelt_field_is_refused_with_the_near_miss(ask: Ask, route: ApiRoute, name: str) -> None:
    """Its last letter is typed twice."""
    number, words = ask(route, {name + name[-1]: "1"})
    assert (number, f"Did you mean {name}?" in words) == (400, True), words


@pytest.mark.parametrize(("route", "name"), cases(lambda route, field: route.method != READ or not is_text(field)))
def test_a_value_of_a_wrong_type_is_refused_by_name(ask: Ask, route: ApiRoute, name: str) -> None:
    """In a query, where every value is a text: a word that is no number and no truth."""
    wrong = "many" if route.method == READ else [[1]]
    number, words = ask(route, filled(route) | {name: wrong})
    assert (number, f"{name} must be " in words) == (400, True), words


@pytest.mark.parametrize(("route", "name"), cases(lambda _route, field: field.required))
def test_a_field_that_is_needed_is_asked_for(ask: Ask, route: ApiRoute, name: str) -> None:
    """Whether it is left out or null; with an example of what to send."""
    others = {key: value for key, value in filled(route).items() if key != name}
    for given in (others, others | {name: None}):
        number, words = ask(route, given)
        assert (number, f"{name} is missing" in words, f'{{"{name}": "…"}}' in words) == (400, True, True), words


@pytest.mark.parametrize("route", [each for each in CHECKED if each.method == READ], ids=lambda route: route.path)
@pytest.mark.parametrize("header", [(b"content-length", b"2"), (b"transfer-encoding", b"chunked")])
def test_a_body_of_a_request_that_reads_is_refused(ask: Ask, route: ApiRoute, header: tuple[bytes, bytes]) -> None:
    """Whoever puts parameters there would read an answer to another question."""
    number, words = ask(route, filled(route), header)
    assert (number, words.partition(" `")[0]) == (
        400,
        "A request that reads has no body. Give parameters in its address.",
    )


def test_the_brief_of_a_task_is_not_lost(ask: Ask) -> None:
    """A misspelt brief was once a task without one."""
    [route] = [each for each in ROUTES if (each.method, each.path) == ("POST", "/tasks")]
    assert ask(route, {"path": "/", "title": "Fix it", "breif": "Soon."}) == (
        400,
        "'breif' is not a key of this request. Did you mean brief? `GET /openapi.json` describes every request.",
    )

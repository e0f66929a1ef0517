"""The API, described for programs from its own table of routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core import requests
from windlass.core.agents.grants import Grant
from windlass.web.route import READ, ApiRoute

VERSION = "3.1.0"
_CALLERS = {Grant.PERSON: "people", Grant.RUN: "agents"}
_PARAMETER = re.compile(r"{(\w+)}")


class Problem(msgspec.Struct):
    kind: str
    message: str
    hint: str


class ErrorAnswer(msgspec.Struct):
    error: Problem


def describe(routes: Sequence[ApiRoute], *, version: str) -> dict[str, Any]:
    """The whole description."""
    kinds = [ErrorAnswer, *(kind for route in routes for kind in (route.given or requests.Request, route.answer))]
    (refusal, *found), components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for route, given, answer in zip(routes, found[::2], found[1::2], strict=True):
        operation = _operation(route) | {
            "responses": {
                "2XX": {"description": "As asked.", "content": _json(answer)},
                "default": {"description": "Why not, and what to do next.", "content": _json(refusal)},
            }
        }
        if route.method != READ:
            operation["requestBody"] = {"content": _json(given)}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    about = (
        "HTTP on the daemon's Unix socket. Who calls is known by the connection: a process inside a run is that agent."
    )
    return {
        "openapi": VERSION,
        "info": {"title": "Windlass", "version": version, "description": about},
        "servers": [{"url": "http://windlass", "description": "the socket daemon.sock in the home"}],
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    summary, _, more = (route.verb.__doc__ or "").strip().partition("\n")
    query = requests.describe(route.given)["properties"] if route.given and route.method == READ else {}
    names = {name: {"type": "string"} for name in _PARAMETER.findall(route.path)}
    return {
        "operationId": f"{route.verb.__module__.rpartition('.')[2]}_{route.verb.__name__}",
        "summary": summary,
        "x-callers": _CALLERS.get(route.grant, "people and agents"),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": names[name]} for name in names),
            *({"name": name, "in": "query", "required": False, "schema": query[name]} for name in query),
        ],
        **({"description": " ".join(more.split())} if more.strip() else {}),
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

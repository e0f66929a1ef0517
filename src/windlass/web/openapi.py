"""The API, described for programs from its own table of rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from windlass.web import schemas
from windlass.web.route import READ, ApiRoute
from windlass.web.schemas import Schema

VERSION = "3.1.0"
_PARAMETER = re.compile(r"{(\w+)}")


def describe(rules: Iterable[ApiRoute], *, version: str) -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for rule in rules:
        paths.setdefault(rule.path, {})[rule.method.lower()] = _operation(rule)
    about = (
        "HTTP on the daemon's Unix socket. Who calls is known by the connection: a process inside a run is that agent."
    )
    return {
        "openapi": VERSION,
        "info": {"title": "Windlass", "version": version, "description": about},
        "servers": [{"url": "http://windlass", "description": "the socket daemon.sock in the home"}],
        "paths": paths,
    }


def _operation(rule: ApiRoute) -> dict[str, Any]:
    summary, _, more = (rule.verb.__doc__ or "").strip().partition("\n")
    operation: dict[str, Any] = {
        "operationId": f"{rule.verb.__module__.rpartition('.')[2]}_{rule.verb.__name__}",
        "summary": summary,
        "x-callers": "people and agents" if rule.by_runs else "people",
        "parameters": [*_in_path(rule.path), *_in_query(rule.asks)],
        "responses": {
            "2XX": _answer("As asked.", rule.gives or schemas.ANYTHING),
            "default": _answer("Why not, and what to do next.", schemas.ERROR),
        },
    }
    if more.strip():
        operation["description"] = " ".join(more.split())
    if rule.method != READ:
        operation["requestBody"] = {"content": _json(rule.takes or schemas.ANYTHING)}
    return operation


def _in_path(path: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": schemas.TEXT} for name in _PARAMETER.findall(path)]


def _in_query(asks: Mapping[str, Schema]) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "required": False, "schema": each} for name, each in asks.items()]


def _answer(words: str, schema: Schema) -> dict[str, Any]:
    return {"description": words, "content": _json(schema)}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

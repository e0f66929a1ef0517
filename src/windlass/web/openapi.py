"""The API, described for programs from its own table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from windlass.core import requests
from windlass.web import schemas
from windlass.web.route import READ, ApiRoute
from windlass.web.schemas import Schema

VERSION = "3.1.0"
_PARAMETER = re.compile(r"{(\w+)}")


def describe(rules: Iterable[ApiRoute], *, version: str) -> dict[str, Any]:
    """The whole description."""
    rules = list(rules)
    kinds = [rule.given or dict[str, Any] for rule in rules]
    found, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for rule, schema in zip(rules, found, strict=True):
        paths.setdefault(rule.path, {})[rule.method.lower()] = _operation(rule, schema)
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


def _operation(rule: ApiRoute, schema: Schema) -> dict[str, Any]:
    summary, _, more = (rule.verb.__doc__ or "").strip().partition("\n")
    reads = rule.given if rule.method == READ else None
    names = rule.asks or (requests.describe(reads)["properties"] if reads else {})
    operation: dict[str, Any] = {
        "operationId": f"{rule.verb.__module__.rpartition('.')[2]}_{rule.verb.__name__}",
        "summary": summary,
        "x-callers": "people and agents" if rule.by_runs else "people",
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _PARAMETER.findall(rule.path)
            ),
            *({"name": name, "in": "query", "required": False, "schema": each} for name, each in names.items()),
        ],
        "responses": {
            "2XX": _answer("As asked.", rule.gives or schemas.ANYTHING),
            "default": _answer("Why not, and what to do next.", schemas.ERROR),
        },
    }
    if more.strip():
        operation["description"] = " ".join(more.split())
    if rule.method != READ:
        operation["requestBody"] = {"content": _json(rule.takes or schema)}
    return operation


def _answer(words: str, schema: Schema) -> dict[str, Any]:
    return {"description": words, "content": _json(schema)}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

"""A route of the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from windlass.web.request import Call
from windlass.web.schemas import Schema

READ, WRITE = "GET", "POST"


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """How it is called, the verb behind it, whether agents may call it, too; and what goes in and comes out."""

    method: str
    path: str
    verb: Callable[[Call], Awaitable[Response]]
    by_runs: bool = False
    asks: Mapping[str, Schema] = field(default_factory=dict)
    """What its query may say."""
    takes: Schema | None = None
    """Its request's body, where that is described."""
    gives: Schema | None = None
    """Its answer, where that is described."""

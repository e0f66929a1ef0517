"""A route of the API. Its handler's annotations say what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from starlette.responses import Response

from windlass.core.agents.grants import Grant
from windlass.core.requests import Request
from windlass.web.http_io import LARGEST_BODY

READ, WRITE = "GET", "POST"


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """How it is called, its handler, whom it is for, and the number of its answer."""

    method: str
    path: str
    verb: Callable[..., Awaitable[Any]]
    grant: Grant = Grant.PERSON
    status: int = 200
    largest: int = LARGEST_BODY
    """Bytes that the body may have."""

    @property
    def given(self) -> type[Request] | None:
        """The query of a route that reads, the body of one that writes; None for a handler that takes nothing."""
        found: type[Request] | None = get_type_hints(self.verb).get("given")
        return found

    @property
    def answer(self) -> Any:
        """The type of the answer; of a stream, any object."""
        found = get_type_hints(self.verb)["return"]
        return dict[str, Any] if found is Response else found

"""HTTP in and out: queries, bodies, answers, errors and streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, get_origin

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from windlass.core import codec, requests
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TimedOut, Unavailable, WindlassError

LARGEST_BODY = 4_000_000

DESCRIBED = "`GET /openapi.json` describes every request."

NUMBERS: dict[type[WindlassError], int] = {
    BadInput: 400,
    NotAllowed: 403,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
    TimedOut: 504,
}
"""The HTTP number of each error; nowhere else."""


def answer(value: Any, *, status: int = 200) -> Response:
    return Response(codec.encode(value), status_code=status, media_type="application/json")


def refusal(error: WindlassError) -> Response:
    kind = next(each for each in type(error).__mro__ if each in NUMBERS or each is WindlassError)
    body = {"error": {"kind": kind.__name__, "message": str(error), "hint": error.hint}}
    response = answer(body, status=NUMBERS.get(kind, 500))
    response.headers["Connection"] = "close"  # the rest of a refused request is not read
    return response


def query(request: Request, kind: type[requests.R]) -> requests.R:
    """The parameters of a request, checked. A body beside them would be left out silently."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise BadInput("A request that reads has no body.", hint=f"Give parameters in its address. {DESCRIBED}")
    given = dict(request.query_params)
    return requests.read(kind, given, noun="a parameter of this request", hint=DESCRIBED, texts=True)


def body(content: bytes, kind: type[requests.R]) -> requests.R | Mapping[str, Any]:
    """The JSON object of a request, checked; any object for a handler that takes a dictionary."""
    given = _json_object(content)
    if get_origin(kind) is dict:
        return given
    return requests.read(kind, given, noun="a key of this request", hint=DESCRIBED)


def _json_object(content: bytes) -> Mapping[str, Any]:
    """The JSON object of a request."""
    try:
        value = codec.decode(content or b"{}")
        json.loads(content or b"{}", object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The request is not JSON that can be read: {error}.") from error
    if not isinstance(value, dict):
        raise BadInput("The request is not a JSON object.")
    return value


async def content(request: Request, largest: int) -> bytes:
    """The body as it comes. Raises BadInput for one that is too long."""
    try:
        return await _whole(request, largest)
    except ClientDisconnect as error:
        raise Unavailable("The caller hung up before its request was whole.") from error


async def _whole(request: Request, largest: int) -> bytes:
    """The body. One that is somewhat too long is read to its end, so that its sender reads why it is refused."""
    found, length = bytearray(), 0
    async for part in request.stream():
        length += len(part)
        if length <= largest:
            found += part
        elif length > 4 * largest:
            break
    if length > largest:
        raise BadInput(
            f"The request has more than {largest} bytes.",
            hint="A message has at most 1000000, a document 4000000: put the text into a file, and say where it is.",
        )
    return bytes(found)


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a key twice: programs differ in which of the two they take."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")


def lines(values: AsyncIterator[Any]) -> Response:
    """A stream of JSON lines."""

    async def encoded() -> AsyncIterator[bytes]:
        async for value in values:
            yield codec.encode(value) + b"\n"

    return StreamingResponse(encoded(), media_type="application/x-ndjson")

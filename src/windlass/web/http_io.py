"""How values go over the wire: answers, errors, bodies and streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from windlass.core import codec, requests
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TimedOut, Unavailable, WindlassError

LARGEST_BODY = 4_000_000
PATIENCE = 30.0
"""Seconds in which a request must be whole."""

EXPECTED = "windlass.expected"
"""Where a request keeps the keys that its body may have."""
DESCRIBED = "`GET /openapi.json` describes every request."

LONGEST_WAIT = 60.0
"""Seconds that one request may wait for something to be said; whoever has more time asks again."""

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


def listing(items: list[Any], *, now: float) -> Response:
    """A list, and when it was true."""
    return answer({"as_of": now, "items": items})


def refusal(error: WindlassError) -> Response:
    kind = next(each for each in type(error).__mro__ if each in NUMBERS or each is WindlassError)
    body = {"error": {"kind": kind.__name__, "message": str(error), "hint": error.hint}}
    response = answer(body, status=NUMBERS.get(kind, 500))
    response.headers["Connection"] = "close"  # nobody reads on what was refused
    return response


def query(request: Request, kind: type[requests.R]) -> requests.R:
    """The parameters of a request, checked."""
    given = dict(request.query_params)
    return requests.read(kind, given, noun="a parameter of this request", hint=DESCRIBED, texts=True)


async def body(request: Request, kind: type[requests.R], largest: int) -> requests.R | Mapping[str, Any]:
    """The JSON object of a request, checked; any object, where the handler reads it by itself."""
    given = await json_object(request, largest)
    if not issubclass(kind, requests.Request):
        return given
    return requests.read(kind, given, noun="a key of this request", hint=DESCRIBED)


async def json_object(request: Request, largest: int = LARGEST_BODY) -> Mapping[str, Any]:
    """The JSON object of a request."""
    try:
        async with asyncio.timeout(PATIENCE):
            content = await _content(request, largest)
    except TimeoutError as error:
        raise TimedOut(f"The request was not whole after {PATIENCE:.0f} s.") from error
    try:
        value = codec.decode(content or b"{}")
        json.loads(content or b"{}", object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The request is not JSON that can be read: {error}.") from error
    if not isinstance(value, dict):
        raise BadInput("The request is not a JSON object.")
    expected = request.scope.get(EXPECTED)
    if expected is not None:
        _refuse_strangers(value, expected, "is not a key of this request")
    return value


def expect(request: Request, keys: Iterable[str]) -> None:
    """Let a request's body have these keys and no others: one that is misspelt would be left out silently."""
    request.scope[EXPECTED] = tuple(keys)


def check_query(request: Request, keys: Iterable[str]) -> None:
    """Refuse a parameter that nobody reads."""
    _refuse_strangers(request.query_params.keys(), keys, "is not a parameter of this request")


def _refuse_strangers(given: Iterable[str], known: Iterable[str], words: str) -> None:
    known = tuple(known)
    for each in given:
        if each not in known:
            raise BadInput(f"{each[:80]!r} {words}.", hint=f"{near_miss(each, known)} {DESCRIBED}".strip())


async def _content(request: Request, largest: int) -> bytes:
    """The body. What is somewhat too long is read to its end, so that its sender can hear why it is refused."""
    content, length = bytearray(), 0
    async for part in request.stream():
        length += len(part)
        if length <= largest:
            content += part
        elif length > 4 * largest:
            break
    if length > largest:
        raise BadInput(
            f"The request has more than {largest} bytes.",
            hint="A message has at most 1000000, a document 4000000: put the text into a file, and say where it is.",
        )
    return bytes(content)


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object in which a key stands twice: readers differ in which of them they take."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")


def text(values: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A text from a request's body."""
    value = values.get(key, default)
    if not isinstance(value, str):
        words = f"{key} must be a text." if key in values else f"{key} is missing."
        raise BadInput(words, hint=f'Send JSON such as {{"{key}": "…"}}. {DESCRIBED}')
    return value


def options(values: Mapping[str, Any]) -> dict[str, str]:
    """What a provider is given besides, from a request's body."""
    given = values.get("options", {})
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise BadInput("options must be an object of texts.")
    return given


def texts(values: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts, at least one, from a request's body."""
    value = values.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise BadInput(f"{key} must be a list of texts.")
    return value


def truth(values: Mapping[str, Any], key: str) -> bool:
    """Whether something is so, from a request's body; nothing said means no."""
    value = values.get(key, False)
    if not isinstance(value, bool):
        raise BadInput(f"{key} must be true or false.")
    return value


def number(request: Request, key: str, default: int, *, least: int = 0) -> int:
    """A whole number from a request's query."""
    given = request.query_params.get(key)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 18 or int(given) < least:
        wanted = f"a whole number of at least {least}" if least else "a whole number"
        raise BadInput(f"{key} must be {wanted}, not {given[:40]!r}.")
    return int(given)


def last_event(request: Request, default: int) -> int:
    """Where a client of server-sent events was cut off, by the header that it sends then."""
    given = request.headers.get("last-event-id", "").strip()
    return int(given) if given.isdecimal() and len(given) <= 18 else default


def seconds(request: Request, key: str) -> float | None:
    """A span of time from a request's query."""
    given = request.query_params.get(key)
    try:
        return None if given is None else abs(float(given))
    except ValueError:
        raise BadInput(f"{key} must be a number of seconds, not {given!r}.") from None


def patience(request: Request) -> float:
    """How long a caller wants to wait, at most as long as we let it; nothing said means not at all."""
    given = seconds(request, "timeout") or 0.0
    if given != given:  # noqa: PLR0124 - the only number that is not itself is none
        raise BadInput("timeout must be a number of seconds.")
    return min(given, LONGEST_WAIT)


def flag(request: Request, key: str) -> bool:
    return request.query_params.get(key, "0") not in ("", "0", "false")


def lines(values: AsyncIterator[Any]) -> Response:
    """A stream of JSON lines."""

    async def encoded() -> AsyncIterator[bytes]:
        async for value in values:
            yield codec.encode(value) + b"\n"

    return StreamingResponse(encoded(), media_type="application/x-ndjson")

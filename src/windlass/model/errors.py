"""Errors of a model's server as kinds of run trouble."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pydantic_ai import exceptions as library

from windlass.core.nouns.run import TroubleKind

_KINDS: tuple[tuple[type[Exception], TroubleKind], ...] = (
    (library.ModelAuthenticationError, TroubleKind.AUTH),
    (library.ModelContextWindowExceededError, TroubleKind.CONTEXT),
    (library.ModelQuotaExceededError, TroubleKind.BILLING),
    (library.ModelRateLimitError, TroubleKind.THROTTLE),
    (library.ModelUnavailableError, TroubleKind.OVERLOAD),
    (library.ModelServerError, TroubleKind.OVERLOAD),
    (library.ModelConnectionError, TroubleKind.OVERLOAD),
    (library.ModelRequestTimeout, TroubleKind.OVERLOAD),
)
LONG = 600.0
"""A wait of more seconds than this is no throttle: the allowance is used up."""
LONGEST_WAIT = 40 * 86400.0
LONGEST = 500


def told(error: Exception) -> tuple[TroubleKind, str, float | None]:
    """The kind, a sentence, and until when, where that is known."""
    kind = next((kind for each, kind in _KINDS if isinstance(error, each)), TroubleKind.ERROR)
    until = _until(error) if kind in (TroubleKind.THROTTLE, TroubleKind.BILLING) else None
    if until is not None:
        return TroubleKind.QUOTA, sentence(error), until
    return kind, sentence(error), None


def sentence(error: Exception) -> str:
    """What the other side said, on one line."""
    body = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    said = _said(body) or str(error) or type(error).__name__
    return " ".join(f"{f'{status}: ' if status else ''}{said}".split())[:LONGEST]


def _said(body: object) -> str:
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error")
    about = inner if isinstance(inner, Mapping) else body
    words = about.get("message")
    kind = about.get("code") or about.get("type")
    if not isinstance(words, str) or not words:
        return ""
    return f"{words} ({kind})" if isinstance(kind, str) and kind else words


def _until(error: Exception) -> float | None:
    """When the allowance is there again; nothing if it is only a matter of seconds."""
    now, headers = time.time(), getattr(error, "headers", None)
    candidates = _of_body(getattr(error, "body", None))
    if isinstance(headers, Mapping):  # vendors have names of their own; those that say it in seconds are understood
        candidates += [float(at) for name, at in headers.items() if "reset" in name and str(at).isdecimal()]
    wait = getattr(error, "retry_after", None)
    if isinstance(wait, int | float):
        candidates.append(now + wait)
    return max((candidate for candidate in candidates if LONG <= candidate - now <= LONGEST_WAIT), default=None)


def _of_body(body: Any) -> list[float]:
    about = body.get("error", body) if isinstance(body, Mapping) else {}
    at = about.get("resets_at") if isinstance(about, Mapping) else None
    return [float(at)] if isinstance(at, int | float) else []

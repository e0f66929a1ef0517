"""Redact secrets in the output of runs. Each keeps its length, so that offsets stay true."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

SHORTEST = 8
"""Shorter values are not redacted: they would be found everywhere."""

T = TypeVar("T")

_SECRET_NAME = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)(_|$)", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a variable is named like one that holds a secret."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Knows some secrets, as they are and as JSON writes them, and makes them unreadable."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        long = {secret for secret in secrets if len(secret) >= SHORTEST}
        told = {json.dumps(secret, ensure_ascii=plain)[1:-1] for secret in long for plain in (True, False)}
        self._secrets = sorted(secret.encode("utf-8", "surrogateescape") for secret in long | told)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def feed(self, content: bytes, *, last: bool = False) -> bytes:
        """Redact the content up to an end that may be the first part of a secret: feed that again, with more.

        With `last`, nothing is left out.
        """
        found = self._found(content)
        return _covered(content, found)[: len(content) if last else self._safe_end(content, found)]

    def whole(self, value: T) -> T:
        """The same value, with every text in it redacted."""
        return cast(T, self._whole(value)) if self._secrets else value

    def text(self, text: str) -> str:
        clean = self.feed(text.encode("utf-8", "surrogatepass"), last=True)
        return clean.decode("utf-8", "surrogatepass")

    def _whole(self, value: Any) -> Any:
        if isinstance(value, str):
            clean = self.text(value)
            return value if clean == value else clean
        if isinstance(value, tuple | list):
            return type(value)(self._whole(item) for item in value)
        if isinstance(value, Mapping):
            return {self._whole(key): self._whole(item) for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field.name: self._whole(getattr(value, field.name)) for field in fields(value)})
        return value

    def _found(self, content: bytes) -> list[tuple[int, int]]:
        """The places of secrets, also where they overlap."""
        found = []
        for secret in self._secrets:
            at = content.find(secret)
            while at >= 0:
                found.append((at, at + len(secret)))
                at = content.find(secret, at + 1)
        return found

    def _safe_end(self, content: bytes, found: list[tuple[int, int]]) -> int:
        """The end before which no secret is cut off."""
        end = len(content) - max((_begun(secret, content) for secret in self._secrets), default=0)
        while split := [start for start, stop in found if start < end < stop]:
            end = min(split)
        return end


def _begun(secret: bytes, content: bytes) -> int:
    """How many bytes at the end of the content are the first part of a secret."""
    longest = min(len(secret) - 1, len(content))
    return next((length for length in range(longest, 0, -1) if content.endswith(secret[:length])), 0)


def _covered(content: bytes, found: list[tuple[int, int]]) -> bytes:
    if not found:
        return content
    clean = bytearray(content)
    for start, stop in found:
        clean[start:stop] = b"*" * (stop - start)
    return bytes(clean)

"""Values to JSON and back."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """Any noun, or builtins, as compact JSON."""
    return _encoder.encode(value)


def decode(text: bytes | str) -> Any:
    """JSON as builtins."""
    return msgspec.json.decode(text)


def plain(value: Any) -> Any:
    """A noun as dictionaries, lists and scalars."""
    return msgspec.to_builtins(value)


def revive(kind: type[T], value: Any) -> T:
    """Builtins as a noun."""
    return msgspec.convert(value, kind, strict=False)

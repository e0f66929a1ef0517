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


def learn(kind: type[Any]) -> None:
    """Get ready to revive this kind. Two threads that both revive the first of a kind would crash: msgspec lets the
    second use what it knows of a class while the first has only half of it."""
    msgspec.json.Decoder(kind)


def revive(kind: type[T], value: Any) -> T:
    """Builtins as a noun."""
    return msgspec.convert(value, kind, strict=False)

"""How the output of a run that has ended is kept: packed, if that makes it smaller."""

from __future__ import annotations

import zlib

AS_IT_CAME, ZLIB, WHOLE = "", "zlib", "whole"
"""The forms of kept output; the last was looked at, and packing would not make it smaller."""


def pack(content: bytes) -> tuple[str, bytes]:
    """Some output in its smaller form."""
    packed = zlib.compress(content)
    return (ZLIB, packed) if len(packed) < len(content) else (WHOLE, content)


def unpack(form: str, content: bytes, length: int) -> bytes:
    """The output as it came. Raises ValueError if that can't be had any more."""
    try:
        whole = zlib.decompress(content) if form == ZLIB else content
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(whole) != length:
        raise ValueError(f"{len(whole)} bytes instead of {length}")
    return whole

"""A file of keys and values as a tree: each part has its place, and each value is the text as written.

Scripted agents start through this module, so it imports little: no dataclasses here.
"""

from __future__ import annotations

from typing import NamedTuple

Place = tuple[int, int]
"""Line and column, both from 1."""

TOP: Place = (1, 1)


class Leaf(NamedTuple):
    """A text, as it is written."""

    text: str
    at: Place = TOP
    plain: bool = True
    """Whether it is written without quotes, on its own line."""
    spots: tuple[Place, ...] = ()
    """The place of each `${{` in the text."""


class Items(NamedTuple):
    """A list."""

    items: tuple[Node, ...] = ()
    at: Place = TOP


class Keys(NamedTuple):
    """Keys with values, in order, each key once."""

    entries: tuple[tuple[Leaf, Node], ...] = ()
    at: Place = TOP


Node = Leaf | Items | Keys

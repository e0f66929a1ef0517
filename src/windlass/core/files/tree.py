"""A file of keys and values as a tree, each part with its place. Values are as they are written: nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass

Place = tuple[int, int]
"""Line and column, both from 1."""

TOP: Place = (1, 1)

_NOTHING = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text, as it is written."""

    text: str
    at: Place = TOP
    plain: bool = True
    """Whether it stands without quotes, on its own line."""
    spots: tuple[Place, ...] = ()
    """Where each `${{` of the text stands."""

    @property
    def is_nothing(self) -> bool:
        return self.plain and self.text in _NOTHING


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...] = ()
    at: Place = TOP


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys with values, in order, each key once."""

    entries: tuple[tuple[Leaf, Node], ...] = ()
    at: Place = TOP


Node = Leaf | Items | Keys

"""Takes values out of a tree of keys, and notes each value that does not fit, with its place and the near miss.

Scripted agents start through this module, so it imports little: no dataclasses here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.problems import Gravity, Notes
from windlass.core.files.tree import TOP, Items, Keys, Leaf, Node, Place
from windlass.core.files.values import seconds, truth, whole_number

Word = TypeVar("Word", bound=StrEnum)
T = TypeVar("T")

LONGEST_LINE = 4000
MOST_PARTS = 100
"""Agents, parameters, tasks or commands of one file, and texts of one list."""


class Section:
    """The keys of one part of a file."""

    nothing: tuple[str, ...] = ("", "~", "null", "Null", "NULL")
    """Words that count as no value, unless they are quoted."""

    def __init__(self, notes: Notes, path: str, node: Node | None, at: Place = TOP) -> None:
        self.notes = notes
        self.path = path
        self.at = node.at if node else at
        self._entries = {key.text: (key, value) for key, value in node.entries} if isinstance(node, Keys) else {}
        self._unusable = node is not None and not isinstance(node, Keys)
        self._meant: set[str] = set()
        """Near misses of unknown keys: these keys are not reported as missing."""

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def field(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def node(self, key: str) -> Node | None:
        """The value of a key; None if the key is missing or its value is nothing."""
        value = self._entries[key][1] if key in self._entries else None
        return None if isinstance(value, Leaf) and value.plain and value.text in self.nothing else value

    def place(self, key: str) -> Place:
        """The place of a value, or of its key if the value is nothing; for a missing key, of the section."""
        if key not in self._entries:
            return self.at
        value = self.node(key)
        return value.at if value else self.key_place(key)

    def key_place(self, key: str) -> Place:
        return self._entries[key][0].at

    def refuse(self, key: str, words: str, remedy: str = "", at: Place | None = None) -> None:
        """Note an error at the value of a key, or at a place within it."""
        self.notes.refuse(at or self.place(key), self.field(key), words, remedy)

    def warn(self, key: str, words: str, remedy: str = "", at: Place | None = None) -> None:
        """Note a warning at the value of a key, or at a place within it."""
        self.notes.warn(at or self.place(key), self.field(key), words, remedy)

    def only(
        self, known: Collection[str], explained: Mapping[str, str] | None = None, gravity: Gravity = Gravity.ERROR
    ) -> None:
        """Note every key that is not known."""
        for key in self._entries:
            if self.notes.full:
                return
            if key in known or (not self.path and key.startswith("x-")):
                continue
            hint = (explained or {}).get(key) or near_miss(key, known) or f"The keys are {', '.join(known)}."
            words = "there is no such key." if gravity is Gravity.ERROR else "there is no such key, so it is ignored."
            if gravity is Gravity.ERROR:
                self._meant.add(hint.removeprefix("Did you mean ").removesuffix("?"))
            self.notes.refuse(self.key_place(key), self.field(key), words, hint, gravity)

    def require(self, *keys: str) -> None:
        """Note each of these keys that is missing."""
        for key in keys:
            if key not in self._entries and key not in self._meant:
                self.refuse(key, "is missing.")

    def text(self, key: str, *, required: str = "", blank: bool = False) -> str:
        """A text. `required` says what to write if it is missing; `blank` allows an empty text in quotes."""
        value = self.node(key)
        if isinstance(value, Leaf) and (blank or value.text.strip()):
            return value.text
        if value is not None and not isinstance(value, Leaf):
            self.refuse(key, f"must be a text, not {kind_of(value)}.")
        elif key in self._entries and (required or value is not None):
            self.refuse(key, "is empty.", required)
        elif required and key not in self._meant and not self._unusable:
            self.refuse(key, "is missing.", required)
        return ""

    def line(self, key: str, most: int = LONGEST_LINE, *, required: str = "") -> str:
        """A text of at most so many characters, brought onto one line."""
        text = " ".join(self.text(key, required=required).split())
        if len(text) > most:
            self.refuse(key, f"has {len(text)} characters; at most {most} are allowed.")
        return text

    def checked(self, key: str, check: Callable[[str], T], default: T, *, required: str = "") -> T:
        """A text that a function turns into a value. The function may raise BadInput."""
        text = self.text(key, required=required)
        try:
            return check(text) if text else default
        except BadInput as error:
            self.refuse(key, str(error), error.hint)
            return default

    def flag(self, key: str, *, default: bool) -> bool:
        return self.checked(key, truth, default)

    def whole(self, key: str) -> int | None:
        """A whole number above 0."""
        number = self.checked(key, whole_number, None)
        if number is not None and number < 1:
            self.refuse(key, f"must be at least 1, not {number}.")
        return number

    def seconds(self, key: str) -> float | None:
        """A span of time such as 90s, 10m or 2h."""
        return self.checked(key, seconds, None)

    def word(self, key: str, known: type[Word], default: Word) -> Word:
        """One of a few words."""
        text = self.text(key)
        if text and text not in list(known):
            *most, last = known
            self.refuse(key, f"must be {', '.join(most)} or {last}, not {text!r}.", near_miss(text, list(known)))
            return default
        return known(text) if text else default

    def texts(self, key: str) -> list[Leaf]:
        """A list of texts; one text is split at its commas."""
        value = self.node(key)
        found: list[Leaf] = []
        if isinstance(value, Leaf):
            found = [Leaf(part.strip(), value.at) for part in value.text.split(",")]
        elif isinstance(value, Items) and all(isinstance(item, Leaf) for item in value.items):
            found = [item for item in value.items if isinstance(item, Leaf)]
        elif value is not None:
            self.refuse(key, "must be a list of texts.", "Write it such as [one, two].")
        self._count(key, len(found))
        return [leaf for leaf in found[:MOST_PARTS] if leaf.text.strip()]

    def lines(self, key: str) -> tuple[str, ...]:
        """A list of texts, each brought onto one line, and each once."""
        return tuple(dict.fromkeys(" ".join(leaf.text.split()) for leaf in self.texts(key)))

    def spot(self, key: str, number: int) -> Place:
        """The place of the `${{` with this number in a text."""
        value = self.node(key)
        spots = value.spots if isinstance(value, Leaf) else ()
        return spots[number] if number < len(spots) else self.place(key)

    def section(self, key: str) -> Section:
        """The keys below a key."""
        value = self.node(key)
        if value is not None and not isinstance(value, Keys):
            remedy = f"Write `key: value` below it{', without dashes' if isinstance(value, Items) else ''}."
            self.refuse(key, f"must be keys with values, not {kind_of(value)}.", remedy)
        return type(self)(self.notes, self.field(key), value, self.place(key))

    def sections(self, key: str) -> list[tuple[str, Section]]:
        """The sections below a key, each with its name."""
        above = self.section(key)
        self._count(key, len(above._entries))
        return [(name, above.section(name)) for name in list(above)[:MOST_PARTS]]

    def _count(self, key: str, number: int) -> None:
        if number > MOST_PARTS:
            self.refuse(key, f"has {number} parts; at most {MOST_PARTS} are read.")

    def listed(self, key: str) -> list[Section]:
        value = self.node(key)
        if value is not None and not isinstance(value, Items):
            self.refuse(key, f"must be a list, not {kind_of(value)}.", "Begin each part with a dash.")
            return []
        items, found = (value.items if value else ()), []
        self._count(key, len(items))
        for number, item in enumerate(items[:MOST_PARTS]):
            path = f"{self.field(key)}[{number}]"
            if isinstance(item, Keys):
                found.append(Section(self.notes, path, item))
            else:
                words = f"must be keys with values, not {kind_of(item)}."
                self.notes.refuse(item.at, path, words, "Write `- key: value`.")
        return found


def kind_of(node: Node) -> str:
    """A node's kind of value, for people."""
    match node:
        case Keys():
            return "keys with values"
        case Items():
            return "a list"
    line = " ".join(node.text.split())
    if node.plain and line in Section.nothing:
        return "nothing"
    return repr(line if len(line) <= 40 else f"{line[:39]}…")

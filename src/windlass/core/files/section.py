"""Taking values out of a tree of keys: each says what it wants, and what does not fit is noted with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from windlass.core.address import RESERVED, check_name
from windlass.core.agents.definition import FileProblem, Gravity
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.params import truth, whole_number
from windlass.core.files.template import Template, parse
from windlass.core.files.tree import TOP, Items, Keys, Leaf, Node, Place

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|min|h|d)?", re.ASCII)
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}

Word = TypeVar("Word", bound=StrEnum)


MOST_PROBLEMS = 100
"""Errors that are told of one file, and as many warnings."""
MOST_PARTS = 100
"""Agents, parameters, tasks or commands of one file, and texts of one list."""


class Notes:
    """All that is wrong with one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[FileProblem] = []
        self._counted = Counter[Gravity]()

    def refuse(self, at: Place, field: str, words: str, remedy: str = "", gravity: Gravity = Gravity.ERROR) -> None:
        if self._counted[gravity] >= MOST_PROBLEMS:
            return
        self._counted[gravity] += 1
        line, column = at
        self.problems.append(
            FileProblem(
                file=self.file, line=line, column=column, field=field, words=words, remedy=remedy, gravity=gravity
            )
        )

    def warn(self, at: Place, field: str, words: str, remedy: str = "") -> None:
        self.refuse(at, field, words, remedy, Gravity.WARNING)

    @property
    def full(self) -> bool:
        """Whether there are errors enough: whoever looks for more, or for the near miss, need not."""
        return self._counted[Gravity.ERROR] >= MOST_PROBLEMS

    @property
    def spoilt(self) -> bool:
        return self._counted[Gravity.ERROR] > 0


class Section:
    """The keys of one part of a file."""

    def __init__(self, notes: Notes, path: str, node: Node | None, at: Place = TOP) -> None:
        self.notes = notes
        self.path = path
        self.at = node.at if node else at
        self._entries = {key.text: (key, value) for key, value in node.entries} if isinstance(node, Keys) else {}
        self._unusable = node is not None and not isinstance(node, Keys)
        self._meant: set[str] = set()
        """Keys that were probably meant by those that are not known: they are not missed as well."""

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def field(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def node(self, key: str) -> Node | None:
        """What a key holds; None where it is not there, or holds nothing."""
        value = self._entries[key][1] if key in self._entries else None
        return None if isinstance(value, Leaf) and value.is_nothing else value

    def place(self, key: str) -> Place:
        """Where a value stands; a missing one is missed where the part begins."""
        if key not in self._entries:
            return self.at
        found, value = self._entries[key]
        return found.at if isinstance(value, Leaf) and value.is_nothing else value.at

    def key_place(self, key: str) -> Place:
        return self._entries[key][0].at

    def refuse(self, key: str, words: str, remedy: str = "") -> None:
        self.notes.refuse(self.place(key), self.field(key), words, remedy)

    def warn(self, key: str, words: str, remedy: str = "") -> None:
        self.notes.warn(self.place(key), self.field(key), words, remedy)

    def only(self, known: Collection[str], explained: Mapping[str, str] | None = None) -> None:
        """Note every key that is not known."""
        for key in self._entries:
            if self.notes.full:
                return
            if key in known or (not self.path and key.startswith("x-")):
                continue
            hint = (explained or {}).get(key) or near_miss(key, known) or f"The keys are {', '.join(known)}."
            self._meant.add(hint.removeprefix("Did you mean ").removesuffix("?"))
            self.notes.refuse(self.key_place(key), self.field(key), "there is no such key.", hint)

    def text(self, key: str, *, required: str = "") -> str:
        """A text; where one is required, the words say what for."""
        value = self.node(key)
        if isinstance(value, Leaf) and value.text.strip():
            return value.text
        if value is not None and not isinstance(value, Leaf):
            self.refuse(key, f"must be a text, not {kind_of(value)}.")
        elif key in self._entries and (required or value is not None):
            self.refuse(key, "is empty.", required)
        elif required and key not in self._meant and not self._unusable:
            self.refuse(key, "is missing.", required)
        return ""

    def line(self, key: str, most: int) -> str:
        """A short text, brought onto one line."""
        text = " ".join(self.text(key).split())
        if len(text) > most:
            self.refuse(key, f"has {len(text)} characters; at most {most} are allowed.")
        return text

    def checked(self, key: str, check: Callable[[str], str], default: str = "") -> str:
        """A text that a function checks, which may raise BadInput."""
        text = self.text(key)
        try:
            return check(text) if text else default
        except BadInput as error:
            self.refuse(key, str(error), error.hint)
            return default

    def flag(self, key: str, *, default: bool) -> bool:
        return self.checked(key, truth, "true" if default else "false") == "true"

    def whole(self, key: str) -> int | None:
        """A number above nothing."""
        text = self.checked(key, whole_number)
        if text and int(text) < 1:
            self.refuse(key, f"must be at least 1, not {text}.")
        return int(text) if text else None

    def seconds(self, key: str) -> float | None:
        """A span of time such as 90s, 10m or 2h."""
        text = self.text(key).strip()
        if not text:
            return None
        found = _DURATION.fullmatch(text)
        seconds = float(found["number"]) * _SECONDS[found["unit"]] if found else 0.0
        if not 0 < seconds < 1e9:
            clock = " Some YAML readers take it for a number to the base of 60." if ":" in text else ""
            self.refuse(key, f"{text!r} is no span of time.{clock}", "Write 90s, 10m or 2h.")
            return None
        return seconds

    def word(self, key: str, known: type[Word], default: Word) -> Word:
        """One of a few words."""
        text = self.text(key)
        if text and text not in list(known):
            self.refuse(key, f"must be {either(list(known))}, not {text!r}.", near_miss(text, list(known)))
            return default
        return known(text) if text else default

    def texts(self, key: str) -> list[Leaf]:
        """A list of texts; one text is a list of what its commas separate."""
        value = self.node(key)
        found: list[Leaf] = []
        if isinstance(value, Leaf):
            found = [Leaf(part.strip(), value.at) for part in value.text.split(",")]
        elif isinstance(value, Items) and all(isinstance(item, Leaf) for item in value.items):
            found = [item for item in value.items if isinstance(item, Leaf)]
        elif value is not None:
            self.refuse(key, "must be a list of texts.", "Write it such as [one, two].")
        self._count(key, len(found))
        return [each for each in found[:MOST_PARTS] if each.text.strip()]

    def template(self, key: str, *, required: str = "") -> Template:
        """A text with places for values."""
        text = self.text(key, required=required)
        template, slips = parse(text)
        for slip in slips:
            self.notes.refuse(
                self.spot(key, slip.number), self.field(key), slip.words, "Write `$${{` for the signs alone."
            )
        return template

    def spot(self, key: str, number: int) -> Place:
        """Where one of the places for values stands."""
        value = self.node(key)
        spots = value.spots if isinstance(value, Leaf) else ()
        return spots[number] if number < len(spots) else self.place(key)

    def section(self, key: str) -> Section:
        """The keys below a key."""
        value = self.node(key)
        if value is not None and not isinstance(value, Keys):
            remedy = f"Write `key: value` below it{', without dashes' if isinstance(value, Items) else ''}."
            self.refuse(key, f"must be keys with values, not {kind_of(value)}.", remedy)
        return Section(self.notes, self.field(key), value, self.place(key))

    def sections(self, key: str) -> list[tuple[str, Section]]:
        """The parts below a key, each under its own name."""
        above = self.section(key)
        self._count(key, len(above._entries))
        return [(name, above.section(name)) for name in list(above)[:MOST_PARTS]]

    def _count(self, key: str, number: int) -> None:
        if number > MOST_PARTS:
            self.refuse(key, f"has {number} parts; at most {MOST_PARTS} are read.")

    def listed(self, key: str) -> list[Section]:
        """The parts of a list."""
        value = self.node(key)
        if value is not None and not isinstance(value, Items):
            self.refuse(key, f"must be a list, not {kind_of(value)}.", "Begin each part with a dash.")
            return []
        found = []
        items = value.items if value else ()
        self._count(key, len(items))
        for number, each in enumerate(items[:MOST_PARTS]):
            path = f"{self.field(key)}[{number}]"
            if isinstance(each, Keys):
                found.append(Section(self.notes, path, each))
            else:
                self.notes.refuse(
                    each.at, path, f"must be keys with values, not {kind_of(each)}.", "Write `- key: value`."
                )
        return found


def kind_of(node: Node) -> str:
    """What stands there, for people."""
    match node:
        case Keys():
            return "keys with values"
        case Items():
            return "a list"
    return "nothing" if node.is_nothing else f"{_shortened(node.text)!r}"


def either(words: Collection[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def agent_name(name: str) -> str:
    """The name, if an agent may have it. Raises BadInput."""
    if name in RESERVED:
        raise BadInput(f"{name} is reserved.", hint="Choose another name.")
    return check_name(name)


def is_agent_name(name: str) -> bool:
    try:
        return bool(agent_name(name))
    except BadInput:
        return False


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"

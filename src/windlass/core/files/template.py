"""`${{ name }}` in the texts of a workflow. The value of a name is data: it is never expanded, and mentions nobody.

Who a text mentions is decided by the text as its author wrote it (`Template.spoken`), so a value can neither wake
anyone nor hide a mention that follows it. A shell gets values as variables (`Template.script`), never as code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from windlass.core.errors import BadInput
from windlass.core.files.section import Section

SETUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""The name of a value: by `as` in setup, or as a parameter."""

ENVIRONMENT = "env"
PARAMETERS = "params"
INSTANCE = "instance"
RESERVED_VALUES = (ENVIRONMENT, PARAMETERS, INSTANCE, "workflow", "context")
"""Names that setup can't give to its output."""

_OPENING = re.compile(r"(?P<plain>\$)?\$\{\{")
_END = "}}"
_REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*")
_UNNAMED = "X"
"""Stands for a value where mentions are looked for: a letter that no agent's name has, so that `@code${{ x }}` mentions
nobody."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The place of a value."""

    name: str
    number: int
    """Which of the text's `${{` it is, from 0; those that are written `$${{` count, too."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A `${{` that names nothing."""

    number: int
    words: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text with places for values."""

    pieces: tuple[str | Reference, ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Reference))

    @property
    def spoken(self) -> str:
        """The text in which mentions count: the author's words, with a letter in the place of each value."""
        return "".join(piece if isinstance(piece, str) else _UNNAMED for piece in self.pieces)

    def render(self, values: Mapping[str, str]) -> str:
        """The text with its values. `values` must have every name."""
        return "".join(piece if isinstance(piece, str) else values[piece.name] for piece in self.pieces)

    def script(self) -> tuple[str, dict[str, str]]:
        """The text for a shell, with a variable in the place of each value; and the value's name by variable.

        A value arrives as one word, whatever it contains, inside quotes or not.
        """
        parts, variables, shell = list[str](), dict[str, str](), _Shell()
        for piece in self.pieces:
            if isinstance(piece, str):
                shell.read(piece)
                parts.append(piece)
                continue
            variable = f"WINDLASS_VALUE_{piece.number + 1}"
            variables[variable] = piece.name
            parts.append(shell.word().format(f"${{{variable}}}"))
        return "".join(parts), variables


_AS_WORD = {"": '"{}"', "(": '"{}"', '"': "{}", "'": "'\"{}\"'", "#": "{}"}
"""How a variable is written so that the shell expands it and does not split it, by what is open."""

_CLOSES = {"'": "'", '"': '"', "(": ")", "#": "\n"}


class _Shell:
    """Follows a shell's text, to know what is open: quotes, `( )` with quotes of its own, comments."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.escaped = False
        self.before = "\n"

    @property
    def inside(self) -> str:
        return self.opened[-1] if self.opened else ""

    def read(self, text: str) -> None:
        for character in text:
            self._step(character)
            self.before = character

    def word(self) -> str:
        """The form of a variable here; the text after it does not begin a word."""
        self.before = "$"
        return _AS_WORD[self.inside]

    def _step(self, character: str) -> None:
        if self.escaped:
            self.escaped = False
        elif character == "\\" and self.inside not in ("'", "#"):
            self.escaped = True
        elif character == _CLOSES.get(self.inside):
            self.opened.pop()
        elif self._opens(character):
            self.opened.append(character)

    def _opens(self, character: str) -> bool:
        if self.inside in ("'", "#"):
            return False
        if character == "(":
            return self.inside != '"' or self.before == "$"
        return self.inside != '"' and (character in "\"'" or (character == "#" and self.before.isspace()))


def parse(text: str) -> tuple[Template, list[Slip]]:
    """A text with its places for values, and every bad place. `$${{` means `${{` itself."""
    pieces: list[str | Reference] = []
    slips: list[Slip] = []
    done = 0
    for number, opening in enumerate(_OPENING.finditer(text)):
        if opening["plain"]:
            pieces += [text[done : opening.start()], "${{"]
            done = opening.end()
            continue
        inside, closed, _ = text[opening.end() :].partition(_END)
        name = inside.strip()
        if not closed or "${{" in inside:
            slips.append(Slip(number, "`${{` is never closed: `}}` is missing."))
        elif not _REFERENCE.fullmatch(name):
            slips.append(Slip(number, _no_name(name)))
        else:
            pieces += [text[done : opening.start()], Reference(name, number)]
            done = opening.end() + len(inside) + len(_END)
    pieces.append(text[done:])
    return Template(tuple(piece for piece in pieces if piece)), slips


def take_template(section: Section, key: str, *, required: str = "") -> Template:
    """A text of a section with its places for values. Every bad place is noted."""
    template, slips = parse(section.text(key, required=required))
    for slip in slips:
        section.refuse(key, slip.words, "Write `$${{` for the signs alone.", section.spot(key, slip.number))
    return template


def check_value_name(name: str) -> str:
    """The name that `as` gives to a command's output. Raises BadInput."""
    if name in RESERVED_VALUES:
        raise BadInput(f"{name} is a reserved word: {', '.join(RESERVED_VALUES)}.", hint="Choose another name.")
    if not SETUP_NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is no name for a value.", hint="It has letters, digits, _ and -, and begins with a letter or _."
        )
    return name


def _no_name(text: str) -> str:
    if not text:
        return "there is no name between `${{` and `}}`."
    shown = " ".join((text if len(text) <= 40 else f"{text[:39]}…").split())
    return f"{shown!r} is no name; only names stand between `${{{{` and `}}}}`, and nothing is computed."

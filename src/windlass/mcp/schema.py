"""What a tool is given: declared once, shown to clients as a schema, and checked before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput


class Form(Enum):
    """What an argument may be, as its schema says it."""

    TEXT = "string"
    TEXTS = "array"
    NUMBER = "integer"
    SECONDS = "number"
    FLAG = "boolean"


_WORDS = {
    Form.TEXT: "a text",
    Form.TEXTS: "a list of texts",
    Form.NUMBER: "a whole number, not negative",
    Form.SECONDS: "a number of seconds, not negative",
    Form.FLAG: "true or false",
}
_LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool."""

    about: str
    form: Form = Form.TEXT
    needed: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.form.value, "description": self.about}
        if self.form is Form.TEXTS:
            found["items"] = {"type": "string"}
        if self.form in (Form.NUMBER, Form.SECONDS):
            found["minimum"] = 0
        return found


def schema(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """What clients are told about a tool's arguments."""
    return {
        "type": "object",
        "properties": {name: each.schema for name, each in arguments.items()},
        "required": [name for name, each in arguments.items() if each.needed],
        "additionalProperties": False,
    }


def checked(arguments: Mapping[str, Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, if it is what the tool takes; nothing that was left out, or is null."""
    for name in given:
        if name not in arguments:
            known = ", ".join(arguments) or "none"
            raise BadInput(
                f"There is no argument {name[:40]!r}.", hint=near_miss(name, arguments) or f"There are: {known}."
            )
    found = {name: each for name, each in given.items() if each is not None}
    for name, argument in arguments.items():
        if argument.needed and name not in found:
            raise BadInput(f"{name} is missing: {argument.about}")
        if name in found and not _fits(argument.form, found[name]):
            raise BadInput(f"{name} must be {_WORDS[argument.form]}.")
    return found


def _fits(form: Form, value: Any) -> bool:
    match form:
        case Form.TEXT:
            return isinstance(value, str)
        case Form.TEXTS:
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
        case Form.FLAG:
            return isinstance(value, bool)
        case Form.NUMBER:
            return type(value) is int and 0 <= value <= _LARGEST
    return type(value) in (int, float) and 0 <= value <= _LARGEST

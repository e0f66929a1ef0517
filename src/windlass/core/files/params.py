"""What a workflow wants to be told when it is started, after two dashes: `review.yaml -- --base main`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput


class ParamKind(StrEnum):
    STRING = "string"
    INT = "int"
    NUMBER = "number"
    BOOL = "bool"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One thing that a workflow wants to be told."""

    name: str
    kind: ParamKind = ParamKind.STRING
    default: str | None = None
    """Its value where nothing is said, as a text in its own form; None: there is none."""
    required: bool = True
    choices: tuple[str, ...] = ()
    description: str = ""


_INT = re.compile(r"[+-]?\d+", re.ASCII)
_OCTAL = re.compile(r"[+-]?0[0-9_]+", re.ASCII)
_SEXAGESIMAL = re.compile(r"[+-]?\d+(?::[0-5]?\d)+(?:\.\d*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def value_of(kind: ParamKind, text: str, choices: Sequence[str] = ()) -> str:
    """A value of this kind in its one form. Raises BadInput with the reason, and with the remedy as its hint."""
    match kind:
        case ParamKind.INT:
            return whole_number(text)
        case ParamKind.NUMBER:
            return _number(text)
        case ParamKind.BOOL:
            return truth(text)
        case ParamKind.CHOICE if text not in choices:
            raise BadInput(f"must be one of {', '.join(choices)}, not {text!r}.", hint=near_miss(text, choices))
    return text


def truth(text: str) -> str:
    """`true` or `false`."""
    if text.lower() in ("true", "false"):
        return text.lower()
    if meant := _BOOLS.get(text.lower()):
        raise BadInput(
            f"must be true or false, not {text}: only some YAML readers take that for {meant}.", hint=f"Write {meant}."
        )
    raise BadInput(f"must be true or false, not {text!r}.")


def whole_number(text: str) -> str:
    """A whole number in its shortest form. What readers of YAML take for different numbers is refused."""
    _refuse_ambiguous(text)
    if not _INT.fullmatch(text) or len(text) > 18:
        raise BadInput(f"must be a whole number, not {text!r}.")
    return str(int(text))


def _number(text: str) -> str:
    _refuse_ambiguous(text)
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise BadInput(f"must be a number, not {text!r}.")
    return text


def _refuse_ambiguous(text: str) -> None:
    if _SEXAGESIMAL.fullmatch(text):
        raise BadInput(
            f"{text} is a number to the base of 60 for some YAML readers, and a time for people.",
            hint="Write a plain number, or put it in quotes where a text is wanted.",
        )
    if _OCTAL.fullmatch(text):
        octal = f"{int(text.replace('_', ''), 8)}" if not set(text) & {"8", "9"} else "no number"
        raise BadInput(
            f"{text} begins with a zero, so some YAML readers take it for octal ({octal}).",
            hint=f"Write {text.replace('_', '').lstrip('+-').lstrip('0') or '0'}.",
        )


def bind(params: Sequence[Param], arguments: Sequence[str]) -> dict[str, str]:
    """By name, the value of each parameter: as given, or its default. Raises BadInput with all that is wrong."""
    known = {param.name: param for param in params}
    given, wrong = _given(known, list(arguments))
    for name, text in given.items():
        try:
            given[name] = value_of(known[name].kind, text, known[name].choices)
        except BadInput as error:
            wrong.append(f"--{name} {error} {error.hint}".rstrip())
    wrong += [f"--{param.name} is missing." for param in params if param.required and param.name not in given]
    if wrong:
        raise BadInput(" ".join(wrong), hint=usage(params))
    return {param.name: given.get(param.name, param.default or "") for param in params}


def usage(params: Sequence[Param]) -> str:
    """What can be said to a workflow."""
    if not params:
        return "This workflow takes no parameters."
    shown = (f"--{param.name} {param.kind.upper()}" for param in params)
    return f"Parameters: {', '.join(shown)}. They stand after `--`."


def _given(known: Mapping[str, Param], left: list[str]) -> tuple[dict[str, str], list[str]]:
    given, wrong = dict[str, str](), list[str]()
    while left:
        word = left.pop(0)
        name, equals, text = word.removeprefix("--").partition("=")
        off = name.removeprefix("no-")
        if not word.startswith("--"):
            wrong.append(f"{word!r} belongs to no parameter.")
        elif name not in known and off in known and known[off].kind is ParamKind.BOOL and not equals:
            given[off] = "false"
        elif name not in known:
            wrong.append(f"There is no parameter --{name}. {near_miss(name, known)}".rstrip())
            del left[: 1 if left and not equals and not left[0].startswith("--") else 0]
        elif equals:
            given[name] = text
        elif known[name].kind is ParamKind.BOOL and (not left or left[0].lower() not in ("true", "false")):
            given[name] = "true"
        elif left:
            given[name] = left.pop(0)
        else:
            wrong.append(f"--{name} needs a value.")
    return given, wrong

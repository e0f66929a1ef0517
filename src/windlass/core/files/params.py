"""The parameters of a workflow, given after two dashes when it starts: `review.yaml -- --base main`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.values import number, one_of, truth, whole_number


class ParamKind(StrEnum):
    STRING = "string"
    INT = "int"
    NUMBER = "number"
    BOOL = "bool"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a workflow."""

    name: str
    kind: ParamKind = ParamKind.STRING
    default: str | None = None
    """The value if none is given, as text; None: there is no default."""
    required: bool = True
    choices: tuple[str, ...] = ()
    description: str = ""


def value_of(kind: ParamKind, text: str, choices: Sequence[str] = ()) -> str:
    """A value of this kind in its one form. Raises BadInput with the reason, and with the remedy as its hint."""
    match kind:
        case ParamKind.INT:
            return str(whole_number(text))
        case ParamKind.NUMBER:
            number(text)
        case ParamKind.BOOL:
            return "true" if truth(text) else "false"
        case ParamKind.CHOICE:
            return one_of(text, choices)
    return text


def bind(params: Sequence[Param], arguments: Sequence[str]) -> dict[str, str]:
    """The value of each parameter by name: as given, or its default. Raises BadInput with every problem."""
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
    """A sentence that lists the parameters of a workflow."""
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

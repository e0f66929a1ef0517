"""Requests: each field that a caller may give is declared once, in a Struct; checks and descriptions come from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of one request; this one has none."""


R = TypeVar("R", bound=Request)


def read(kind: type[R], given: Mapping[str, Any], *, noun: str, hint: str = "", texts: bool = False) -> R:
    """Convert what a caller gave; with `texts`, numbers and truths come as texts, as in a query.

    A null counts as left out, and so does an empty text where something else than a text is expected.
    Raises BadInput that names the field, and says what it must be or which one was probably meant.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name in given:
        if name not in fields:
            known = near_miss(name, fields) or f"There are: {', '.join(fields) or 'none'}."
            raise BadInput(f"{name[:80]!r} is not {noun}.", hint=f"{known} {hint}".strip())
    found = {}
    for name, field in fields.items():
        value = given.get(name)
        try:
            if value is not None:
                found[field.name] = msgspec.convert(value, field.type, strict=not texts)
        except msgspec.ValidationError:
            if value != "":
                wrong = f", not {value[:40]!r}" if isinstance(value, str) else ""
                raise BadInput(f"{name} must be {_expected(field.type)}{wrong}.", hint=hint) from None
        if field.required and field.name not in found:
            described = _schema(field.type).get("description")
            about = f": {described}" if described else "."
            raise BadInput(f"{name} is missing{about}", hint=f'Send JSON such as {{"{name}": "…"}}. {hint}')
    return kind(**found)


def describe(kind: type[Request]) -> dict[str, Any]:
    """The JSON schema of a request, as short as it can be: programs that pay for each word read it."""
    fields = msgspec.structs.fields(kind)
    return {
        "type": "object",
        "properties": {field.encode_name: _schema(field.type) for field in fields},
        "required": [field.encode_name for field in fields if field.required],
        "additionalProperties": False,
    }


def _schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of one field: of a field that may be null, what it is otherwise."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    schema = next(iter(schema.get("anyOf", ())), schema)
    found: dict[str, Any] = parts.get(schema.get("$ref", ""), schema)
    return found


def _expected(kind: Any) -> str:
    match _schema(kind):
        case {"enum": words}:
            return f"one of {', '.join(words)}"
        case {"type": "string"}:
            return "a text"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "array", "minItems": _}:
            return "a list of texts, at least one"
        case {"type": "array"}:
            return "a list of texts"
        case {"properties": fields}:
            return f"an object with {', '.join(fields)}"
        case {"type": "object"}:
            return "an object of texts"
        case schema:
            return _NUMBERS[schema["type"]] + _range(schema)


def _range(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"minimum": least, "maximum": most}:
            return f" from {least} to {most}"
        case {"minimum": least}:
            return f" of at least {least}"
    return ""


_NUMBERS = {"integer": "a whole number", "number": "a number of seconds"}
"""Every number that may have a fraction is a span of time."""

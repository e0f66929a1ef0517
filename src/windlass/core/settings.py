"""Every setting, declared once and explained in place."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

from windlass.core.errors import BadInput
from windlass.core.near import near_miss

T = TypeVar("T")

_TOO_LARGE = 10**300
"""A whole number of this size is no float any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """Which project this is."""

    name: str = ""
    """What people call it. Default: the folder's name."""
    uuid: str = ""
    """Its identity, written by `windlass init`."""
    main: str = ""
    """The branch that changes land on. Default: the repository's own default branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """What must pass before a change lands."""

    command: str = ""
    """A shell command, run on exactly the tree that main would have. Without one, changes are held."""
    setup: str = ""
    """A shell command that prepares the tree; its result is kept until a lock file changes."""
    timeout_seconds: float = 900.0
    """After this long the command and all it started are ended, and the change is refused."""
    output_bytes: int = 1_000_000
    """How much of the output is kept: the first and the last part."""
    environment: tuple[str, ...] = ()
    """Names of variables that checks may see besides PATH, HOME, LANG and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """How agents are started."""

    provider: str = ""
    """Which provider `windlass work` uses when none is named."""
    command: str = ""
    """The command of the `command` provider when none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is allowed at once, and how often something is tried again."""

    runs: int = 8
    """How many runs may be alive at once: in the home's file of all projects, in a project's file of that one."""
    retries: int = 1
    """How often a crashed run is started again before its task fails."""
    reminders: int = 1
    """How often an agent is reminded of a missing signal or of uncommitted work."""
    returns: int = 3
    """How often a refused change goes back to its author before a person is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """The background process. These belong in the home's file."""

    idle_minutes: float = 15.0
    """A daemon that started by itself leaves after this long with nothing to do. 0: never."""
    stop_grace_seconds: float = 5.0
    """How long a process may take to end after being asked, before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them. Zero settings must work."""

    project: ProjectSettings = field(default_factory=ProjectSettings)
    checks: CheckSettings = field(default_factory=CheckSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    limits: Limits = field(default_factory=Limits)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)


_LEAST = {"limits.runs": 1, "checks.timeout_seconds": 0.1, "checks.output_bytes": 1000}
"""The smallest value that makes sense, where that is not 0."""


_ANY = (re.compile(r"[^\0]*"), "a text without NUL characters")
_FORMS = {
    "project.main": (re.compile(r"(?![-/.])(?!.*(\.\.|@\{|//))[^\0-\x20\x7f~^:?*\[\\]+"), "the name of a branch"),
    "project.uuid": (re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"), "a uuid"),
    "project.name": (re.compile(r"[^\0\n\r]{1,200}"), "one line of at most 200 characters"),
}
"""What a text must look like, where not every text will do."""


def build(kind: type[T], *layers: tuple[str, Mapping[str, Any]]) -> T:
    """Settings from named layers, the later ones stronger; every bad key or value is refused by its full name."""
    merged: dict[str, Any] = {}
    for source, values in layers:
        _merge(merged, _checked(kind, values, source, ""))
    return _make(kind, merged)


def keys(kind: type[Any] = Settings, prefix: str = "") -> dict[str, type[Any]]:
    """Every setting's full name and type."""
    found: dict[str, type[Any]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        if is_dataclass(hint):
            found |= keys(typing.cast(type[Any], hint), f"{prefix}{name}.")
        else:
            found[prefix + name] = hint
    return found


def check_key(key: str) -> type[Any]:
    """The type of one setting, or a refusal that suggests the near miss."""
    known = keys()
    if key not in known:
        raise BadInput(
            f"There is no setting {key}.", hint=near_miss(key, known) or "Run `windlass config get` to see them all."
        )
    return known[key]


def parse_value(key: str, text: str) -> Any:
    """A typed word as the value of a setting."""
    kind = check_key(key)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind in (int, float):
            return _fitting(kind, kind(text), key)
    except (ValueError, KeyError):
        raise BadInput(f"{key} must be {_words(kind)}, not {text!r}.") from None
    if typing.get_origin(kind) is tuple:
        return [each.strip() for each in text.split(",") if each.strip()]
    return text


def _checked(kind: type[Any], values: Mapping[str, Any], source: str, prefix: str) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    checked: dict[str, Any] = {}
    for name, value in values.items():
        full = prefix + name
        if name not in hints:
            raise BadInput(
                f"{source}: there is no setting {full}.",
                hint=near_miss(full, _known()) or "Run `windlass config get` to see them all.",
            )
        if is_dataclass(hints[name]):
            if not isinstance(value, Mapping):
                raise BadInput(f"{source}: {full} is a table; write [{full}] and its keys below it.")
            checked[name] = _checked(typing.cast(type[Any], hints[name]), value, source, f"{full}.")
        else:
            checked[name] = _fitting(hints[name], value, f"{source}: {full}")
    return checked


def _known() -> set[str]:
    """Every setting and every table."""
    return {word for key in keys() for word in (key, key.partition(".")[0])}


def _fitting(kind: Any, value: Any, full: str) -> Any:
    if kind is float and type(value) is int and abs(value) < _TOO_LARGE:
        return _fitting(kind, float(value), full)
    if typing.get_origin(kind) is tuple:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
    elif kind is str and isinstance(value, str):
        return _plain(value, full)
    elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        least = _LEAST.get(full.rpartition(" ")[2], 0)
        if kind in (int, float) and value < least:
            raise BadInput(f"{full} must be at least {least}." if least else f"{full} must not be negative.")
        if kind is not float or math.isfinite(value):
            return value
    raise BadInput(f"{full} must be {_words(kind)}, not {value!r}.")


def _plain(value: str, full: str) -> str:
    """A text without what no program could be given; a name or branch that can be one."""
    pattern, words = _FORMS.get(full.rpartition(" ")[2], _ANY)
    if value and not pattern.fullmatch(value):
        raise BadInput(f"{full} must be {words}, not {value[:80]!r}.")
    return value


def _words(kind: Any) -> str:
    if isinstance(kind, types.GenericAlias):
        return "a list of texts"
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def _make(kind: type[T], values: Mapping[str, Any]) -> T:
    hints = typing.get_type_hints(kind)
    made: dict[str, Any] = {}
    for each in fields(typing.cast(Any, kind)):
        if is_dataclass(hints[each.name]):
            made[each.name] = _make(typing.cast(type[Any], hints[each.name]), values.get(each.name, {}))
        elif each.name in values:
            made[each.name] = values[each.name]
        elif each.default is MISSING and each.default_factory is MISSING:
            raise BadInput(f"The setting {each.name} is missing.")
    return kind(**made)

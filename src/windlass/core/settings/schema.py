"""Every setting, declared once and explained in place."""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Confinement
from windlass.core.nouns.change import LandingShape
from windlass.core.radar.collisions import Act
from windlass.core.settings.custom_provider import ProviderSettings
from windlass.core.settings.models import ModelSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """Which project this is."""

    name: str = ""
    """The project's name. Default: the folder's name."""
    uuid: str = ""
    """Its identity, written by `windlass init`."""
    main: str = ""
    """The branch that changes land on. Default: the repository's own default branch."""
    repositories: tuple[str, ...] = ()
    """Other repositories that agents of this project change, too: paths, seen from this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """The checks that must pass before a change lands."""

    command: str = ""
    """A shell command, run on exactly the tree that main would have. Without one, changes are held."""
    setup: str = ""
    """A shell command that prepares the tree; its result is kept until a lock file changes."""
    timeout_seconds: float = 900.0
    """After this long the command and all it started are ended, and the change is refused."""
    output_bytes: int = 1_000_000
    """How much of the output is kept: the first and the last part."""
    environment: tuple[str, ...] = ()
    """Names of variables that checks may see, beside PATH, HOME, LANG and the like."""
    network: bool = True
    """Whether the command reaches the network from its sandbox; without, only its own loopback. The set-up does."""


class Reviewing(StrEnum):
    """Who looks at an agent's change before it lands."""

    NONE = "none"
    AGENT = "agent"


class Guarding(StrEnum):
    """What becomes of a change to what decides how changes are tested."""

    HOLD = "hold"
    TWICE = "twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """How changes reach main."""

    runners: int = 0
    """How many checks of this project may run at once. 0: half as many as there are processors, at most 8."""
    strict: bool = False
    """Test every commit that main goes through by itself. Else several may land on the test of the last one."""
    retries: int = 1
    """How often a change whose checks failed is tested again before it goes back: they may have failed by chance. Where
    that was seen, more often."""
    partition: bool = False
    """Put changes that touch the same top folders side by side into stacks; what lands is tested whole all the same."""
    shape: LandingShape = LandingShape.MERGE
    """merge, squash or rebase: what a landed change looks like in main's history."""
    guarded: tuple[str, ...] = ()
    """Files and folders (`ci/`) whose changes wait for a person. Windlass's settings and agents' files always do."""
    guard: Guarding = Guarding.HOLD
    """What becomes of a change to what decides how changes are tested: the files that the check command names, and
    those that configure tests (`Makefile`, `conftest.py` …). hold: it waits for a person; twice: it is tested with its
    own copy of them and with main's, and lands when both pass."""
    review: Reviewing = Reviewing.NONE
    """agent: every agent's change is reviewed by another agent before it lands; none: only when you ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """How agents are started."""

    provider: str = ""
    """Which provider `windlass work` uses when none is named."""
    command: str = ""
    """The command of the `command` provider when none is given."""
    environment: tuple[str, ...] = ()
    """Names of your variables that agents get, beside PATH, HOME, LANG and the like and what their provider needs.
    Only in the home's file: no repository may ask for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How agents and checks are confined. A project's file may only make it stricter: `mode = "on"`, `checks = "on"`
    and `network = false`."""

    mode: Confinement = Confinement.AUTO
    """auto: where bubblewrap works; on: without it nothing starts; off: agents have your own rights."""
    checks: Confinement = Confinement.AUTO
    """The same for checks, which run what agents wrote. auto: as `mode` says; off: for checks that need more of your
    machine, such as the socket of a container service."""
    network: bool = True
    """Whether agents and checks reach the network, which agents need for a model's API."""
    readable: tuple[str, ...] = ()
    """Files and folders that agents and checks may read, beside their own; `~/` is your home."""
    writable: tuple[str, ...] = ()
    """Files and folders that they may write, beside their own, such as a cache that they share with you."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeSettings:
    """Extra files and ports of an agent's worktree. Git does not see them."""

    copy: tuple[str, ...] = ()
    """Files and folders of your checkout that are copied, such as `.env`."""
    link: tuple[str, ...] = ()
    """Files and folders of your checkout that all agents share by a link, such as `node_modules`."""
    setup: str = ""
    """A shell command, run before the agent starts; again only when it or a lock file has changed."""
    setup_seconds: float = 600.0
    """After this long the set-up and all it started are ended, and the agent does not start."""
    environment: tuple[str, ...] = ()
    """Names of variables that the set-up may see, beside PATH, HOME, LANG and the like."""
    spare_mb: int = 2000
    """Megabytes of disk for checkouts kept ready, so that agents start at once in a large repository. 0: none."""
    ports: int = 10
    """How many ports each agent has for itself, in `$WINDLASS_PORT` and `$WINDLASS_PORTS`. 0: none."""
    first_port: int = 20_000
    """The first of these ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is allowed at once, and how often something is tried again."""

    runs: int = 8
    """How many runs may be alive at once: in the home's file of all projects, in a project's file of that one."""
    retries: int = 1
    """How often a crashed run is started again before its task fails."""
    restarts: int = 5
    """How often a persistent agent is started again beyond that, ever later, until a run ends well."""
    waits: int = 10
    """How often a run is started again, ever later, after its model's server was too busy."""
    silent_minutes: float = 30.0
    """A run that prints nothing for this long is ended, and tried again. 0: never."""
    run_minutes: float = 480.0
    """A run that takes longer is ended for good. 0: never."""
    calls: int = 1000
    """A run that asks its model more often is ended for good, where its provider tells. 0: never."""
    reminders: int = 1
    """How often an agent is reminded of a missing signal or of uncommitted work."""
    returns: int = 3
    """How often a refused change goes back to its author before a person is asked."""
    hops: int = 40
    """How many messages may go from agent to agent before a person must say that they may go on. 0: any number."""
    wakes: int = 20
    """How often a minute an agent is woken by others' messages. 0: as often as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RadarSettings:
    """How Windlass reacts when running agents are about to collide (see `windlass radar`)."""

    act: Act = Act.SHOW
    """show: nothing, you look; tell: both agents are told, once for each file; hold: a task whose declared paths
    collide with someone's work does not begin before that is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """The background process. These settings belong in the home's file."""

    idle_minutes: float = 15.0
    """A daemon that started by itself leaves after this long with nothing to do. 0: never."""
    stop_grace_seconds: float = 5.0
    """How long a process may take to end after being asked, before it is killed."""
    port: int = 0
    """The port on 127.0.0.1 where programs with a token reach the tools (`/mcp`). 0: any, see the file `port` in the
    home; -1: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. Each has a default."""

    project: ProjectSettings = field(default_factory=ProjectSettings)
    checks: CheckSettings = field(default_factory=CheckSettings)
    gate: GateSettings = field(default_factory=GateSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    worktree: WorktreeSettings = field(default_factory=WorktreeSettings)
    limits: Limits = field(default_factory=Limits)
    radar: RadarSettings = field(default_factory=RadarSettings)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)


_LEAST = {
    "limits.runs": 1,
    "daemon.port": -1,
    "worktree.setup_seconds": 0.1,
    "worktree.first_port": 1024,
    "checks.timeout_seconds": 0.1,
    "checks.output_bytes": 1000,
}
"""The smallest value that makes sense, where that is not 0."""

_LARGEST = 10**15
_MOST = {"daemon.port": 65_535, "worktree.first_port": 65_535}
"""The largest value that makes sense, where that is not the largest of all."""

_SHOWN = 80
"""Characters of a refused value."""


_ANY = (re.compile(r"[^\0]*"), "a text without NUL characters")
_FORMS = {
    "project.main": (re.compile(r"(?![-/.])(?!.*(\.\.|@\{|//))[^\0-\x20\x7f~^:?*\[\\]+"), "the name of a branch"),
    "project.uuid": (re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"), "a uuid"),
    "project.name": (re.compile(r"[^\0\n\r]{1,200}"), "one line of at most 200 characters"),
}
"""The form of a text, where not every text will do."""


def build(kind: type[T], *layers: tuple[str, Mapping[str, Any]]) -> T:
    """Settings from named layers, the later ones stronger. Raises BadInput that names the layer and the full key."""
    made = kind()
    for source, values in layers:
        made = _with_values(made, values, source, "")
    return made


def keys() -> dict[str, type[Any]]:
    """Every setting's full name and type; tables with names of your own are left out."""
    tables = ((table, kind) for table, kind in typing.get_type_hints(Settings).items() if is_dataclass(kind))
    return {f"{table}.{name}": hint for table, kind in tables for name, hint in typing.get_type_hints(kind).items()}


def check_key(key: str) -> type[Any]:
    """The type of one setting. Raises BadInput with the near miss."""
    known = keys()
    table = key.partition(".")[0]
    if table in ("providers", "models") and table != key:
        raise BadInput(
            f"{key} can't be set by a command.",
            hint=f"Write [{table}.NAME] into the file; `windlass config path` names it.",
        )
    if key not in known:
        raise BadInput(
            f"There is no setting {key}.", hint=near_miss(key, known) or "Run `windlass config get` to see them all."
        )
    return known[key]


def parse_value(key: str, text: str) -> Any:
    """The value of a setting from a word that a person typed. Raises BadInput."""
    kind = check_key(key)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind in (int, float):
            return _fitting(kind, kind(text), key)
    except (ValueError, KeyError):
        raise BadInput(f"{key} must be {_words(kind)}, not {shown(text)}.") from None
    if typing.get_origin(kind) is tuple:
        return _list(key, text) if text.lstrip().startswith("[") else [*filter(None, map(str.strip, text.split(",")))]
    return str(_fitting(kind, text, key))


def _list(key: str, text: str) -> list[str]:
    """A list that was typed as it stands in a settings file."""
    try:
        return [*_fitting(tuple[str, ...], json.loads(text), key)]
    except ValueError:
        raise BadInput(f"{key} must be a list of texts, not {shown(text)}.", hint='Type A,B or ["A", "B"].') from None


def _with_values(base: T, values: Mapping[str, Any], source: str, prefix: str) -> T:
    """Settings with the values of one layer in the place of their own."""
    hints = typing.get_type_hints(type(base))
    changed: dict[str, Any] = {}
    for name, value in values.items():
        full = prefix + name
        if name not in hints:
            known = {*keys(), *typing.get_type_hints(Settings), *(prefix + hint for hint in hints)}
            hint = near_miss(full, known) or "Run `windlass config get` to see them all."
            raise BadInput(f"{source}: there is no setting {full}.", hint=hint)
        old = getattr(base, name)
        if inner := _named_tables(hints[name]):
            changed[name] = dict(old)
            for key, given in _table(value, source, full).items():
                place = f"{full}.{key}"
                table = _table(given, source, place)
                changed[name][key] = _with_values(old.get(key) or inner(), table, source, f"{place}.")
        elif is_dataclass(old):
            changed[name] = _with_values(old, _table(value, source, full), source, f"{full}.")
        else:
            changed[name] = _fitting(hints[name], value, f"{source}: {full}")
    made: T = replace(typing.cast(Any, base), **changed)
    return made


def _named_tables(hint: Any) -> type[Any] | None:
    """The type of the inner tables, if a setting is a table of tables."""
    inner = typing.get_args(hint)[-1] if typing.get_origin(hint) is Mapping else None
    return typing.cast(type[Any], inner) if is_dataclass(inner) else None


def _table(value: Any, source: str, full: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{source}: {full} is a table; write [{full}] and its keys below it.")
    return value


def _fitting(kind: Any, value: Any, full: str) -> Any:
    if kind is float and type(value) is int and abs(value) <= _LARGEST:
        return _fitting(kind, float(value), full)
    if typing.get_origin(kind) is Mapping:
        if isinstance(value, Mapping):
            return {name: _fitting(typing.get_args(kind)[1], inner, f"{full}.{name}") for name, inner in value.items()}
    elif typing.get_origin(kind) is tuple:
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
    elif issubclass(kind, StrEnum):
        if value in list(kind):
            return kind(value)
    elif kind is str and isinstance(value, str):
        return _plain(value, full)
    elif isinstance(value, kind) and _is_number(kind, value, full):
        return value
    raise BadInput(f"{full} must be {_words(kind)}, not {shown(value)}.")


def shown(value: Any) -> str:
    """A refused value in a few characters; some numbers are so long that Python does not write them."""
    try:
        words = repr(value)
    except ValueError:
        return "a number of that many digits"
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}"


def _is_number(kind: Any, value: Any, full: str) -> bool:
    """Whether a value is a number, or a bool where one is wanted. Raises BadInput if it is too small or too large."""
    if kind is bool or isinstance(value, bool):
        return kind is bool
    name = full.rpartition(" ")[2]
    least, most = _LEAST.get(name, 0), _MOST.get(name, _LARGEST)
    if value < least:
        raise BadInput(f"{full} must be at least {least}." if least else f"{full} must not be negative.")
    if most < value < math.inf:
        raise BadInput(f"{full} must be at most {most}.")
    return isinstance(value, int) or math.isfinite(value)


def _plain(value: str, full: str) -> str:
    """The text, if it has the form that its setting needs. Raises BadInput."""
    pattern, words = _FORMS.get(full.rpartition(" ")[2], _ANY)
    if value and not pattern.fullmatch(value):
        raise BadInput(f"{full} must be {words}, not {shown(value)}.")
    return value


def _words(kind: Any) -> str:
    if typing.get_origin(kind) is Mapping:
        return "a table"
    if isinstance(kind, types.GenericAlias):
        return "a list of texts"
    if issubclass(kind, StrEnum):
        return f"one of {', '.join(kind)}"
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]

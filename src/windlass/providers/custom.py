"""Providers that people describe in their settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.run import TroubleKind, Usage
from windlass.core.runs.provider import ARGUMENT_LIMIT, UNHELD, DoneSign, LineReading, Provider, StartRequest
from windlass.core.settings.custom_provider import ProviderSettings
from windlass.providers.output.events import Event, amount, as_object, at, count, words
from windlass.providers.output.troubles import Patterns, patterns, trouble_in

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_OURS = (TroubleKind.STALL, TroubleKind.RUNAWAY)
"""Troubles that we notice ourselves."""
_FOR_VARIANTS = frozenset(
    "like summary command non_interactive environment secrets variables folders login version install".split()
)
"""Settings that a variant of a built-in provider may have."""
_LOOKED_AT = 10_000
"""Characters of a line in which patterns are looked for."""


def build(described: Mapping[str, ProviderSettings], ours: Mapping[str, Provider]) -> dict[str, Provider]:
    """Build every described provider. Raises BadInput that names the setting."""
    taken = {name for provider in ours.values() for name in (provider.name, *provider.aliases)}
    for name in described:
        if not _NAME.fullmatch(name):
            raise BadInput(f"providers.{name}: a name is made of small letters, digits and hyphens.")
        if name in taken:
            raise BadInput(f"providers.{name}: there is a built-in provider of that name.", hint="Choose another name.")
    return {name: _variant(name, said, ours) if said.like else _own(name, said) for name, said in described.items()}


# ── a variant of one of ours ─────────────────────────────────────────────────────────────────────────────────


def _variant(name: str, said: ProviderSettings, ours: Mapping[str, Provider]) -> Provider:
    """A provider of ours with another account or another program file."""
    base = ours.get(said.like)
    if base is None:
        known = f"{near_miss(said.like, ours)} The providers are: {', '.join(ours)}."
        raise BadInput(f"providers.{name}.like: there is no built-in provider {said.like}.", hint=known.strip())
    unset = ProviderSettings()
    for field in fields(said):
        if field.name not in _FOR_VARIANTS and getattr(said, field.name) != getattr(unset, field.name):
            raise BadInput(f"providers.{name}.{field.name} can't be changed in a variant of {said.like}.")
    first = _program(said.command)
    added = _environment(said)
    return replace(
        base,
        name=name,
        aliases=(),
        summary=said.summary or f"{base.summary}, as you describe it",
        argv=lambda start: (*(first or base.argv(start)[:1]), *said.non_interactive, *base.argv(start)[1:]),
        environment=lambda start: {**base.environment(start), **added},
        program=first[0] if first else base.program,
        verified=None if first else base.verified,
        version=said.version or (() if first else base.version),
        install=said.install or base.install,
        secrets=(*base.secrets, *said.secrets),
        variables=(*base.variables, *said.variables),
        folders=(*base.folders, *said.folders),
        login=said.login or base.login,
        own=True,
    )


# ── a provider of the user's own ──────────────────────────────────────────────────────────────────────────────────


def _own(name: str, said: ProviderSettings) -> Provider:
    _check(name, said)
    command = _program(said.command)
    added = _environment(said)
    config_dir = (said.config_dir,) if said.config_dir else ()

    def permit(start: StartRequest) -> tuple[str, ...]:
        return tuple(_filled(word, start) for word in said.permissions.get(start.permissions, ()))

    return Provider(
        name=name,
        summary=said.summary or f"{' '.join(said.command)}, as you describe it",
        argv=_argv(name, said, command, permit),
        environment=lambda _: added,
        stdin=said.prompt == "stdin",
        read=_reader(name, said),
        structured=bool(said.output == "json" and said.text),
        claim=DoneSign(said.claim),
        system=bool(said.system_prompt_flag),
        models=bool(said.model_flag),
        resumes=bool(said.resume),
        gently=said.gently,
        program=command[0],
        install=said.install,
        permit=permit,
        reads=Permissions.READ in said.permissions,
        may={
            level: "what its own flags allow" if level in said.permissions else UNHELD[level] for level in Permissions
        },
        version=said.version,
        login=said.login,
        secrets=said.secrets,
        variables=(*said.variables, *config_dir),
        folders=(*(f"${variable}" for variable in config_dir), *said.folders),
        own=True,
    )


def _check(name: str, said: ProviderSettings) -> None:
    """Raise BadInput if the settings make no sense together."""
    where = f"providers.{name}"
    if not said.command or not said.command[0].strip():
        raise BadInput(f"{where}.command is missing.", hint='Write command = ["my-agent", "run"].')
    _one_of(f"{where}.prompt", said.prompt, ("argument", "flag", "stdin", "file"))
    _one_of(f"{where}.output", said.output, ("plain", "json"))
    _one_of(f"{where}.claim", said.claim, tuple(DoneSign))
    _one_of(f"{where}.gently", said.gently, ("TERM", "INT", "HUP"))
    for level in said.permissions:
        _one_of(f"{where}.permissions", level, tuple(Permissions))
    if said.prompt == "flag" and not said.prompt_flag:
        raise BadInput(f"{where}.prompt_flag is missing: which flag is the prompt given with?")
    if said.resume and not any("{session}" in word for word in said.resume):
        raise BadInput(f"{where}.resume has no {{session}} in it.", hint='Write resume = ["--session", "{session}"].')
    if said.resume and not said.session:
        raise BadInput(f"{where}.session is missing: where does its output tell the session to resume?")
    only_events = ("text", "result", "model", "input_tokens", "output_tokens", "cost_usd", "tool_uses")
    for key in only_events if said.output == "plain" else ():
        if getattr(said, key):
            raise BadInput(f"{where}.{key} is a field of events.", hint='Write output = "json", or leave it out.')


def _one_of(where: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BadInput(f"{where}: {value!r} is not one of {', '.join(known)}.", hint=near_miss(value, known))


def _program(command: tuple[str, ...]) -> tuple[str, ...]:
    return (_expanded(command[0]), *command[1:]) if command else ()


def _environment(said: ProviderSettings) -> dict[str, str]:
    return {name: _expanded(value) for name, value in said.environment.items()}


def _expanded(text: str) -> str:
    """`~/` at the start is the user's home."""
    return f"{Path.home()}{text[1:]}" if text.startswith("~/") else text


def _argv(
    name: str, said: ProviderSettings, command: tuple[str, ...], permit: Callable[[StartRequest], tuple[str, ...]]
) -> Callable[[StartRequest], tuple[str, ...]]:
    def argv(start: StartRequest) -> tuple[str, ...]:
        if start.model and not said.model_flag:
            raise BadInput(f"The provider {name} has no model_flag, so it can't be told to use {start.model}.")
        resume = said.resume if start.session else ()
        model = (said.model_flag, start.model) if start.model else ()
        system = (said.system_prompt_flag, start.system) if start.system else ()
        fixed = (*command, *resume, *said.non_interactive, *model)
        return (*(_filled(word, start) for word in fixed), *system, *permit(start), *_prompt(said, start))

    return argv


def _filled(word: str, start: StartRequest) -> str:
    """A word with the facts of the run filled in; other braces stay."""
    known = {"{session}": start.session, "{worktree}": start.worktree, "{prompt_file}": start.prompt_file}
    for placeholder, value in known.items():
        word = word.replace(placeholder, value)
    return word


def _prompt(said: ProviderSettings, start: StartRequest) -> tuple[str, ...]:
    flag = (said.prompt_flag,) if said.prompt_flag else ()
    match said.prompt:
        case "stdin":
            return flag
        case "file":
            return (*flag, start.prompt_file)
    text = start.prompt.replace("\0", "")
    if len(text.encode()) > ARGUMENT_LIMIT:
        text = f"Your instructions are in the file {start.prompt_file}. Read all of it, and do what it says."
    return (*flag, text)


# ── its output ─────────────────────────────────────────────────────────────────────────────────────────────


def _reader(name: str, said: ProviderSettings) -> Callable[[str], LineReading]:
    known = _errors(name, said)
    if said.output == "json":
        return _event_reader(said, known)
    session = _pattern(f"providers.{name}.session", said.session) if said.session else None

    def read(line: str) -> LineReading:
        start = line[:_LOOKED_AT]
        found = session.search(start) if session else None
        told = (found.group(1) if found.re.groups else found.group()) if found else ""
        return LineReading(text=line, session=told, trouble=trouble_in(start, known))

    return read


def _event_reader(said: ProviderSettings, known: Patterns) -> Callable[[str], LineReading]:
    def read(line: str) -> LineReading:
        event = as_object(line)
        trouble = trouble_in(line[:_LOOKED_AT], known)
        if event is None:
            return LineReading(text=line, trouble=trouble)
        shown = filter(None, (words(at(event, path)) for path in said.text))
        return LineReading(
            text="\n".join(shown) if said.text else line,
            session=words(at(event, said.session)),
            model=words(at(event, said.model)),
            usage=_usage(said, event),
            result=words(at(event, said.result)),
            trouble=trouble,
        )

    return read


def _usage(said: ProviderSettings, event: Event) -> Usage | None:
    used = Usage(
        input_tokens=count(at(event, said.input_tokens)),
        output_tokens=count(at(event, said.output_tokens)),
        cost_usd=amount(at(event, said.cost_usd)),
        tool_uses=_times(at(event, said.tool_uses)),
    )
    return used if used != Usage() else None


def _times(value: object) -> int:
    """How many tools a field tells of: its number, the length of its list, or one."""
    if isinstance(value, list):
        return len(value)
    return count(value) if type(value) is int else int(bool(value))


def _errors(name: str, said: ProviderSettings) -> Patterns:
    kinds = [kind.value for kind in TroubleKind if kind not in _OURS]
    for kind, found in said.errors.items():
        _one_of(f"providers.{name}.errors", kind, kinds)
        for pattern in found:
            _pattern(f"providers.{name}.errors.{kind}", pattern)
    return patterns({TroubleKind(kind): found for kind, found in said.errors.items()})


def _pattern(where: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise BadInput(f"{where}: {text!r} is no pattern: {error}.") from error

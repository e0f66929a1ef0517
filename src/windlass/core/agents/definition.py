"""An agent as a repository defines it: what its file says, and what is wrong with that, by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.address import HUMAN, RESERVED, check_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Confinement, Permissions

LONGEST_ROLE = 4000
PEOPLE = (str(HUMAN), "developer", "user")
"""Names that mean the person, to whom any agent may hand its work."""

_WORKPLACE = re.compile(r"\{workplace_(?:name|path)\}")


class Gravity(StrEnum):
    ERROR = "error"
    """The file does not say what it must; what is left of it may still be used."""
    WARNING = "warning"
    """It is good to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """Something wrong with a file of the repository."""

    file: str
    line: int
    words: str
    gravity: Gravity = Gravity.ERROR
    column: int = 0
    """Where in the line, from 1; 0 where only the line is known."""
    field: str = ""
    """The path of keys to it, such as `agents.coder.model`."""
    remedy: str = ""
    """What to do about it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        field = f"{self.field}: " if self.field else ""
        return f"{place}: {self.gravity}: {field}{self.words} {self.remedy}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Where agent files are found, and whose form they have there."""

    path: str
    provider: str = ""
    """The provider whose own form it is; nothing: ours."""
    means: Mapping[str, str] = field(default_factory=dict)
    """Their words for our keys."""
    unheeded: tuple[str, ...] = ()
    """Their keys that limit an agent, and that we do not apply."""
    unset: tuple[str, ...] = ()
    """Values that stand for nothing."""


@dataclass(frozen=True, slots=True)
class HeadValue:
    """What one key of a file's head holds: a text, a list of texts, or something else (None)."""

    value: str | tuple[str, ...] | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One agent, as its file describes it."""

    name: str
    role: str
    file: str
    """Seen from the top of the repository."""
    line: int = 1
    """Where its name stands."""
    body: str = ""
    """Its prompt."""
    triggers: tuple[str, ...] = ()
    handoff_to: tuple[str, ...] = ()
    persistent: bool = False
    provider: str = ""
    """Nothing: the one that is set for the project."""
    habitat: str = ""
    """The provider whose folder it was found in, if it is not ours."""
    model: str = ""
    permissions: Permissions = Permissions.EDIT
    sandbox: Confinement = Confinement.AUTO
    handoff_line: int = 1
    provider_line: int = 1

    def model_for(self, provider: str) -> str:
        """Its model, unless that was meant for another provider."""
        meant = self.provider or self.habitat
        return self.model if meant in ("", provider) else ""


@dataclass(frozen=True, slots=True)
class Roster:
    """The agents that a repository defines, and what is wrong with its files."""

    definitions: tuple[Definition, ...] = ()
    problems: tuple[FileProblem, ...] = ()

    def find(self, name: str) -> Definition | None:
        return next((definition for definition in self.definitions if definition.name == name), None)

    def check(self, name: str) -> None:
        """Refuse an agent whose file is broken, and say where."""
        spoilt = [problem for problem in self.problems if problem.file.endswith(f"/{name}.md")]
        if self.find(name) is None and spoilt:
            raise BadInput(
                f"The agent {name} can't be used: {spoilt[0].file}:{spoilt[0].line}: {spoilt[0].words}",
                hint="Mend the file; `windlass agents` shows what is wrong.",
            )


Found = tuple[Definition | None, list[FileProblem]]
"""What one file came to."""


class _Reader:
    """Takes values out of a file's head and notes what does not fit."""

    def __init__(self, file: str, folder: Folder, entries: Mapping[str, HeadValue]) -> None:
        self.file = file
        self.folder = folder
        self.entries = {folder.means.get(key, key): entry for key, entry in _own_first(entries, folder)}
        self.problems: list[FileProblem] = []

    def refuse(self, line: int, words: str, gravity: Gravity = Gravity.ERROR) -> None:
        self.problems.append(FileProblem(file=self.file, line=line, words=words, gravity=gravity))

    def line(self, key: str) -> int:
        return self.entries[key].line if key in self.entries else 1

    def text(self, key: str) -> str:
        """One line; a longer text is brought onto one."""
        entry = self.entries.get(key)
        if entry is None:
            return ""
        if not isinstance(entry.value, str):
            self.refuse(entry.line, f"{key} must be a text.")
            return ""
        text = " ".join(entry.value.split())
        return "" if text in self.folder.unset else text

    def texts(self, key: str) -> tuple[str, ...]:
        """A list; one text is a list of what its commas separate."""
        entry = self.entries.get(key)
        if entry is None:
            return ()
        if entry.value is None:
            self.refuse(entry.line, f"{key} must be a list of texts, such as [one, two].")
            return ()
        parts = entry.value.split(",") if isinstance(entry.value, str) else entry.value
        return tuple(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))

    def flag(self, key: str) -> bool:
        word = self.text(key).lower()
        if word not in ("", "true", "false"):
            self.refuse(self.line(key), f"{key} must be true or false, not {word}.")
        return word == "true"

    def word(self, key: str, known: type[StrEnum], default: str) -> str:
        word = self.text(key)
        if word and word not in list(known):
            near = near_miss(word, list(known))
            self.refuse(self.line(key), f"{key} must be {_either(known)}, not {word}. {near}".strip())
            word = ""
        return word or default


def _sandbox(reader: _Reader) -> Confinement:
    """A file comes with its repository, and agents' changes land in it: it may ask for a sandbox, never do without."""
    said = Confinement(reader.word("sandbox", Confinement, Confinement.AUTO))
    if said is Confinement.OFF:
        reader.refuse(reader.line("sandbox"), "sandbox can't be off here, only where you type it: --sandbox off")
    return said


def define(
    file: str, folder: Folder, entries: Mapping[str, HeadValue], body: str
) -> tuple[Definition | None, list[FileProblem]]:
    """The agent that a file defines, if it says enough, and what is wrong with it."""
    reader = _Reader(file, folder, entries)
    name, role = _name(reader), _role(reader)
    made = Definition(
        name=name,
        role=role,
        file=file,
        line=reader.line("name"),
        body=body.strip(),
        triggers=reader.texts("triggers"),
        handoff_to=reader.texts("handoff_to"),
        handoff_line=reader.line("handoff_to"),
        persistent=reader.flag("persistent"),
        provider=reader.text("provider"),
        provider_line=reader.line("provider"),
        habitat=folder.provider,
        model=reader.text("model"),
        permissions=Permissions(reader.word("permissions", Permissions, Permissions.EDIT)),
        sandbox=_sandbox(reader),
    )
    whole = not reader.problems  # a right that was misspelt must not be given by default
    _look_for_strangers(reader)
    return (made if whole else None), reader.problems


def gather(found: Iterable[Found]) -> Roster:
    """All that files define, the strongest file first: each name once, and hand-offs only to those that are there."""
    problems: list[FileProblem] = []
    kept: dict[str, Definition] = {}
    for definition, own in found:
        problems += own
        if definition is None:
            continue
        if first := kept.get(definition.name):
            words = f"there is an agent {definition.name} already, in {first.file}:{first.line}; this one is not used."
            problems.append(FileProblem(file=definition.file, line=definition.line, words=words))
        else:
            kept[definition.name] = definition
    for each in kept.values():
        kept[each.name], wrong = _with_known_targets(each, kept)
        problems += wrong
    return Roster(tuple(kept.values()), tuple(problems))


def _with_known_targets(definition: Definition, known: Iterable[str]) -> tuple[Definition, list[FileProblem]]:
    names = [*known]
    problems = []
    for target in definition.handoff_to:
        if target == definition.name:
            words = f"{target} hands its work to itself."
        elif target not in names and target not in PEOPLE:
            words = f"handoff_to names {target}, which is no agent here. {near_miss(target, names)}".strip()
        else:
            continue
        problems.append(FileProblem(file=definition.file, line=definition.handoff_line, words=words))
    good = tuple(each for each in definition.handoff_to if each != definition.name and each in (*names, *PEOPLE))
    return replace(definition, handoff_to=good), problems


def filled(body: str, *, name: str, path: str) -> str:
    """An agent's prompt with its workplace in it; every other brace stays as it was written."""
    values = {"{workplace_name}": name, "{workplace_path}": path}
    return _WORKPLACE.sub(lambda found: values[found[0]], body)


def homes(name: str, project: str) -> Iterable[str]:
    """Ids that an agent of this name may have, the nicest first: its name; in another project, `name@project`."""
    yield name
    instance = _slug(project)
    yield f"{name}@{instance}"
    for number in range(2, 10_000):
        yield f"{name}@{instance}-{number}"


def is_home(instance: str, project: str) -> bool:
    """Whether this instance only tells an agent's project from others that have an agent of the same name."""
    slug = _slug(project)
    return not instance or instance == slug or (instance.startswith(f"{slug}-") and instance[len(slug) + 1 :].isdigit())


def home_of(instance: str, project: str) -> str:
    """The channel in which an agent is at home: that of its instance, or of the project."""
    return "main" if is_home(instance, project) else f"@{instance}"


def _slug(text: str) -> str:
    letters = "".join(each if each in "abcdefghijklmnopqrstuvwxyz0123456789" else "-" for each in text.lower())
    slug = "-".join(part for part in letters.split("-") if part)[:50].strip("-")
    return slug if slug and slug != "lock" else "project"


_KNOWN = ("name", "role", "triggers", "handoff_to", "persistent", "provider", "model", "permissions", "sandbox")


def _name(reader: _Reader) -> str:
    if "name" not in reader.entries:
        reader.refuse(1, "it has no name.")
        return ""
    name = reader.text("name")
    if name in RESERVED:
        reader.refuse(reader.line("name"), f"{name} is reserved; choose another name.")
        return name
    return _checked(reader, "name", check_name, name)


def _checked(reader: _Reader, key: str, check: Callable[[str], str], text: str) -> str:
    try:
        return check(text)
    except BadInput as error:
        reader.refuse(reader.line(key), f"{error} {error.hint}".strip())
        return text


def _role(reader: _Reader) -> str:
    role = reader.text("role")
    wanted = next((f"role (or {theirs})" for theirs, ours in reader.folder.means.items() if ours == "role"), "role")
    if not role and "role" not in reader.entries:
        reader.refuse(reader.line("name"), f"it has no {wanted}: say in one line what the agent is for.")
    elif not role and isinstance(reader.entries["role"].value, str):
        reader.refuse(reader.line("role"), "role is empty: say in one line what the agent is for.")
    elif len(role) > LONGEST_ROLE:
        reader.refuse(reader.line("role"), f"role has {len(role)} characters; at most {LONGEST_ROLE} are read.")
    return role


def _look_for_strangers(reader: _Reader) -> None:
    """Keys that we do not know: in our own form they are worth a word, elsewhere only where they limit an agent."""
    for key, entry in reader.entries.items():
        if key in reader.folder.unheeded:
            words = f"{key} is not applied by Windlass; `permissions: read` keeps an agent from changing anything."
            reader.refuse(entry.line, words, Gravity.WARNING)
        elif key not in _KNOWN and not reader.folder.provider:
            near = near_miss(key, _KNOWN)
            reader.refuse(entry.line, f"there is no key {key}, so it is ignored. {near}".strip(), Gravity.WARNING)


def _own_first(entries: Mapping[str, HeadValue], folder: Folder) -> Iterable[tuple[str, HeadValue]]:
    """Their words before ours, so that ours win where a file has both."""
    return sorted(entries.items(), key=lambda pair: pair[0] not in folder.means)


def _either(known: type[StrEnum]) -> str:
    *most, last = known
    return f"{', '.join(most)} or {last}"

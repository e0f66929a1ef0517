"""An agent as a file of the repository defines it, and the problems of that file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from windlass.core.address import HUMAN, own_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.problems import FileProblem, Gravity, Notes
from windlass.core.files.section import Section
from windlass.core.files.tree import Keys, Leaf
from windlass.core.nouns.agent import Confinement, Permissions

_KNOWN = ("name", "role", "triggers", "handoff_to", "persistent", "provider", "model", "permissions", "sandbox")
PEOPLE = (str(HUMAN), "developer", "user")
"""Names that mean the person, to whom any agent may hand its work."""

_WORKPLACE = re.compile(r"\{workplace_(?:name|path)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder with agent files, and the form that they have there."""

    path: str
    provider: str = ""
    """The provider whose form the files have; nothing: ours."""
    means: Mapping[str, str] = field(default_factory=dict)
    """Our keys by that provider's words for them."""
    unheeded: tuple[str, ...] = ()
    """Keys that limit an agent there, and that we do not apply."""
    unset: tuple[str, ...] = ()
    """Values that count as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One agent, as its file describes it."""

    name: str
    role: str
    file: str
    """Its path from the top of the repository."""
    line: int = 1
    body: str = ""
    triggers: tuple[str, ...] = ()
    handoff_to: tuple[str, ...] = ()
    persistent: bool = False
    provider: str = ""
    """Nothing: the provider that is set for the project."""
    habitat: str = ""
    """The provider whose folder the file is in; nothing: the folder is ours."""
    model: str = ""
    permissions: Permissions = Permissions.EDIT
    sandbox: Confinement = Confinement.AUTO
    handoff_line: int = 1
    provider_line: int = 1

    def model_for(self, provider: str) -> str:
        """The agent's model, unless that was meant for another provider."""
        meant = self.provider or self.habitat
        return self.model if meant in ("", provider) else ""


@dataclass(frozen=True, slots=True)
class Roster:
    """The agents that a repository defines, and the problems of their files."""

    definitions: tuple[Definition, ...] = ()
    problems: tuple[FileProblem, ...] = ()

    def find(self, name: str) -> Definition | None:
        return next((definition for definition in self.definitions if definition.name == name), None)

    def check(self, name: str) -> None:
        """Raise BadInput with the place if the file of this agent is broken."""
        found = next((problem for problem in self.problems if problem.file.endswith(f"/{name}.md")), None)
        if self.find(name) is None and found:
            raise BadInput(
                f"The agent {name} can't be used: {found.file}:{found.line}: {found.sentence}",
                hint="Correct the file; `windlass agents` shows what is wrong.",
            )


Found = tuple[Definition | None, Sequence[FileProblem]]
"""The agent that one file defines, if the file has no error, and the file's problems."""


def define(folder: Folder, head: Keys, body: str, notes: Notes) -> Found:
    """Read an agent from its file's head. An error anywhere in the file means no agent: a misspelt limit must not
    leave the agent without it."""
    section = Section(notes, "", _in_our_words(head, folder))
    theirs = next((word for word, ours in folder.means.items() if ours == "role"), "role")
    made = Definition(
        name=section.checked("name", own_name, "", required="Write `name: …`, such as coder."),
        role=section.line("role", required=f"Say in one line what the agent is for, as `{theirs}: …`."),
        file=notes.file,
        line=section.place("name")[0],
        body=body.strip(),
        triggers=section.lines("triggers"),
        handoff_to=section.lines("handoff_to"),
        handoff_line=section.place("handoff_to")[0],
        persistent=section.flag("persistent", default=False),
        provider=section.line("provider"),
        provider_line=section.place("provider")[0],
        habitat=folder.provider,
        model=section.line("model"),
        permissions=section.word("permissions", Permissions, Permissions.EDIT),
        sandbox=_sandbox(section),
    )
    _warn_of_unused_keys(section, folder)
    return (None if notes.errors else made), notes.problems


def _in_our_words(head: Keys, folder: Folder) -> Keys:
    """The head with our keys in the place of another tool's, and without its words for nothing; our own keys win."""
    ours_last = sorted(head.entries, key=lambda entry: entry[0].text not in folder.means)
    return Keys(
        tuple(
            (key._replace(text=folder.means.get(key.text, key.text)), value)
            for key, value in ours_last
            if not isinstance(value, Leaf) or value.text not in folder.unset
        ),
        head.at,
    )


def _sandbox(section: Section) -> Confinement:
    """A file comes with its repository, and agents' changes land in it: it may ask for a sandbox, never do without."""
    said = section.word("sandbox", Confinement, Confinement.AUTO)
    if said is Confinement.OFF:
        section.refuse("sandbox", "can't be off here, only where you type it: --sandbox off")
    return said


def _warn_of_unused_keys(section: Section, folder: Folder) -> None:
    """In our own form, warn of every unknown key; in another tool's form, only of keys that would limit an agent."""
    if not folder.provider:
        section.only(_KNOWN, gravity=Gravity.WARNING)
    for key in (key for key in section if key in folder.unheeded):
        section.warn(key, "is not applied by Windlass.", "`permissions: read` keeps an agent from changing anything.")


def gather(found: Iterable[Found]) -> Roster:
    """The agents of all files, the strongest file first: each name once, and hand-offs only to known agents."""
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
    for definition in kept.values():
        kept[definition.name], wrong = _with_known_targets(definition, kept)
        problems += wrong
    return Roster(tuple(kept.values()), tuple(problems))


def _with_known_targets(definition: Definition, known: Iterable[str]) -> tuple[Definition, list[FileProblem]]:
    names, good, problems = [*known], [], []
    for target in definition.handoff_to:
        if target == definition.name:
            words = f"{target} hands its work to itself."
        elif target in (*names, *PEOPLE):
            good.append(target)
            continue
        else:
            words = f"handoff_to names {target}, which is no agent here. {near_miss(target, names)}".strip()
        problems.append(FileProblem(file=definition.file, line=definition.handoff_line, words=words))
    return replace(definition, handoff_to=tuple(good)), problems


def filled(body: str, *, name: str, path: str) -> str:
    """An agent's prompt with its workplace filled in; every other brace stays as it is written."""
    values = {"{workplace_name}": name, "{workplace_path}": path}
    return _WORKPLACE.sub(lambda found: values[found[0]], body)


def homes(name: str, project: str) -> Iterable[str]:
    """Ids that an agent of this name may have, the best first: its name; in another project, `name@project`."""
    yield name
    instance = _slug(project)
    yield f"{name}@{instance}"
    for number in range(2, 10_000):
        yield f"{name}@{instance}-{number}"


def is_home(instance: str, project: str) -> bool:
    """Whether an instance is only there to tell agents of one name in different projects apart."""
    slug = _slug(project)
    return not instance or instance == slug or (instance.startswith(f"{slug}-") and instance[len(slug) + 1 :].isdigit())


def home_of(instance: str, project: str) -> str:
    """An agent's own channel: that of its instance, or the project's."""
    return "main" if is_home(instance, project) else f"@{instance}"


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-")
    return slug if slug and slug != "lock" else "project"

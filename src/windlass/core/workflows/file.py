"""Reads a workflow's file, and notes every problem in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from windlass.core.address import check_name, is_own_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.problems import Notes
from windlass.core.files.section import MOST_PARTS, Section, kind_of
from windlass.core.files.template import (
    ENVIRONMENT,
    INSTANCE,
    PARAMETERS,
    Template,
    check_value_name,
    parse,
    take_template,
)
from windlass.core.files.tree import Items, Keys, Leaf, Node
from windlass.core.messages.mentions import mentions, strangers
from windlass.core.workflows.file_agents import read_agents
from windlass.core.workflows.file_params import read_params
from windlass.core.workflows.file_tasks import read_tasks
from windlass.core.workflows.workflow import DEFAULT_SETUP_SECONDS, Context, Member, SetupStep, Workflow, WorkflowLimits

KEYS = ("name", "context", "agents", "setup", "kickoff", "params", "tasks", "limits", "gate")
CONTEXT_FOLDER = ".windlass/context/${{ instance }}/"
CHANNEL_FILE = "channel.md"
DOCUMENT_FILE = "notes.md"

_KICKOFF = 'Say what is to be done, and who begins: `kickoff: "@reviewer please review this."`'
_EXPLAINED = {
    "steps": "Commands are listed under setup; what agents do is said in kickoff.",
    "system_prompt": "It belongs below an agent.",
    "model": "It belongs below an agent.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The facts from outside that a workflow's file is checked against."""

    prompt: Callable[[str], str]
    """Reads a prompt's file. Raises BadInput."""
    providers: Collection[str] = ()
    """The known providers; nothing: providers are not checked."""
    environment: Collection[str] | None = None
    """The variables that are set; None: variables are not checked."""


@dataclass(slots=True)
class _Known:
    """The names that a text may use, as far as the file has been read."""

    names: dict[str, None] = field(default_factory=dict)
    environment: Collection[str] | None = None
    later: Collection[str] = ()
    """Names that later commands of setup give to their output."""

    def check(self, section: Section, key: str, template: Template) -> None:
        for reference in template.references:
            if section.notes.full:
                return
            at, name = section.spot(key, reference.number), reference.name
            head, _, rest = name.partition(".")
            if head == ENVIRONMENT and rest and "." not in rest:
                if self.environment is not None and rest not in self.environment:
                    section.warn(key, f"the variable {rest} is not set in the environment here.", at=at)
            elif name not in self.names:
                section.refuse(key, f"nothing is called {name}.", self._remedy(name), at)

    def _remedy(self, name: str) -> str:
        if name in self.later:
            return "It is the output of a command that runs later: put that first."
        if name in ("context.channel", "context.document"):
            return "The workflow does not share it: write `context:`."
        group = next((known for known in self.names if known.endswith(f".{name}")), "")
        near = near_miss(name, self.names) or (f"Did you mean {group}?" if group else "")
        return f"{near} Known here: {', '.join([*self.names, 'env.NAME'])}.".lstrip()


def read(file: str, top: Node | None, default_name: str, around: Surroundings, notes: Notes) -> Workflow | None:
    """The workflow that a tree describes; None if there is an error. Every problem is noted."""
    if not isinstance(top, Keys):
        if not notes.problems:
            _refuse_top(top, notes)
        return None
    section = Section(notes, "", top)
    section.only(KEYS, _EXPLAINED)
    known = _Known(environment=around.environment)
    known.names.update(dict.fromkeys((INSTANCE, "workflow.name", "workflow.instance")))
    context = _context(section, known)
    params = read_params(section)
    known.names.update(dict.fromkeys(f"{PARAMETERS}.{param.name}" for param in params))
    agents = read_agents(section, around.prompt, around.providers)
    setup = _setup(section, known)
    workflow = Workflow(
        name=_name(section, default_name),
        file=file,
        agents=agents,
        context=context,
        setup=setup,
        params=params,
        kickoff=_kickoff(section, known, agents),
        tasks=read_tasks(section, [agent.name for agent in agents], known.check),
        limits=_limits(section),
        gate=section.flag("gate", default=True),
    )
    return None if notes.errors else workflow


def _refuse_top(top: Node | None, notes: Notes) -> None:
    if top is None or kind_of(top) == "nothing":
        notes.refuse((1, 1), "", "it is empty.", "`windlass examples review` shows one to begin with.")
    else:
        notes.refuse(top.at, "", f"a workflow is keys with values, such as `name: review`, not {kind_of(top)}.")


def _name(section: Section, default: str) -> str:
    if "name" in section:
        return section.checked("name", check_name, "", required="Leave it out to call the workflow after its file.")
    try:
        return check_name(default)
    except BadInput as error:
        words = f"is missing, and the file's own name can't be used: {error}"
        section.notes.refuse((1, 1), "name", words, "Write `name: …`; it has lower-case letters, digits and hyphens.")
        return default


def _context(section: Section, known: _Known) -> Context | None:
    """Absent or false: nothing is shared. Empty or true: both files. Else the selected ones."""
    if "context" not in section:
        return None
    if isinstance(section.node("context"), Leaf):
        wanted = section.flag("context", default=True)
        return _shared(Section(section.notes, "context", None), known) if wanted else None
    below = section.section("context")
    below.only(("dir", "channel", "document"), {"file": "It belongs below channel or document."})
    return _shared(below, known)


def _shared(section: Section, known: _Known) -> Context | None:
    channel, document = _selected(section, "channel"), _selected(section, "document")
    context = Context(
        folder=_folder(section, known),
        channel=_file(section, "channel", CHANNEL_FILE) if (not document if channel is None else channel) else "",
        document=_file(section, "document", DOCUMENT_FILE) if (not channel if document is None else document) else "",
    )
    if context.channel and context.channel == context.document:
        section.refuse("document", f"channel and document are the same file, {context.channel}.", "Rename one.")
    known.names.update({f"context.{file}": None for file in ("channel", "document") if getattr(context, file)})
    return context if context.channel or context.document else None


def _selected(section: Section, key: str) -> bool | None:
    """Whether a file is wanted; None if the workflow does not say."""
    if key not in section:
        return None
    return section.flag(key, default=True) if isinstance(section.node(key), Leaf) else True


def _file(section: Section, key: str, default: str) -> str:
    if not isinstance(section.node(key), Keys):
        if isinstance(section.node(key), Items):
            section.section(key)  # which says what is wrong
        return default
    below = section.section(key)
    below.only(("file",), {"dir": "It belongs below context: both files are in one folder."})
    name = below.text("file", required=f"Leave it out for {default}.") if "file" in below else default
    if name and ("/" in name or name in (".", "..") or not name.isprintable()):
        below.refuse("file", f"{name!r} is no name of a file in the context's folder.", "Write it without folders.")
    elif name.startswith("."):
        below.refuse("file", f"{name} would be hidden.", "Write a name that does not begin with a dot.")
    return name


def _folder(section: Section, known: _Known) -> Template:
    if section.node("dir") is None:
        return parse(CONTEXT_FOLDER)[0]
    folder = take_template(section, "dir")
    known.check(section, "dir", folder)
    if any(reference.name.startswith(f"{ENVIRONMENT}.") for reference in folder.references):
        section.refuse("dir", "the environment can't say where the context is.", "Use ${{ instance }}.")
    path = section.text("dir")
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        section.refuse("dir", f"{path} leads out of the project.", "Write a folder below the project's top.")
    elif _is_taken(path):
        section.refuse("dir", f"{path} is no place for what agents write.", f"Leave it out for {CONTEXT_FOLDER}.")
    return folder


def _is_taken(path: str) -> bool:
    """Whether a folder is git's or ours, or could become git's once a value is filled in."""
    parts = [part.lower() for part in path.split("/") if part not in ("", ".")]
    ours = parts[:1] == [".windlass"] and parts[1:2] != ["context"]
    return ours or any(part == ".git" or (part.startswith(".") and "${{" in part) for part in parts)


def _setup(section: Section, known: _Known) -> tuple[SetupStep, ...]:
    made = []
    steps = section.listed("setup")
    known.later = {leaf.text for step in steps if isinstance(leaf := step.node("as"), Leaf)}
    for step in steps:
        step.only(("shell", "as", "timeout"), {"run": "Did you mean shell?", "name": "Did you mean as?"})
        shell = take_template(step, "shell", required="Write the command to run.")
        known.check(step, "shell", shell)
        name = step.checked("as", check_value_name, "")
        if name and name in known.names:
            step.refuse("as", f"{name} is already the output of an earlier command.", "Choose another name.")
        if name:
            known.names[name] = None
        made.append(SetupStep(shell=shell, name=name, seconds=step.seconds("timeout") or DEFAULT_SETUP_SECONDS))
    return tuple(made)


def _kickoff(section: Section, known: _Known, agents: tuple[Member, ...]) -> Template:
    tasks = section.node("tasks")
    tasked = bool(tasks.entries) if isinstance(tasks, Keys) else tasks is not None
    kickoff = take_template(section, "kickoff", required="" if tasked else _KICKOFF)
    known.check(section, "kickoff", kickoff)
    names = [agent.name for agent in agents if is_own_name(agent.name)]
    if not kickoff.pieces or len(names) != len(agents) or not names:
        return kickoff
    strange = [stranger for stranger in strangers(kickoff.spoken, names)[:MOST_PARTS] if near_miss(stranger, names)]
    nobody = not mentions(kickoff.spoken, names).addressed
    for stranger in strange:
        note = section.refuse if nobody else section.warn
        note("kickoff", f"@{stranger} is no agent of this workflow.", near_miss(stranger, names))
    if nobody and not tasked and not strange:
        values = " What values contain does not count." if kickoff.references else ""
        section.refuse(
            "kickoff", "addresses nobody, so nothing would happen.", f"Mention who begins, such as @{names[0]}.{values}"
        )
    return kickoff


def _limits(section: Section) -> WorkflowLimits:
    below = section.section("limits")
    below.only(("runs", "timeout", "hops", "wakes"))
    return WorkflowLimits(
        runs=below.whole("runs"), seconds=below.seconds("timeout"), hops=below.whole("hops"), wakes=below.whole("wakes")
    )

"""The agents of a workflow, as its file describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from windlass.core.agents.definition import LONGEST_ROLE, PEOPLE
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.section import Section, agent_name
from windlass.core.files.template import parse
from windlass.core.files.tree import Leaf
from windlass.core.nouns.agent import Permissions, ToolKind, check_model
from windlass.core.workflows.workflow import Member, WorktreeChoice

KEYS = (
    "model", "system_prompt", "tools", "provider", "command", "role", "permissions", "worktree", "persistent",
    "triggers", "handoff_to",
)  # fmt: skip
COMMAND = "command"
"""The provider whose agents are shell commands."""

_EXPLAINED = {
    "prompt": "Did you mean system_prompt?",
    "name": "An agent is called what stands before the colon above.",
    "backend": "Did you mean provider?",
    "description": "Did you mean role?",
}
_FILE = re.compile(r"\S+\.(?:md|txt)")
_OTHER_WORDS = {
    **dict.fromkeys(("bash", "sh", "terminal", "command", "run", "exec"), ToolKind.SHELL),
    **dict.fromkeys(("grep", "glob", "find", "ls", "list"), ToolKind.SEARCH),
    **dict.fromkeys(("write", "patch", "multiedit", "create"), ToolKind.EDIT),
    **dict.fromkeys(("fetch", "webfetch", "websearch", "browser", "http"), ToolKind.WEB),
    **dict.fromkeys(("view", "cat", "files"), ToolKind.READ),
}
"""What others call our tools."""
_BROUGHT = ("channel", "document")
_WHO = "Say who it is: `system_prompt: You review code.`, or the name of a file ending in .md."


def read_agents(section: Section, prompt: Callable[[str], str], providers: Collection[str]) -> tuple[Member, ...]:
    """All of them, also those with whom something is wrong."""
    found = section.sections("agents")
    if "agents" not in section or (not found and section.node("agents") is None):
        section.refuse(
            "agents", "is missing." if "agents" not in section else "is empty.", "A workflow needs an agent."
        )
    for name, each in found:
        try:
            agent_name(name)
        except BadInput as error:
            remedy = "It belongs below an agent: indent it further." if name in KEYS else error.hint
            each.notes.refuse(_key(section, name), each.path, str(error), remedy)
    names = [name for name, _ in found]
    return tuple(_agent(name, each, names, prompt, providers) for name, each in found)


def _key(section: Section, name: str) -> tuple[int, int]:
    return section.section("agents").key_place(name)


def _agent(
    name: str, section: Section, names: list[str], prompt: Callable[[str], str], providers: Collection[str]
) -> Member:
    section.only(KEYS, _EXPLAINED)
    text, file = _prompt(section, prompt)
    permissions = section.word("permissions", Permissions, Permissions.EDIT)
    return Member(
        name=name,
        model=section.checked("model", _model),
        provider=_provider(section, providers),
        command=section.text("command", required="Say what to run." if "command" in section else ""),
        system_prompt=text,
        prompt_file=file,
        role=section.line("role", LONGEST_ROLE),
        tools=_tools(section, permissions),
        permissions=permissions,
        worktree=section.word("worktree", WorktreeChoice, WorktreeChoice.SHARED),
        persistent=section.flag("persistent", default=False),
        triggers=tuple(dict.fromkeys(" ".join(each.text.split()) for each in section.texts("triggers"))),
        handoff_to=_targets(section, name, names),
    )


def _model(text: str) -> str:
    check_model(text)
    return text


def _prompt(section: Section, prompt: Callable[[str], str]) -> tuple[str, str]:
    """The text, and the file that it comes from, if it does."""
    enough = "command" in section or section.node("role") is not None
    text = section.text("system_prompt", required="" if enough else _WHO)
    if not _FILE.fullmatch(text.strip()):
        if parse(text)[0].references:
            words = "values are not filled in here: a prompt stays as it is written."
            section.notes.warn(section.spot("system_prompt", 0), section.field("system_prompt"), words, "Use kickoff.")
        return text, ""
    try:
        return prompt(text.strip()), text.strip()
    except BadInput as error:
        section.refuse("system_prompt", str(error), error.hint)
        return "", text.strip()


def _provider(section: Section, known: Collection[str]) -> str:
    provider = section.text("provider")
    if "command" in section:
        for key in ("model", "tools"):
            if key in section:
                section.refuse(key, f"a command is run as it is, so it gets no {key}.", "Keep one of the two.")
        if provider and provider != COMMAND:
            section.refuse("provider", f"a command is run as it is, not by {provider}.", "Keep one of the two.")
        return COMMAND
    if provider == COMMAND:
        section.refuse("provider", "there is no command to run.", "Write `command: …`.")
    elif provider and known and provider not in known:
        section.warn("provider", f"no provider is called {provider} here.", near_miss(provider, known))
    return provider


def _tools(section: Section, permissions: Permissions) -> tuple[ToolKind, ...] | None:
    if section.node("tools") is None:
        return None
    tools = list[ToolKind]()
    for text in section.texts("tools"):
        if text.text in _BROUGHT:
            words = f"{text.text} comes with context, for every agent."
            section.notes.warn(text.at, section.field("tools"), words, "Leave it out.")
        elif text.text not in list(ToolKind):
            _refuse_tool(section, text)
        elif text.text == ToolKind.EDIT and permissions is Permissions.READ:
            words = "edit contradicts `permissions: read`, under which nothing is changed."
            section.notes.refuse(text.at, section.field("tools"), words, "Keep one of the two.")
        else:
            tools.append(ToolKind(text.text))
    return tuple(dict.fromkeys(tools))


def _refuse_tool(section: Section, leaf: Leaf) -> None:
    word = leaf.text.lower()
    near = f"Did you mean {_OTHER_WORDS[word]}?" if word in _OTHER_WORDS else near_miss(word, list(ToolKind))
    remedy = f"{near} The tools are {', '.join(ToolKind)}.".lstrip()
    section.notes.refuse(leaf.at, section.field("tools"), f"there is no tool {leaf.text}.", remedy)


def _targets(section: Section, name: str, names: list[str]) -> tuple[str, ...]:
    listed = section.texts("handoff_to")
    for each in listed:
        if each.text == name:
            words = f"{name} hands its work to itself."
            section.notes.refuse(each.at, section.field("handoff_to"), words, "Leave it out.")
        elif each.text not in (*names, *PEOPLE) and not section.notes.full:
            words = f"{each.text} is no agent of this workflow."
            section.notes.refuse(each.at, section.field("handoff_to"), words, near_miss(each.text, names))
    return tuple(dict.fromkeys(each.text for each in listed))

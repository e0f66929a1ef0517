"""The agents of a workflow, as its file describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from windlass.core.address import own_name
from windlass.core.agents.definition import PEOPLE
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.section import Section
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
    "name": "The key above is the agent's name.",
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
"""Our tools by the words that other programs have for them."""
_BROUGHT = ("channel", "document")
_WHO = "Say who it is: `system_prompt: You review code.`, or the name of a file ending in .md."


def read_agents(section: Section, prompt: Callable[[str], str], providers: Collection[str]) -> tuple[Member, ...]:
    """All agents of the file, also those with problems."""
    if section.node("agents") is None:
        words = "is missing." if "agents" not in section else "is empty."
        section.refuse("agents", words, "A workflow needs an agent.")
    found = section.sections("agents")
    for name, _ in found:
        try:
            own_name(name)
        except BadInput as error:
            remedy = "It belongs below an agent: indent it further." if name in KEYS else error.hint
            agents = section.section("agents")
            agents.refuse(name, str(error), remedy, agents.key_place(name))
    names = [name for name, _ in found]
    return tuple(_agent(name, below, names, prompt, providers) for name, below in found)


def _agent(
    name: str, section: Section, names: list[str], prompt: Callable[[str], str], providers: Collection[str]
) -> Member:
    section.only(KEYS, _EXPLAINED)
    text, file = _prompt(section, prompt)
    permissions = section.word("permissions", Permissions, Permissions.EDIT)
    return Member(
        name=name,
        model=section.checked("model", check_model, ""),
        provider=_provider(section, providers),
        command=section.text("command", required="Say what to run." if "command" in section else ""),
        system_prompt=text,
        prompt_file=file,
        role=section.line("role"),
        tools=_tools(section, permissions),
        permissions=permissions,
        worktree=section.word("worktree", WorktreeChoice, WorktreeChoice.SHARED),
        persistent=section.flag("persistent", default=False),
        triggers=section.lines("triggers"),
        handoff_to=_targets(section, name, names),
    )


def _prompt(section: Section, prompt: Callable[[str], str]) -> tuple[str, str]:
    """The text, and the file that it comes from, if it does."""
    enough = "command" in section or section.node("role") is not None
    text = section.text("system_prompt", required="" if enough else _WHO)
    if not _FILE.fullmatch(text.strip()):
        if parse(text)[0].references:
            words = "values are not filled in here: a prompt stays as it is written."
            section.warn("system_prompt", words, "Use kickoff.", section.spot("system_prompt", 0))
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
    for tool in section.texts("tools"):
        if tool.text in _BROUGHT:
            section.warn("tools", f"{tool.text} comes with context, for every agent.", "Leave it out.", tool.at)
        elif tool.text not in list(ToolKind):
            _refuse_tool(section, tool)
        elif tool.text == ToolKind.EDIT and permissions is Permissions.READ:
            words = "edit contradicts `permissions: read`, under which nothing is changed."
            section.refuse("tools", words, "Keep one of the two.", tool.at)
        else:
            tools.append(ToolKind(tool.text))
    return tuple(dict.fromkeys(tools))


def _refuse_tool(section: Section, leaf: Leaf) -> None:
    word = leaf.text.lower()
    near = f"Did you mean {_OTHER_WORDS[word]}?" if word in _OTHER_WORDS else near_miss(word, list(ToolKind))
    remedy = f"{near} The tools are {', '.join(ToolKind)}.".lstrip()
    section.refuse("tools", f"there is no tool {leaf.text}.", remedy, leaf.at)


def _targets(section: Section, name: str, names: list[str]) -> tuple[str, ...]:
    targets = section.texts("handoff_to")
    for target in targets:
        if target.text == name:
            section.refuse("handoff_to", f"{name} hands its work to itself.", "Leave it out.", target.at)
        elif target.text not in (*names, *PEOPLE) and not section.notes.full:
            words = f"{target.text} is no agent of this workflow."
            section.refuse("handoff_to", words, near_miss(target.text, names), target.at)
    return tuple(dict.fromkeys(target.text for target in targets))

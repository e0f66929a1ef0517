"""What an agent is told at the start of a run: XML tags on top, Markdown inside, in a fixed order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from windlass.core.agent import Agent
from windlass.core.errors import BadInput
from windlass.core.message import Message
from windlass.core.plain import word
from windlass.core.render import fenced
from windlass.core.run import Cause
from windlass.core.task import Task

BLOCKS = ("role", "input_files", "git_workflow", "signal_format", "session_start", "finishing_checklist")
"""The blocks that must be there. Each becomes a tag of its name."""

TAGS = (*BLOCKS, "task", "messages", "woken")

_TAG = re.compile(rf"<(?=/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_WOKEN = {
    Cause.MAIL: "You have worked on this task before, in this worktree. There are new messages for you.",
    Cause.REMINDER: "You have worked on this task before, in this worktree. Something is still missing.",
}


def build_prompt(
    *,
    agent: Agent,
    task: Task,
    main: str,
    blocks: Mapping[str, str],
    mail: Sequence[Message],
    cause: Cause,
) -> str:
    """The prompt of a run: the whole briefing for a first one, what is new for a later one."""
    said = _filled(blocks, main=main, branch=agent.branch)
    what = (("task", _task(task)), ("messages", _messages(mail)))
    if cause is Cause.TASK:
        sections = _first(said, *what)
    else:
        sections = [("woken", _WOKEN[cause]), *what, *_some(said, "git_workflow", "signal_format")]
    return "\n\n".join(f"<{tag}>\n{text}\n</{tag}>" for tag, text in sections if text) + "\n"


def _first(said: Mapping[str, str], task: tuple[str, str], messages: tuple[str, str]) -> list[tuple[str, str]]:
    return [
        *_some(said, "role"),
        task,
        *_some(said, "input_files", "git_workflow", "signal_format", "session_start"),
        messages,
        *_some(said, "finishing_checklist"),
    ]


def _some(said: Mapping[str, str], *names: str) -> list[tuple[str, str]]:
    return [(name, said[name]) for name in names]


def _filled(blocks: Mapping[str, str], *, main: str, branch: str) -> dict[str, str]:
    """The blocks with the names of this project's branches in them."""
    missing = [name for name in BLOCKS if not blocks.get(name, "").strip()]
    if missing:
        raise BadInput(f"The prompt has no block {missing[0]}.", hint=f"Write it to prompts/{missing[0]}.md.")
    return {name: blocks[name].strip().replace("{MAIN}", word(main)).replace("{BRANCH}", branch) for name in BLOCKS}


def _task(task: Task) -> str:
    brief = f"\n\n{_defused(task.brief.strip())}" if task.brief.strip() else ""
    return f"# {_defused(task.title)}\n\nTask {task.id}.{brief}"


def _messages(mail: Sequence[Message]) -> str:
    return "\n\n".join(map(_message, mail))


def _message(message: Message) -> str:
    reply = f", in reply to {message.reply_to}" if message.reply_to else ""
    return f"## {message.id} from {message.sender} ({message.kind}{reply})\n\n{fenced(_defused(message.body))}"


def _defused(text: str) -> str:
    """Text in which none of our own tags can be opened or closed; the rest stays exactly as it was."""
    return _TAG.sub("<\\\\", text)

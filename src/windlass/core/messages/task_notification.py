"""What a worker tells its coordinator when it is through: `<task-notification>`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from windlass.core.errors import BadInput
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState

ROOT, USAGE = "task-notification", "usage"
TEXTS = ("task-id", "status", "summary", "result")
NUMBERS = ("total-tokens", "tool-uses", "duration-ms")
"""Within `usage`."""
LONGEST_ID = 200
LARGEST_NUMBER = 2**63 - 1

_UNSAYABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML can hold."""
_NUMBER = re.compile(r"[0-9]{1,19}")
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;"))


class TaskEnding(StrEnum):
    """How a task ended, for whoever waits for it."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A task that has come to an end, and what that took."""

    task: str
    status: TaskEnding
    summary: str
    result: str = ""
    tokens: int = 0
    tools: int = 0
    """How often a tool was used."""
    milliseconds: int = 0


_ENDINGS = {
    TaskState.DONE: TaskEnding.COMPLETED,
    TaskState.FAILED: TaskEnding.FAILED,
    TaskState.CANCELLED: TaskEnding.STOPPED,
    TaskState.WAITING: TaskEnding.WAITING,
    TaskState.LANDING: TaskEnding.WAITING,
}


_BEGINNING = re.compile(rf"\s*(?:<[?!][^>]*>\s*|\]>\s*)*<{ROOT}\b")


def is_notification(text: str) -> bool:
    """Whether a text means to be one: it begins so, whatever XML allows before it."""
    return _BEGINNING.match(text) is not None


def notification_of(task: Task | None, runs: Sequence[Run]) -> Notification | None:
    """What whoever waits for a task may be told: nothing while it is still at it."""
    own = [run for run in runs if task and run.task == task.id]
    if task is None or task.state not in _ENDINGS or not own:
        return None
    latest, usage = own[-1], [run.usage for run in own]
    spans = ((run.ended_at or run.starting_at) - (run.started_at or run.starting_at) for run in own)
    return Notification(
        task=task.id,
        status=_ENDINGS[task.state],
        summary=(latest.result or task.reason or latest.reason or task.title).strip().partition("\n")[0],
        result=latest.result or latest.reason,
        tokens=sum(one.input_tokens + one.output_tokens for one in usage),
        tools=sum(one.tool_uses for one in usage),
        milliseconds=round(1000 * sum(max(0.0, span) for span in spans)),
    )


def write_notification(notification: Notification) -> str:
    """The notification as XML. What XML can't hold, such as an escape character, is shown as a replacement."""
    texts = (notification.task, notification.status, notification.summary, notification.result)
    numbers = (notification.tokens, notification.tools, notification.milliseconds)
    lines = [f"  <{name}>{_escaped(text)}</{name}>" for name, text in zip(TEXTS, texts, strict=True)]
    usage = [f"    <{name}>{number}</{name}>" for name, number in zip(NUMBERS, numbers, strict=True)]
    return "\n".join((f"<{ROOT}>", *lines, f"  <{USAGE}>", *usage, f"  </{USAGE}>", f"</{ROOT}>"))


def _escaped(text: str) -> str:
    sayable = _UNSAYABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    for plain, written in _ESCAPES:
        sayable = sayable.replace(plain, written)
    return sayable


def check_notification(texts: Mapping[str, str], numbers: Mapping[str, str]) -> Notification:
    """The notification that these elements say, or what is wrong with them."""
    task = texts.get("task-id", "").strip()
    if not task or len(task) > LONGEST_ID or not task.isprintable():
        raise BadInput(f"A <{ROOT}> needs a <task-id> of one to {LONGEST_ID} characters.")
    if "summary" not in texts:
        raise BadInput(f"The <{ROOT}> of {task} has no <summary>.")
    tokens, tools, milliseconds = (_number(name, numbers.get(name, "0"), task) for name in NUMBERS)
    return Notification(
        task=task,
        status=_ending(texts.get("status", ""), task),
        summary=texts["summary"],
        result=texts.get("result", ""),
        tokens=tokens,
        tools=tools,
        milliseconds=milliseconds,
    )


def _ending(text: str, task: str) -> TaskEnding:
    try:
        return TaskEnding(text.strip())
    except ValueError as error:
        known = ", ".join(TaskEnding)
        raise BadInput(f"The <status> of {task} is {text[:40]!r}, which is none of {known}.") from error


def _number(name: str, text: str, task: str) -> int:
    if not _NUMBER.fullmatch(text.strip()) or int(text) > LARGEST_NUMBER:
        raise BadInput(f"The <{name}> of {task} is {text[:40]!r}, which is no number.")
    return int(text)

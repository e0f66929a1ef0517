"""The tools, one function each: what was given becomes one verb, and its result something that clients can show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from windlass.core.errors import BadInput
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.engine import Engine
from windlass.engine.messages.directory import Speaker
from windlass.engine.messages.documents import NOTES
from windlass.engine.messages.handoffs import Handoff
from windlass.engine.messages.talk import Post
from windlass.mcp.schema import Argument

MOST_ENTRIES = 200
FEW_ENTRIES = 20
LONGEST_WAIT = 50.0
"""Seconds; many clients give up on a tool after a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: by whom, about which project, with what."""

    engine: Engine
    speaker: Speaker
    project: str
    given: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    """The caller's own name for this call: repeated after a broken connection, it is the same call."""
    claims: str = ""
    """The agent that a person says to be."""

    def text(self, name: str, default: str = "") -> str:
        return str(self.given.get(name, default))

    def limit(self, default: int = FEW_ENTRIES) -> int:
        return min(int(self.given.get("limit", default)) or default, MOST_ENTRIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, as clients see it."""

    name: str
    about: str
    call: Callable[[ToolCall], Awaitable[dict[str, Any]]]
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    of_runs: bool = False
    """Only a run can use it."""
    looks: bool = False
    """It changes nothing."""
    repeatable: bool = False
    """Called again with the same key, it does no more than once."""


def entry(message: Message) -> dict[str, Any]:
    """A message as clients see it; more than the four only where there is more to say."""
    time = datetime.fromtimestamp(message.sent_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    found: dict[str, Any] = {"id": message.id, "time": time, "from": message.sender, "message": message.body}
    if message.kind is not Kind.SAY:
        found["kind"] = str(message.kind)
    if message.reply_to:
        found["reply_to"] = message.reply_to
    if message.channel != "main":
        found["channel"] = message.channel
    if message.direct:
        found["to"] = list(message.to)
    if message.claims:
        found["claims"] = message.claims
    return found


def page(document: Document) -> dict[str, Any]:
    """A document as clients see it."""
    return {
        "name": _called(document),
        "revision": document.revision,
        "author": document.author,
        "text": document.body,
    }


def _called(document: Document) -> str:
    """What it is called where it lies."""
    return document.name.rpartition("/")[2]


# ── the channel ──────────────────────────────────────────────────────────────────────────────────────────────


async def channel_send(call: ToolCall) -> dict[str, Any]:
    to, handoff = tuple(call.given.get("to", ())), _handoff(call)
    new = await _newcomers(call, to)
    sent = await call.engine.talk.send(
        call.speaker,
        Post(
            body=call.text("message"),
            project=call.project,
            to=to,
            everyone=bool(call.given.get("all")),
            channel=call.text("channel"),
            kind=Kind.HANDOFF if handoff else Kind.SAY,
            reply_to=call.text("reply_to"),
            key=call.key,
            claims=call.claims,
            handoff=handoff,
        ),
    )
    return {"id": sent.id, "channel": sent.channel, "to": list(sent.to)} | (new or await _missed(call, sent))


def _handoff(call: ToolCall) -> Handoff | None:
    """What is given on with a piece of work, if it is."""
    given = {key: call.text(key) for key in ("done", "needed", "why") if call.text(key)}
    files = tuple(call.given.get("files", ()))
    return Handoff(**given, files=files) if given or files else None


async def _missed(call: ToolCall, sent: Message) -> dict[str, Any]:
    """Of words that are for nobody: whom they seem to mention."""
    if sent.to:
        return {}
    project = await call.engine.projects.get(call.project)
    hint = await call.engine.directory.missed(project, call.speaker, sent.body)
    return {"hint": hint} if hint else {}


async def _newcomers(call: ToolCall, to: Iterable[str]) -> dict[str, Any]:
    """What is to be said about instances that are only there from now on."""
    project = await call.engine.projects.get(call.project)
    hint = await call.engine.directory.newcomers(project, to)
    return {"hint": hint} if hint else {}


async def channel_peek(call: ToolCall) -> dict[str, Any]:
    return {"entries": [entry(each) for each in await _seen(call)]}


async def channel_read(call: ToolCall) -> dict[str, Any]:
    """What is shown is acknowledged, and nothing else."""
    seen = await _seen(call)
    owed = {each.message.id for each in await call.engine.talk.inbox(call.speaker.address)}
    if shown := [each.id for each in seen if each.id in owed]:
        await call.engine.talk.ack(call.speaker, *shown)
    return {"entries": [entry(each) for each in seen]}


async def _seen(call: ToolCall) -> list[Message]:
    talk, since = call.engine.talk, call.text("since")
    return await talk.peek(call.speaker, call.project, channel=call.text("channel"), since=since, limit=call.limit())


async def channel_wait(call: ToolCall) -> dict[str, Any]:
    """Whoever waits again from `since` misses nothing in between."""
    timeout = min(float(call.given.get("timeout", 30.0)), LONGEST_WAIT)
    which = {"channel": call.text("channel"), "since": call.text("since")}
    talk = call.engine.talk
    heard, since = await talk.wait(call.speaker, call.project, **which, patience=timeout, limit=MOST_ENTRIES)
    return {"entries": [entry(each) for each in heard], "since": since}


# ── the inbox ────────────────────────────────────────────────────────────────────────────────────────────────


async def inbox_read(call: ToolCall) -> dict[str, Any]:
    letters = [each for each in await call.engine.talk.inbox(call.speaker.address) if each.delivery.owed]
    shown = letters[: call.limit(MOST_ENTRIES)]
    return {"entries": [entry(each.message) for each in shown], "more": len(letters) - len(shown)}


async def inbox_ack(call: ToolCall) -> dict[str, Any]:
    acked = await call.engine.talk.ack(call.speaker, *call.given["ids"], before=bool(call.given.get("before")))
    return {"acknowledged": [each.message for each in acked]}


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────


async def ask(call: ToolCall) -> dict[str, Any]:
    targets = {key: call.text(key) for key in ("agent", "task", "phase") if call.text(key)}
    if len(targets) != 1:
        raise BadInput("Ask one: give agent, task or phase, and only one of them.")
    new = await _newcomers(call, filter(None, [call.text("agent")]))
    asked = await call.engine.talk.converse(
        call.speaker, call.project, call.text("question"), **targets, claims=call.claims, key=call.key
    )
    return {"conversation": asked.id, "to": list(asked.to)} | new


async def answer(call: ToolCall) -> dict[str, Any]:
    said = await call.engine.talk.settle(call.speaker, call.text("conversation"), call.text("answer"))
    return {"id": said.id, "conversation": said.reply_to}


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────


async def document_read(call: ToolCall) -> dict[str, Any]:
    return page(await call.engine.documents.read(call.project, **await _which(call)))


async def document_write(call: ToolCall) -> dict[str, Any]:
    written = await call.engine.documents.write(
        call.speaker, call.project, call.text("text"), **await _which(call), revision=call.given.get("revision")
    )
    return {"name": _called(written), "revision": written.revision}


async def document_append(call: ToolCall) -> dict[str, Any]:
    written = await call.engine.documents.append(call.speaker, call.project, call.text("text"), **await _which(call))
    return {"name": _called(written), "revision": written.revision}


async def document_list(call: ToolCall) -> dict[str, Any]:
    found = await call.engine.documents.every(call.project, instance=(await _which(call))["instance"])
    return {"documents": [{"name": _called(each), "revision": each.revision, "author": each.author} for each in found]}


async def _which(call: ToolCall) -> dict[str, str]:
    """The page that is meant."""
    instance = await call.engine.documents.instance(call.speaker, call.text("instance"))
    return {"name": call.text("name", NOTES), "instance": instance}


# ── others, and oneself ──────────────────────────────────────────────────────────────────────────────────────


async def agents_list(call: ToolCall) -> dict[str, Any]:
    views = await call.engine.status.every(project=call.project)
    found = [
        {
            "name": view.agent.id,
            "role": view.agent.role,
            "status": str(view.status),
            "task": view.task.title if view.task else "",
            "you": view.agent.id == call.speaker.address,
        }
        for view in views
    ]
    project = await call.engine.projects.get(call.project)
    new = await call.engine.directory.unmet(project)
    return {"agents": [*found, *({"name": name, "role": role, "status": "not started yet"} for name, role in new)]}


async def complete(call: ToolCall) -> dict[str, Any]:
    run = await call.engine.runs.signal(call.speaker.run, _signal(call))
    return {"run": run.id, "said": "Said. You can end now."}


def _signal(call: ToolCall) -> dict[str, Any]:
    questions, error = call.given.get("questions", []), call.text("error")
    if sum(map(bool, (questions, error, call.text("result")))) > 1:
        raise BadInput("Give a result, or questions, or an error: only one of them.")
    if questions:
        asked = [{"id": f"q{n}", "question": each} for n, each in enumerate(questions, start=1)]
        return {"status": "questions", "questions": asked}
    return {"status": "error", "error": error} if error else {"status": "done", "result": call.text("result")}

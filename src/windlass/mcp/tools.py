"""The tools, one function each: what was given becomes one verb, and its result something that clients can show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from windlass.core.errors import BadInput
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import Handoff, NewMessage
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.engine import Engine
from windlass.engine.messages.callers import CallerInProject
from windlass.engine.messages.documents import NOTES
from windlass.engine.messages.talk import Sent
from windlass.mcp.schema import Argument

MOST_ENTRIES = 200
FEW_ENTRIES = 20
LONGEST_WAIT = 50.0
"""Seconds; many clients give up on a tool after a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: by whom, about which project, with what."""

    engine: Engine
    caller: CallerInProject
    given: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    """The caller's own name for this call: repeated after a broken connection, it is the same call."""

    @property
    def speaker(self) -> Speaker:
        return self.caller.speaker

    @property
    def project(self) -> str:
        return self.caller.project.id

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
    handoff = _handoff(call)
    new = NewMessage(
        body=call.text("message"),
        to=tuple(call.given.get("to", ())),
        everyone=bool(call.given.get("all")),
        channel=call.text("channel"),
        kind=Kind.HANDOFF if handoff else Kind.SAY,
        reply_to=call.text("reply_to"),
        key=call.key,
        handoff=handoff,
    )
    sent = await call.engine.callers.say(call.caller, new)
    message = sent.message
    return {"id": message.id, "channel": message.channel, "to": list(message.to)} | _hint(sent)


def _hint(sent: Sent) -> dict[str, Any]:
    return {"hint": sent.hint} if sent.hint else {}


def _handoff(call: ToolCall) -> Handoff | None:
    given = {key: call.text(key) for key in ("done", "needed", "why") if call.text(key)}
    files = tuple(call.given.get("files", ()))
    return Handoff(**given, files=files) if given or files else None


async def channel_peek(call: ToolCall) -> dict[str, Any]:
    return {"entries": [entry(message) for message in await _seen(call)]}


async def channel_read(call: ToolCall) -> dict[str, Any]:
    """What is shown is acknowledged, and nothing else."""
    seen = await _seen(call)
    owed = {letter.message.id for letter in await call.engine.talk.inbox(call.speaker.address)}
    if shown := [message.id for message in seen if message.id in owed]:
        await call.engine.talk.ack(call.speaker, *shown)
    return {"entries": [entry(message) for message in seen]}


async def _seen(call: ToolCall) -> list[Message]:
    talk, since = call.engine.talk, call.text("since")
    return await talk.peek(call.speaker, call.project, channel=call.text("channel"), since=since, limit=call.limit())


async def channel_wait(call: ToolCall) -> dict[str, Any]:
    """Whoever waits again from `since` misses nothing in between."""
    timeout = min(float(call.given.get("timeout", 30.0)), LONGEST_WAIT)
    which = {"channel": call.text("channel"), "since": call.text("since")}
    talk = call.engine.talk
    heard, since = await talk.wait(call.speaker, call.project, **which, patience=timeout, limit=MOST_ENTRIES)
    return {"entries": [entry(message) for message in heard], "since": since}


# ── the inbox ────────────────────────────────────────────────────────────────────────────────────────────────


async def inbox_read(call: ToolCall) -> dict[str, Any]:
    return await unread(call.engine, call.speaker, limit=call.limit(MOST_ENTRIES))


async def unread(engine: Engine, speaker: Speaker, *, limit: int = MOST_ENTRIES) -> dict[str, Any]:
    """The mail that a speaker has not acknowledged."""
    mail = [letter.message for letter in await engine.talk.inbox(speaker.address) if letter.delivery.owed]
    return {"entries": [entry(message) for message in mail[:limit]], "more": max(0, len(mail) - limit)}


async def inbox_ack(call: ToolCall) -> dict[str, Any]:
    acked = await call.engine.talk.ack(call.speaker, *call.given["ids"], before=bool(call.given.get("before")))
    return {"acknowledged": [delivery.message for delivery in acked]}


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────


async def ask(call: ToolCall) -> dict[str, Any]:
    targets = {key: call.text(key) for key in ("agent", "task", "phase")}
    asked = await call.engine.callers.ask(call.caller, call.text("question"), **targets, key=call.key)
    return {"conversation": asked.message.id, "to": list(asked.message.to)} | _hint(asked)


async def answer(call: ToolCall) -> dict[str, Any]:
    said = await call.engine.talk.settle(call.speaker, call.text("conversation"), call.text("answer"))
    return {"id": said.id, "conversation": said.reply_to}


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────


async def document_read(call: ToolCall) -> dict[str, Any]:
    which = await _which(call)
    return page(await call.engine.documents.read(call.project, which["name"], instance=which["instance"]))


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
    return {"documents": [{"name": _called(page), "revision": page.revision, "author": page.author} for page in found]}


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
    new = await call.engine.directory.not_started(call.project)
    return {"agents": [*found, *({"name": name, "role": role, "status": "not started yet"} for name, role in new)]}


async def complete(call: ToolCall) -> dict[str, Any]:
    run = await call.engine.runs.signal(call.speaker.run, _signal(call))
    return {"run": run.id, "said": "Said. You can end now."}


def _signal(call: ToolCall) -> dict[str, Any]:
    questions, error = call.given.get("questions", []), call.text("error")
    if sum(map(bool, (questions, error, call.text("result")))) > 1:
        raise BadInput("Give a result, or questions, or an error: only one of them.")
    if questions:
        asked = [{"id": f"q{n}", "question": question} for n, question in enumerate(questions, start=1)]
        return {"status": "questions", "questions": asked}
    return {"status": "error", "error": error} if error else {"status": "done", "result": call.text("result")}

"""The tools, one function each: what was given becomes one verb, and its result something that clients can show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_type_hints

from windlass.core.agents.grants import Grant, may_call
from windlass.core.errors import BadInput
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import Handoff, NewMessage
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Kind, Message
from windlass.core.requests import Request
from windlass.engine import Engine
from windlass.engine.messages.callers import CallerInProject
from windlass.engine.messages.talk import Sent
from windlass.mcp import arguments

MOST_ENTRIES = 200
FEW_ENTRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: by whom, and in which project."""

    engine: Engine
    caller: CallerInProject
    key: str = ""
    """The caller's own name for this call: repeated after a broken connection, it is the same call."""

    @property
    def speaker(self) -> Speaker:
        return self.caller.speaker

    @property
    def project(self) -> str:
        return self.caller.project.id


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, as clients see it: its function's name, docstring and arguments."""

    call: Callable[[ToolCall, Any], Awaitable[dict[str, Any]]]
    grant: Grant = Grant.PERSON
    subject: str = ""
    """The argument that names what the grant is about, if it is about something named."""
    looks: bool = False
    """It changes nothing."""
    repeatable: bool = False
    """Called again with the same key, it does no more than once."""

    @property
    def name(self) -> str:
        return self.call.__name__

    @property
    def about(self) -> str:
        return self.call.__doc__ or ""

    @property
    def arguments(self) -> type[Request]:
        found: type[Request] = get_type_hints(self.call)["given"]
        return found


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
    return {"name": _called(document), "revision": document.revision, "author": document.author, "text": document.body}


def _called(document: Document) -> str:
    """A document's name in its instance."""
    return document.name.rpartition("/")[2]


# ── the channel ──────────────────────────────────────────────────────────────────────────────────────────────


async def channel_send(call: ToolCall, given: arguments.ChannelSend) -> dict[str, Any]:
    """Post to your channel. Write @name to wake an agent: at the start of a paragraph to speak to it."""
    handoff = Handoff(done=given.done, needed=given.needed, files=given.files, why=given.why)
    handed = handoff != Handoff()
    new = NewMessage(
        body=given.message,
        to=given.to,
        everyone=given.everyone,
        channel=given.channel,
        kind=Kind.HANDOFF if handed else Kind.SAY,
        reply_to=given.reply_to,
        key=call.key,
        handoff=handoff if handed else None,
    )
    sent = await call.engine.callers.say(call.caller, new)
    message = sent.message
    return {"id": message.id, "channel": message.channel, "to": list(message.to)} | _hint(sent)


def _hint(sent: Sent) -> dict[str, Any]:
    return {"hint": sent.hint} if sent.hint else {}


async def channel_peek(call: ToolCall, given: arguments.ChannelRead) -> dict[str, Any]:
    """Look at what was said; nothing counts as read."""
    return {"entries": [entry(message) for message in await _seen(call, given)]}


async def channel_read(call: ToolCall, given: arguments.ChannelRead) -> dict[str, Any]:
    """Read what was said. What is for you and is shown counts as read: you are not told again."""
    seen = await _seen(call, given)
    owed = {item.message.id for item in await call.engine.talk.inbox(call.speaker.address)}
    if shown := [message.id for message in seen if message.id in owed]:
        await call.engine.talk.ack(call.speaker, *shown)
    return {"entries": [entry(message) for message in seen]}


async def _seen(call: ToolCall, given: arguments.ChannelRead) -> list[Message]:
    limit = min(given.limit or FEW_ENTRIES, MOST_ENTRIES)
    return await call.engine.talk.peek(
        call.speaker, call.project, channel=given.channel, since=given.since, limit=limit
    )


async def channel_wait(call: ToolCall, given: arguments.ChannelWait) -> dict[str, Any]:
    """Wait for someone to say something. No entries: nothing came. Wait on from the `since` it returns."""
    patience, talk = min(given.timeout, arguments.LONGEST_WAIT), call.engine.talk
    which = {"channel": given.channel, "since": given.since}
    heard, since = await talk.wait(call.speaker, call.project, **which, patience=patience, limit=MOST_ENTRIES)
    return {"entries": [entry(message) for message in heard], "since": since}


# ── the inbox ────────────────────────────────────────────────────────────────────────────────────────────────


async def inbox_read(call: ToolCall, given: arguments.InboxRead) -> dict[str, Any]:
    """What is for you and not acknowledged yet, oldest first. Acknowledge it with inbox_ack."""
    return await unread(call.engine, call.speaker, limit=min(given.limit or MOST_ENTRIES, MOST_ENTRIES))


async def unread(engine: Engine, speaker: Speaker, *, limit: int = MOST_ENTRIES) -> dict[str, Any]:
    """The mail that a speaker has not acknowledged."""
    mail = [item.message for item in await engine.talk.inbox(speaker.address) if item.delivery.owed]
    return {"entries": [entry(message) for message in mail[:limit]], "more": max(0, len(mail) - limit)}


async def inbox_ack(call: ToolCall, given: arguments.InboxAck) -> dict[str, Any]:
    """Say that you have dealt with messages, so that you are not told again."""
    acked = await call.engine.talk.ack(call.speaker, *given.ids, before=given.before)
    return {"acknowledged": [delivery.message for delivery in acked]}


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────


async def ask(call: ToolCall, given: arguments.Ask) -> dict[str, Any]:
    """Ask an agent, or whoever has a task or phase; one that rests is woken. The answer comes to your inbox."""
    targets = {"agent": given.agent, "task": given.task, "phase": given.phase}
    asked = await call.engine.callers.ask(call.caller, given.question, **targets, key=call.key)
    return {"conversation": asked.message.id, "to": list(asked.message.to)} | _hint(asked)


async def answer(call: ToolCall, given: arguments.Answer) -> dict[str, Any]:
    """Answer a question that an agent asked you."""
    said = await call.engine.talk.settle(call.speaker, given.conversation, given.answer)
    return {"id": said.id, "conversation": said.reply_to}


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────


async def document_read(call: ToolCall, given: arguments.DocumentRead) -> dict[str, Any]:
    """Read a shared document, with its revision."""
    instance = await _instance(call, given.instance)
    return page(await call.engine.documents.read(call.project, given.name, instance=instance))


async def document_write(call: ToolCall, given: arguments.DocumentWrite) -> dict[str, Any]:
    """Replace a shared document. Give the revision that you read, so that nobody's text is lost."""
    where = {"name": given.name, "instance": await _instance(call, given.instance)}
    written = await call.engine.documents.write(
        call.speaker, call.project, given.text, **where, revision=given.revision
    )
    return {"name": _called(written), "revision": written.revision}


async def document_append(call: ToolCall, given: arguments.DocumentAppend) -> dict[str, Any]:
    """Add to the end of a shared document."""
    where = {"name": given.name, "instance": await _instance(call, given.instance)}
    written = await call.engine.documents.append(call.speaker, call.project, given.text, **where)
    return {"name": _called(written), "revision": written.revision}


async def document_list(call: ToolCall, given: arguments.DocumentList) -> dict[str, Any]:
    """The shared documents."""
    found = await call.engine.documents.every(call.project, instance=await _instance(call, given.instance))
    return {"documents": [{"name": _called(page), "revision": page.revision, "author": page.author} for page in found]}


async def _instance(call: ToolCall, name: str) -> str:
    return await call.engine.documents.instance(call.speaker, name)


# ── others, and oneself ──────────────────────────────────────────────────────────────────────────────────────


async def agents_list(call: ToolCall, given: Request) -> dict[str, Any]:
    """Who else is here, and what they do."""
    del given
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


async def complete(call: ToolCall, given: arguments.Complete) -> dict[str, Any]:
    """Say how your work went, then end. Without arguments: it is done and committed. The claim is checked."""
    run = await call.engine.runs.signal(call.speaker.run, _signal(given))
    return {"run": run.id, "said": "Said. You can end now."}


def _signal(given: arguments.Complete) -> dict[str, Any]:
    if sum(map(bool, (given.questions, given.error, given.result))) > 1:
        raise BadInput("Give a result, or questions, or an error: only one of them.")
    if given.questions:
        asked = [{"id": f"q{n}", "question": question} for n, question in enumerate(given.questions, start=1)]
        return {"status": "questions", "questions": asked}
    return {"status": "error", "error": given.error} if given.error else {"status": "done", "result": given.result}


TOOLS = (
    Tool(channel_send, grant=Grant.PROJECT, repeatable=True),
    Tool(channel_read, grant=Grant.PROJECT),
    Tool(channel_peek, grant=Grant.PROJECT, looks=True),
    Tool(channel_wait, grant=Grant.PROJECT, looks=True),
    Tool(inbox_read, grant=Grant.PROJECT, looks=True),
    Tool(inbox_ack, grant=Grant.PROJECT, repeatable=True),
    Tool(ask, grant=Grant.PROJECT, repeatable=True),
    Tool(answer, grant=Grant.CONVERSATION, subject="conversation", repeatable=True),
    Tool(document_list, grant=Grant.PROJECT, looks=True),
    Tool(document_read, grant=Grant.PROJECT, looks=True),
    Tool(document_write, grant=Grant.PROJECT),
    Tool(document_append, grant=Grant.PROJECT),
    Tool(agents_list, grant=Grant.PROJECT, looks=True),
    Tool(complete, grant=Grant.RUN, repeatable=True),
)


def granted(speaker: Speaker) -> dict[str, Tool]:
    """The tools that a caller may use, by name."""
    return {tool.name: tool for tool in TOOLS if may_call(tool.grant, run=bool(speaker.run))}

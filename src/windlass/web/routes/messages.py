"""Messages: saying something, and reading, waiting for and acknowledging what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.core.messages.new_message import Handoff, NewMessage
from windlass.core.nouns.message import Kind, Letter, Message
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call

LIMIT, MOST = 20, 10_000


async def send(call: Call) -> Response:
    """Say something to agents, or to a person."""
    given = await http_io.json_object(call.request)
    handoff = _handoff(given)
    to = tuple(http_io.texts(given, "to")) if given.get("to") else ()
    caller = await caller_context.sender(call, http_io.text(given, "path", ""), http_io.text(given, "from", ""), to)
    new = NewMessage(
        body=http_io.text(given, "body"),
        to=to,
        everyone=http_io.truth(given, "all"),
        channel=http_io.text(given, "channel", ""),
        kind=_kind(given, handoff),
        reply_to=http_io.text(given, "reply_to", ""),
        key=http_io.text(given, "key", ""),
        handoff=handoff,
        seeks=http_io.truth(given, "seeks"),
    )
    sent = await call.engine.callers.say(caller, new)
    outlooks = await call.engine.prospects.of(sent.message.id)
    shown = message_views.message(
        sent.message,
        [receipt for receipt, _ in outlooks],
        {receipt.reader: outlook for receipt, outlook in outlooks},
    )
    return http_io.answer({"message": shown, "hint": sent.hint}, status=201)


def _kind(given: Mapping[str, Any], handoff: Handoff | None) -> Kind:
    """Said or handed on; the other kinds have verbs of their own."""
    text = http_io.text(given, "kind", "") or ("handoff" if handoff else "say")
    if text not in (Kind.SAY, Kind.HANDOFF):
        raise BadInput(f"kind must be say or handoff, not {text[:40]!r}.", hint="To ask an agent: `windlass ask`.")
    return Kind(text)


def _handoff(given: Mapping[str, Any]) -> Handoff | None:
    value = given.get("handoff")
    if value is None:
        return None
    if not isinstance(value, dict) or not set(value) <= {"done", "needed", "files", "why"}:
        raise BadInput("handoff must be an object with done, needed, files and why.")
    files = tuple(http_io.texts(value, "files")) if value.get("files") else ()
    return Handoff(
        done=http_io.text(value, "done", ""),
        needed=http_io.text(value, "needed", ""),
        files=files,
        why=http_io.text(value, "why", ""),
    )


async def every(call: Call) -> Response:
    """What was said, as far as the caller may see it; nothing is acknowledged."""
    caller = await caller_context.in_project(call)
    asked = call.request.query_params
    to = asked.get("to", "")
    found = await call.engine.talk.peek(
        caller.speaker,
        caller.project.id,
        channel=asked.get("channel", ""),
        since=asked.get("since", ""),
        to=await call.engine.directory.find(caller.project, caller.speaker, to) if to else "",
        limit=min(http_io.number(call.request, "limit", LIMIT, least=1), MOST),
    )
    return await _listing(call, found)


async def wait(call: Call) -> Response:
    """The same as soon as someone else says something, or nothing when the time is over; `since` is where to go on."""
    caller = await caller_context.in_project(call)
    asked = call.request.query_params
    found, since = await call.engine.talk.wait(
        caller.speaker,
        caller.project.id,
        channel=asked.get("channel", ""),
        since=asked.get("since", ""),
        patience=http_io.patience(call.request),
    )
    return await _listing(call, found, since=since)


async def _listing(call: Call, found: Sequence[Message], **more: str) -> Response:
    receipts = await call.engine.talk.receipts(found)
    items = [message_views.message(message, receipts[message.id]) for message in found]
    return http_io.answer({"as_of": call.now, "items": items, **more})


async def inbox(call: Call) -> Response:
    """What someone was told and has not acknowledged; an agent sees its own, a person anybody's."""
    reader = await call.engine.callers.reader(call.caller.run, call.request.query_params.get("name", ""), call.path)
    found = await call.engine.talk.inbox(reader.address, everything=http_io.flag(call.request, "all"))
    return await _mail(call, found, call.path)


async def read(call: Call) -> Response:
    """What the caller has not read; this acknowledges it. With `look`, whoever has shown it does, by `acks`."""
    given = await http_io.json_object(call.request)
    limit = given.get("limit", MOST)
    if type(limit) is not int or limit < 1:
        raise BadInput("limit must be a whole number of at least 1.", hint="Leave it out to have all.")
    who, talk, channel = await caller_context.speaker(call), call.engine.talk, http_io.text(given, "channel", "")
    told = await talk.told(who, channel=channel)
    reading = talk.unread if http_io.truth(given, "look") else talk.read
    found = await reading(who, channel=channel, since=http_io.text(given, "since", ""), limit=limit)
    return await _mail(call, found, http_io.text(given, "path", ""), told=[each.message.id for each in told])


async def _mail(call: Call, found: Sequence[Letter], path: str, **more: Sequence[str]) -> Response:
    """Mail of all projects; each item names its project, and says whether its reader stands there."""
    here = await call.engine.callers.here(call.caller.run, path)
    messages = [each.message for each in found]
    receipts = await call.engine.talk.receipts(messages)
    names = await call.engine.callers.project_names(message.project for message in messages)
    items = []
    for letter in found:
        own, project = letter.delivery, letter.message.project
        readers = [own if receipt.id == own.id else receipt for receipt in receipts[letter.message.id]]
        items.append(message_views.letter(letter, readers) | {"project": names.get(project), "here": project == here})
    return http_io.answer({"as_of": call.now, "items": items, **more})


async def ack(call: Call) -> Response:
    """The caller has read a message, and needs it no longer."""
    before = http_io.truth(await http_io.json_object(call.request), "before")
    acked = await call.engine.talk.ack(await caller_context.speaker(call), call.id, before=before)
    return http_io.answer(message_views.delivery(acked[0]) | {"acknowledged": len(acked)})


async def acks(call: Call) -> Response:
    """The caller has read these messages, and no others."""
    who, ids = await caller_context.speaker(call), http_io.texts(await http_io.json_object(call.request), "ids")
    acked = await call.engine.talk.ack(who, *ids) if ids else []
    return http_io.answer({"as_of": call.now, "items": [message_views.delivery(delivery) for delivery in acked]})

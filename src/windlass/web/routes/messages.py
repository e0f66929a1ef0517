"""Messages: saying something, and reading, waiting for and acknowledging what was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.core.nouns.message import Delivery, Kind, Letter, Message
from windlass.core.nouns.project import Project
from windlass.core.ports.store import Reading
from windlass.engine.messages.directory import Speaker
from windlass.engine.messages.handoffs import Handoff
from windlass.engine.messages.log import place
from windlass.engine.messages.talk import Post
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call

LIMIT, MOST = 20, 10_000


async def send(call: Call) -> Response:
    """Say something to agents, or to a person."""
    given = await http_io.json_object(call.request)
    named = http_io.text(given, "from", "")
    who = await caller_context.speaker(call, named)
    handoff = _handoff(given)
    to = tuple(http_io.texts(given, "to")) if given.get("to") else ()
    where, foreign = await _project(call, who, http_io.text(given, "path", ""), to)
    post = Post(
        body=http_io.text(given, "body"),
        project=where,
        to=to,
        everyone=http_io.truth(given, "all"),
        channel=http_io.text(given, "channel", ""),
        kind=_kind(given, handoff),
        reply_to=http_io.text(given, "reply_to", ""),
        key=http_io.text(given, "key", ""),
        claims=await caller_context.claimed(call, who, where, named),
        handoff=handoff,
        seeks=http_io.truth(given, "seeks"),
    )
    hint = await caller_context.novelty(call, where, to)
    message = await call.engine.talk.send(who, post)
    receipts = await _receipts(call, [message])
    outlooks = await call.engine.prospects.of(message.id)
    project = await call.engine.projects.get(message.project)
    hint = hint if message.to else await call.engine.directory.missed(project, who, message.body)
    hint = f"{foreign} {hint}".strip()
    return http_io.answer(
        {"message": message_views.message(message, receipts[message.id], outlooks), "hint": hint}, status=201
    )


async def _project(call: Call, who: Speaker, path: str, to: Sequence[str]) -> tuple[str, str]:
    """Where it is said. A person who stands in no repository, and names agents of one, means theirs, and is told so."""
    found = await caller_context.project(call, who, path, new=True)
    return (found, "") if found else await caller_context.elsewhere(call, to)


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
    who = await caller_context.speaker(call)
    project = await caller_context.placed(call, who, call.path)
    to, which = call.request.query_params.get("to", ""), _which(call)
    found = await call.engine.talk.peek(
        who,
        project,
        channel=which["channel"],
        since=which["since"],
        to=await caller_context.resolved(call, who, project, to) if to else "",
        limit=min(http_io.number(call.request, "limit", LIMIT, least=1), MOST),
    )
    return await _listing(call, found)


async def wait(call: Call) -> Response:
    """The same as soon as someone else says something, or nothing when the time is over; `since` is where to go on."""
    who = await caller_context.speaker(call)
    project, which = await caller_context.placed(call, who, call.path), _which(call)
    found, since = await call.engine.talk.wait(
        who, project, channel=which["channel"], since=which["since"], patience=http_io.patience(call.request)
    )
    return await _listing(call, found, since=since)


def _which(call: Call) -> dict[str, str]:
    return {key: call.request.query_params.get(key, "") for key in ("channel", "since")}


async def _listing(call: Call, found: Sequence[Message], **more: str) -> Response:
    receipts = await _receipts(call, found)
    items = [message_views.message(each, receipts[each.id]) for each in found]
    return http_io.answer({"as_of": call.now, "items": items, **more})


async def _receipts(call: Call, messages: Sequence[Message]) -> dict[str, list[Delivery]]:
    """How far each message got with each of its readers."""
    return await call.engine.ports.store.read(
        lambda store: {message.id: store.receipts(message.id) for message in messages}
    )


async def inbox(call: Call) -> Response:
    """What someone was told and has not acknowledged; an agent sees its own, a person anybody's."""
    reader = await caller_context.listener(call, call.request.query_params.get("name", ""))
    found = await call.engine.talk.inbox(reader.address, everything=http_io.flag(call.request, "all"))
    return await _letters(
        call, found, await caller_context.project(call, await caller_context.speaker(call), call.path)
    )


async def read(call: Call) -> Response:
    """What the caller has not read; this acknowledges it. With `look`, whoever has shown it does, by `acks`."""
    given = await http_io.json_object(call.request)
    limit = given.get("limit", MOST)
    if type(limit) is not int or limit < 1:
        raise BadInput("limit must be a whole number of at least 1.", hint="Leave it out to have all.")
    who = await caller_context.speaker(call)
    channel = http_io.text(given, "channel", "")
    told = await call.engine.talk.told(who, channel=channel)
    after, talk = place(http_io.text(given, "since", "")), call.engine.talk
    looks = after or http_io.truth(given, "look")
    found = await (talk.unread if looks else talk.read)(who, channel=channel, limit=0 if after else limit)
    found = [each for each in found if place(each.message.id) > after][:limit]
    if after and not http_io.truth(given, "look") and (seen := [each.message.id for each in (*told, *found)]):
        await talk.ack(who, *seen)
    here = await caller_context.project(call, who, http_io.text(given, "path", ""))
    return await _letters(call, found, here, told=[each.message.id for each in told])


async def _letters(call: Call, found: Sequence[Letter], here: str, **more: Sequence[str]) -> Response:
    """Mail, of whichever project; each letter says of which, and whether that is the one where its reader stands."""
    receipts = await _receipts(call, [each.message for each in found])
    names = await call.engine.ports.store.read(partial(_names, {each.message.project for each in found}))
    items = []
    for each in found:
        where = {"project": names.get(each.message.project), "here": each.message.project == here}
        items.append(message_views.letter(each, _with_own(each, receipts[each.message.id])) | where)
    return http_io.answer({"as_of": call.now, "items": items, **more})


def _names(projects: Iterable[str], store: Reading) -> dict[str, str]:
    return {project: found.name for project in projects if (found := store.find(Project, project)) is not None}


def _with_own(letter: Letter, receipts: Sequence[Delivery]) -> list[Delivery]:
    """How far it got with everyone, and with its reader as far as the letter says."""
    return [letter.delivery if receipt.id == letter.delivery.id else receipt for receipt in receipts]


async def ack(call: Call) -> Response:
    """The caller has read a message, and needs it no longer."""
    before = http_io.truth(await http_io.json_object(call.request), "before")
    acked = await call.engine.talk.ack(await caller_context.speaker(call), call.id, before=before)
    return http_io.answer(message_views.delivery(acked[0]) | {"acknowledged": len(acked)})


async def acks(call: Call) -> Response:
    """The caller has read these messages, and no others."""
    who, ids = await caller_context.speaker(call), http_io.texts(await http_io.json_object(call.request), "ids")
    acked = await call.engine.talk.ack(who, *ids) if ids else []
    return http_io.answer({"as_of": call.now, "items": [message_views.delivery(each) for each in acked]})

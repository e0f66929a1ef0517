"""Messages: saying something, and reading, waiting for and acknowledging what was said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import asdict

from windlass.core.messages.new_message import Handoff, NewMessage
from windlass.core.nouns.message import Kind, MailItem, Message
from windlass.core.requests import Request
from windlass.web import message_views
from windlass.web.message_views import (
    AckView,
    DeliveryView,
    ListView,
    MailItemView,
    MailView,
    MessagesView,
    MessageView,
    SentView,
)
from windlass.web.request import LONGEST_WAIT, Call, Folder, PlaceQuery, Seconds, Texts

MOST = 10_000
Limit = Annotated[int, Meta(ge=1, lt=10**18)]


class HandoffRequest(Request):
    done: str = ""
    needed: str = ""
    files: tuple[str, ...] = ()
    why: str = ""


class MessageRequest(Request):
    body: str
    sender: str = field(default="", name="from")
    path: Folder = ""
    to: tuple[str, ...] = ()
    everyone: bool = field(default=False, name="all")
    channel: str = ""
    kind: Literal["say", "handoff"] | None = None
    reply_to: str = ""
    key: str = ""
    seeks: bool = False
    handoff: HandoffRequest | None = None


class ChannelQuery(PlaceQuery):
    channel: str = ""
    since: str = ""


class MessageQuery(ChannelQuery):
    to: str = ""
    limit: Limit = 20


class MessageWaitQuery(ChannelQuery):
    timeout: Seconds = 0.0


class InboxQuery(PlaceQuery):
    name: str = ""
    all: bool = False


class ReadRequest(Request):
    path: Folder = ""
    since: str = ""
    limit: Limit = MOST
    channel: str = ""
    look: bool = False


class AckRequest(Request):
    before: bool = False


class AcksRequest(Request):
    ids: Texts


async def send(call: Call, given: MessageRequest) -> SentView:
    """Say something to agents, or to a person."""
    caller = await call.sender(given.path, given.sender, given.to)
    new = NewMessage(
        body=given.body,
        to=given.to,
        everyone=given.everyone,
        channel=given.channel,
        kind=Kind(given.kind or ("handoff" if given.handoff else "say")),
        reply_to=given.reply_to,
        key=given.key,
        handoff=Handoff(**asdict(given.handoff)) if given.handoff else None,
        seeks=given.seeks,
    )
    sent = await call.engine.callers.say(caller, new)
    outlooks = await call.engine.outlook.of(sent.message.id)
    receipts = [receipt for receipt, _ in outlooks]
    expected = {receipt.reader: outlook for receipt, outlook in outlooks}
    return SentView(message_views.message(sent.message, receipts, expected), sent.hint)


async def every(call: Call, given: MessageQuery) -> ListView[MessageView]:
    """What was said, as far as the caller may see it; nothing is acknowledged."""
    caller = await call.in_project(given.path)
    to = await call.engine.directory.find(caller.project, caller.speaker, given.to) if given.to else ""
    peek = partial(call.engine.talk.peek, caller.speaker, caller.project.id, limit=min(given.limit, MOST))
    found = await peek(channel=given.channel, since=given.since, to=to)
    return ListView(call.now, await _shown(call, found))


async def wait(call: Call, given: MessageWaitQuery) -> MessagesView:
    """The same as soon as someone else says something, or nothing when the time is over; `since` is where to go on."""
    caller = await call.in_project(given.path)
    wait = partial(call.engine.talk.wait, caller.speaker, caller.project.id, patience=min(given.timeout, LONGEST_WAIT))
    found, since = await wait(channel=given.channel, since=given.since)
    return MessagesView(call.now, await _shown(call, found), since)


async def _shown(call: Call, messages: Sequence[Message]) -> list[MessageView]:
    receipts = await call.engine.talk.receipts(messages)
    return [message_views.message(message, receipts[message.id]) for message in messages]


async def inbox(call: Call, given: InboxQuery) -> ListView[MailItemView]:
    """What someone was told and has not acknowledged; an agent sees its own, a person anybody's."""
    reader = await call.engine.callers.reader(call.caller, given.name, given.path)
    found = await call.engine.talk.inbox(reader.address, everything=given.all)
    return ListView(call.now, await _mail(call, found, given.path))


async def read(call: Call, given: ReadRequest) -> MailView:
    """What the caller has not read; this acknowledges it. With `look`, whoever has shown it does, by `acks`."""
    who, talk = call.caller, call.engine.talk
    told = await talk.told(who, channel=given.channel)
    reading = talk.unread if given.look else talk.read
    found = await reading(who, channel=given.channel, since=given.since, limit=given.limit)
    return MailView(call.now, await _mail(call, found, given.path), [item.message.id for item in told])


async def _mail(call: Call, items: Sequence[MailItem], path: str) -> list[MailItemView]:
    """Mail of all projects; each item names its project, and says whether its reader stands there."""
    here = await call.engine.callers.here(call.caller, path)
    receipts = await call.engine.talk.receipts([item.message for item in items])
    names = await call.engine.callers.project_names(item.message.project for item in items)
    return [
        message_views.mail_item(item, receipts[item.message.id], project=names.get(project), here=project == here)
        for item in items
        for project in [item.message.project]
    ]


async def ack(call: Call, given: AckRequest) -> AckView:
    """The caller has read a message, and needs it no longer."""
    acked = await call.engine.talk.ack(call.caller, call.id, before=given.before)
    return AckView(**asdict(message_views.delivery(acked[0])), acknowledged=len(acked))


async def acks(call: Call, given: AcksRequest) -> ListView[DeliveryView]:
    """The caller has read these messages, and no others."""
    acked = await call.engine.talk.ack(call.caller, *given.ids)
    return ListView(call.now, [message_views.delivery(delivery) for delivery in acked])

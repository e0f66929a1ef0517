"""Messages, conversations and documents as programs read them: keys that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict

from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery, MailItem, Message, Receipt
from windlass.engine.waking.conversations import Conversation

T = TypeVar("T")


class ListView(Struct, Generic[T]):
    """A list, and when it was true."""

    as_of: float
    items: list[T]


class DeliveryView(Struct, kw_only=True):
    """How far a message got with one reader; right after it was sent, with the outlook."""

    message: str
    name: str
    status: Receipt
    wakes: bool
    reason: str
    outlook: str | UnsetType = UNSET


class AckView(DeliveryView, kw_only=True):
    acknowledged: int


class MessageView(Struct, kw_only=True):
    """One line of `windlass peek --json`."""

    id: str
    time: float
    sender: str = field(name="from")
    to: tuple[str, ...]
    message: str
    channel: str
    kind: str
    reply_to: str | None
    direct: bool
    claims: str | None
    status: dict[str, Receipt]
    readers: list[DeliveryView]


class MailItemView(MessageView, kw_only=True):
    """One line of `windlass inbox --json`; `here` if it is of the project that its reader stands in."""

    reader: str
    receipt: Receipt
    wakes: bool
    reason: str
    project: str | None
    here: bool


class SentView(Struct):
    message: MessageView
    hint: str


class MessagesView(ListView[MessageView]):
    since: str


class MailView(ListView[MailItemView]):
    told: list[str]


class ConversationView(Struct, kw_only=True, rename="camel"):
    """A question, whom it went to, and its answer."""

    conversation_id: str
    status: Literal["pending", "answered"]
    to_agent_id: str | None
    question: str
    from_agent_id: str | None
    answer: str | None
    answer_id: str | None
    unread: bool
    reason: str


class AskedView(ConversationView, kw_only=True):
    hint: str


class QuestionView(Struct, kw_only=True, rename="camel"):
    """One line of `windlass listen`."""

    conversation_id: str
    from_agent_id: str
    question: str
    task_id: str | UnsetType = UNSET
    phase_id: str | UnsetType = UNSET


class ListenedView(Struct):
    conversation: QuestionView | None


class AnsweredView(Struct, kw_only=True, rename="camel"):
    conversation_id: str
    status: str
    answer_id: str
    to_agent_id: str
    asked_agent_id: str


class TitleView(Struct, kw_only=True):
    """One line of `windlass context document list --json`."""

    name: str
    instance: str
    revision: int
    author: str
    time: float
    age_seconds: float
    bytes: int


class DocumentView(TitleView, kw_only=True):
    """`windlass context document read --json`."""

    body: str


def delivery(delivery: Delivery, outlook: str | UnsetType = UNSET) -> DeliveryView:
    return DeliveryView(
        message=delivery.message,
        name=delivery.reader,
        status=delivery.receipt,
        wakes=delivery.wakes,
        reason=delivery.reason,
        outlook=outlook,
    )


def message(message: Message, receipts: Iterable[Delivery], outlooks: Mapping[str, str] | None = None) -> MessageView:
    """A message with each of its readers; right after it was sent, with what will happen with each."""
    readers = [delivery(receipt, (outlooks or {}).get(receipt.reader, UNSET)) for receipt in receipts]
    return MessageView(
        id=message.id,
        time=message.sent_at,
        sender=message.sender,
        to=message.to,
        message=message.body,
        channel=message.channel,
        kind=message.kind,
        reply_to=message.reply_to or None,
        direct=message.direct,
        claims=message.claims or None,
        status={reader.name: reader.status for reader in readers},
        readers=readers,
    )


def mail_item(item: MailItem, receipts: Iterable[Delivery], *, project: str | None, here: bool) -> MailItemView:
    """A message to one reader, with how far its delivery got."""
    own = item.delivery
    shown = message(item.message, [own if receipt.id == own.id else receipt for receipt in receipts])
    return MailItemView(
        **asdict(shown),
        reader=own.reader,
        receipt=own.receipt,
        wakes=own.wakes,
        reason=own.reason,
        project=project,
        here=here,
    )


def question(asked: Message) -> QuestionView:
    kind, _, key = asked.about.partition("/")
    about = {f"{kind}_id": key} if key else {}
    return QuestionView(conversation_id=asked.id, from_agent_id=asked.sender, question=asked.body, **about)


def conversation(conversation: Conversation) -> ConversationView:
    asked, answer, receipt = conversation.question, conversation.answer, conversation.receipt
    return ConversationView(
        conversation_id=asked.id,
        status="answered" if answer else "pending",
        to_agent_id=asked.to[0] if asked.to else None,
        question=asked.body,
        from_agent_id=answer.sender if answer else None,
        answer=answer.body if answer else None,
        answer_id=answer.id if answer else None,
        unread=receipt is not None and receipt.owed,
        reason=conversation.reason,
    )


def title(document: Document, *, now: float) -> TitleView:
    _, instance, name = document.name.split("/", 2)
    return TitleView(
        name=name,
        instance=instance,
        revision=document.revision,
        author=document.author,
        time=document.written_at,
        age_seconds=round(max(0.0, now - document.written_at), 3),
        bytes=len(document.body.encode("utf-8", "surrogatepass")),
    )


def document(document: Document, *, now: float) -> DocumentView:
    return DocumentView(**asdict(title(document, now=now)), body=document.body)

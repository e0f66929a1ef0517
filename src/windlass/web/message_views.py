"""The stable keys of messages, conversations and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery, Letter, Message
from windlass.engine.waking.conversations import Conversation


def message(
    message: Message, receipts: Iterable[Delivery], outlooks: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One line of `windlass peek --json`; right after it was sent, with what will happen with each reader."""
    readers = [delivery(receipt) for receipt in receipts]
    return {
        "id": message.id,
        "time": message.sent_at,
        "from": message.sender,
        "to": list(message.to),
        "message": message.body,
        "channel": message.channel,
        "kind": message.kind,
        "reply_to": message.reply_to or None,
        "direct": message.direct,
        "claims": message.claims or None,
        "status": {reader["name"]: reader["status"] for reader in readers},
        "readers": [reader | {"outlook": outlooks[reader["name"]]} for reader in readers]
        if outlooks is not None
        else readers,
    }


def delivery(delivery: Delivery) -> dict[str, Any]:
    """How far a message got with one reader."""
    return {
        "message": delivery.message,
        "name": delivery.reader,
        "status": delivery.receipt,
        "wakes": delivery.wakes,
        "reason": delivery.reason,
    }


def letter(letter: Letter, receipts: Iterable[Delivery]) -> dict[str, Any]:
    """One line of `windlass inbox --json`."""
    own = letter.delivery
    return message(letter.message, receipts) | {
        "reader": own.reader,
        "receipt": own.receipt,
        "wakes": own.wakes,
        "reason": own.reason,
    }


# ── conversations: the keys that programs which ask and listen know ──────────────────────────────────────────


def question(asked: Message) -> dict[str, Any]:
    """What `windlass listen` prints."""
    kind, _, key = asked.about.partition("/")
    about = {f"{kind}Id": key} if key else {}
    return {"conversationId": asked.id, "fromAgentId": asked.sender, "question": asked.body, **about}


def conversation(conversation: Conversation) -> dict[str, Any]:
    """A question, whom it went to, and what was answered."""
    asked, answer, receipt = conversation.question, conversation.answer, conversation.receipt
    return {
        "conversationId": asked.id,
        "status": "answered" if answer else "pending",
        "toAgentId": asked.to[0] if asked.to else None,
        "question": asked.body,
        "fromAgentId": answer.sender if answer else None,
        "answer": answer.body if answer else None,
        "answerId": answer.id if answer else None,
        "unread": receipt is not None and receipt.owed,
        "reason": conversation.reason,
    }


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────


def title(document: Document, *, now: float) -> dict[str, Any]:
    """One line of `windlass context document list --json`."""
    _, instance, name = document.name.split("/", 2)
    return {
        "name": name,
        "instance": instance,
        "revision": document.revision,
        "author": document.author,
        "time": document.written_at,
        "age_seconds": round(max(0.0, now - document.written_at), 3),
        "bytes": len(document.body.encode("utf-8", "surrogatepass")),
    }


def document(document: Document, *, now: float) -> dict[str, Any]:
    """`windlass context document read --json`."""
    return title(document, now=now) | {"body": document.body}

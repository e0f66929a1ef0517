"""The arguments of each tool: declared once, shown to clients as a schema, and checked before anything is done."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from windlass.core.requests import Request
from windlass.engine.messages.documents import NOTES

LARGEST = 10**9
LONGEST_WAIT = 50.0
"""Seconds; many clients give up on a tool after a minute."""

Seen = Annotated[str, Meta(description="Only this channel: main, @instance, task/t12. Default: all that you may see.")]
Since = Annotated[str, Meta(description="The id of an entry: only what came after it.")]
Name = Annotated[str, Meta(description="The document's name. Default: notes.")]
Instance = Annotated[str, Meta(description="The instance whose document it is. Default: your own.")]
Text = Annotated[str, Meta(description="The text, Markdown.")]
Sender = Annotated[str, Meta(description="Who you are. It must be yourself; leave it out.")]


class ChannelSend(Request):
    message: Annotated[str, Meta(description="What you say, Markdown.")]
    to: Annotated[
        tuple[str, ...], Meta(description="Only for these: name, name@instance or @instance. Others do not see it.")
    ] = ()
    everyone: Annotated[bool, Meta(description="For every agent in your channel, and the person.")] = field(
        default=False, name="all"
    )
    channel: Annotated[str, Meta(description="The channel: main, @instance, task/t12. Default: your own.")] = ""
    reply_to: Annotated[str, Meta(description="The id of the entry that you answer.")] = ""
    done: Annotated[str, Meta(description="To hand work on (name its reader in `to`): what you have done.")] = ""
    needed: Annotated[str, Meta(description="What is to be done next.")] = ""
    files: Annotated[tuple[str, ...], Meta(description="The files that it is about.")] = ()
    why: Annotated[str, Meta(description="What it is for.")] = ""
    sender: Sender = field(default="", name="from")


class ChannelRead(Request):
    channel: Seen = ""
    since: Since = ""
    limit: Annotated[int, Meta(ge=0, le=LARGEST, description="At most so many, the newest. Default: 20.")] = 0


class ChannelWait(Request):
    channel: Seen = ""
    since: Since = ""
    timeout: Annotated[float, Meta(ge=0, le=LARGEST, description="Seconds to wait, at most 50. Default: 30.")] = 30.0


class InboxRead(Request):
    limit: Annotated[int, Meta(ge=0, le=LARGEST, description="At most so many, the oldest.")] = 0


class InboxAck(Request):
    ids: Annotated[tuple[str, ...], Meta(description="The ids of the messages.")]
    before: Annotated[bool, Meta(description="All that came before them, too.")] = False


class Ask(Request):
    question: Annotated[str, Meta(description="What you want to know.")]
    agent: Annotated[str, Meta(description="The agent's name.")] = ""
    task: Annotated[str, Meta(description="The id of a task: whoever has it is asked.")] = ""
    phase: Annotated[str, Meta(description="The id of a phase: whoever is at it is asked.")] = ""
    sender: Sender = field(default="", name="from")


class Answer(Request):
    conversation: Annotated[str, Meta(description="The id of the question.")]
    answer: Annotated[str, Meta(description="Your answer.")]
    sender: Sender = field(default="", name="from")


class DocumentList(Request):
    instance: Instance = ""


class DocumentRead(Request):
    name: Name = NOTES
    instance: Instance = ""


class DocumentAppend(Request):
    text: Text
    name: Name = NOTES
    instance: Instance = ""


class DocumentWrite(DocumentAppend):
    revision: (
        Annotated[
            int,
            Meta(ge=0, le=LARGEST, description="The revision that yours replaces; another one there is a conflict."),
        ]
        | None
    ) = None


class Complete(Request):
    result: Annotated[str, Meta(description="Your report.")] = ""
    questions: Annotated[tuple[str, ...], Meta(description="What a person must tell you before you can go on.")] = ()
    error: Annotated[str, Meta(description="Why you give up.")] = ""

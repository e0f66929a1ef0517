"""Every tool in one table: what clients are told about it, and what it takes."""

from __future__ import annotations

from windlass.mcp import tools
from windlass.mcp.schema import Argument, Form
from windlass.mcp.tools import Tool

_CHANNEL = Argument("The channel: main, @instance, task/t12. Default: your own.")
_SEEN = Argument("Only this channel: main, @instance, task/t12. Default: all that you may see.")
_SINCE = Argument("The id of an entry: only what came after it.")
_LIMIT = Argument("At most so many, the newest. Default: 20.", Form.NUMBER)
_NAME = Argument("The document's name. Default: notes.")
_INSTANCE = Argument("The instance whose document it is. Default: your own.")
_TEXT = Argument("The text, Markdown.", needed=True)
_FROM = Argument("Who you are. It must be yourself; leave it out.")
_FILTER = {"channel": _SEEN, "since": _SINCE, "limit": _LIMIT}
_DOCUMENT = {"name": _NAME, "instance": _INSTANCE}

TOOLS = (
    Tool(
        name="channel_send",
        about="Post to your channel. Write @name to wake an agent: at the start of a paragraph to speak to it.",
        call=tools.channel_send,
        arguments={
            "message": Argument("What you say, Markdown.", needed=True),
            "to": Argument("Only for these: name, name@instance or @instance. Others do not see it.", Form.TEXTS),
            "all": Argument("For every agent in your channel, and the person.", Form.FLAG),
            "channel": _CHANNEL,
            "reply_to": Argument("The id of the entry that you answer."),
            "done": Argument("To hand work on (name its reader in `to`): what you have done."),
            "needed": Argument("What is to be done next."),
            "files": Argument("The files that it is about.", Form.TEXTS),
            "why": Argument("What it is for."),
            "from": _FROM,
        },
        repeatable=True,
    ),
    Tool(
        name="channel_read",
        about="Read what was said. What is for you and is shown counts as read: you are not told again.",
        call=tools.channel_read,
        arguments=_FILTER,
    ),
    Tool(
        name="channel_peek",
        about="Look at what was said; nothing counts as read.",
        call=tools.channel_peek,
        arguments=_FILTER,
        looks=True,
    ),
    Tool(
        name="channel_wait",
        about="Wait for someone to say something. No entries: nothing came. Wait on from the `since` it returns.",
        call=tools.channel_wait,
        arguments={
            "channel": _SEEN,
            "since": _SINCE,
            "timeout": Argument("Seconds to wait, at most 50. Default: 30.", Form.SECONDS),
        },
        looks=True,
    ),
    Tool(
        name="inbox_read",
        about="What is for you and not acknowledged yet, oldest first. Acknowledge it with inbox_ack.",
        call=tools.inbox_read,
        arguments={"limit": Argument("At most so many, the oldest.", Form.NUMBER)},
        looks=True,
    ),
    Tool(
        name="inbox_ack",
        about="Say that you have dealt with messages, so that you are not told again.",
        call=tools.inbox_ack,
        arguments={
            "ids": Argument("The ids of the messages.", Form.TEXTS, needed=True),
            "before": Argument("All that came before them, too.", Form.FLAG),
        },
        repeatable=True,
    ),
    Tool(
        name="ask",
        about="Ask an agent, or whoever has a task or phase; one that rests is woken. The answer comes to your inbox.",
        call=tools.ask,
        arguments={
            "question": Argument("What you want to know.", needed=True),
            "agent": Argument("The agent's name."),
            "task": Argument("The id of a task: whoever has it is asked."),
            "phase": Argument("The id of a phase: whoever is at it is asked."),
            "from": _FROM,
        },
        repeatable=True,
    ),
    Tool(
        name="answer",
        about="Answer a question that an agent asked you.",
        call=tools.answer,
        arguments={
            "conversation": Argument("The id of the question.", needed=True),
            "answer": Argument("Your answer.", needed=True),
            "from": _FROM,
        },
        repeatable=True,
    ),
    Tool(
        name="document_list",
        about="The shared documents.",
        call=tools.document_list,
        arguments={"instance": _INSTANCE},
        looks=True,
    ),
    Tool(
        name="document_read",
        about="Read a shared document, with its revision.",
        call=tools.document_read,
        arguments=_DOCUMENT,
        looks=True,
    ),
    Tool(
        name="document_write",
        about="Replace a shared document. Give the revision that you read, so that nobody's text is lost.",
        call=tools.document_write,
        arguments={
            "text": _TEXT,
            **_DOCUMENT,
            "revision": Argument("The revision that yours replaces; another one there is a conflict.", Form.NUMBER),
        },
    ),
    Tool(
        name="document_append",
        about="Add to the end of a shared document.",
        call=tools.document_append,
        arguments={"text": _TEXT, **_DOCUMENT},
    ),
    Tool(name="agents_list", about="Who else is here, and what they do.", call=tools.agents_list, looks=True),
    Tool(
        name="complete",
        about="Say how your work went, then end. Without arguments: it is done and committed. The claim is checked.",
        call=tools.complete,
        arguments={
            "result": Argument("Your report."),
            "questions": Argument("What a person must tell you before you can go on.", Form.TEXTS),
            "error": Argument("Why you give up."),
        },
        of_runs=True,
        repeatable=True,
    ),
)

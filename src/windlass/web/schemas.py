"""What requests and answers look like, as a description for programs."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
ANYTHING: Schema = {"type": "object"}
PATH: Schema = {"type": "string", "description": "A folder of the project; an agent needs none, for it is in its own."}


def shape(*required: str, **properties: Schema) -> Schema:
    """An object; the keys that must be there are named first."""
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def maybe(schema: Schema) -> Schema:
    """This, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def listing(items: Schema) -> Schema:
    """A list, and when it was true."""
    return shape("as_of", "items", as_of=NUMBER, items={"type": "array", "items": items})


RECEIPT: Schema = {"type": "string", "enum": ["pending", "delivered", "read", "acked", "failed"]}

DELIVERY = shape(
    *("message", "name", "status", "wakes", "reason"),
    message=TEXT,
    name=TEXT,
    status=RECEIPT,
    wakes=TRUTH,
    reason=TEXT,
    outlook=TEXT,
)

MESSAGE = shape(
    *("id", "time", "from", "to", "message", "channel", "kind", "reply_to", "direct", "claims", "status", "readers"),
    **{"from": TEXT},
    id=TEXT,
    time=NUMBER,
    to=TEXTS,
    message=TEXT,
    channel=TEXT,
    kind=TEXT,
    reply_to=maybe(TEXT),
    direct=TRUTH,
    claims=maybe(TEXT),
    status={"type": "object", "additionalProperties": RECEIPT},
    readers={"type": "array", "items": DELIVERY},
)

LETTER = shape(
    *(*MESSAGE["required"], "reader", "receipt", "wakes", "reason", "project", "here"),
    **MESSAGE["properties"],
    project=maybe(TEXT),
    here=TRUTH,
    reader=TEXT,
    receipt=RECEIPT,
    wakes=TRUTH,
    reason=TEXT,
)

SEND = shape(
    "body",
    **{"from": TEXT},
    body=TEXT,
    path=PATH,
    to=TEXTS,
    all=TRUTH,
    channel=TEXT,
    kind={"type": "string", "enum": ["say", "handoff"]},
    reply_to=TEXT,
    key=TEXT,
    seeks=TRUTH,
    handoff=shape(done=TEXT, needed=TEXT, files=TEXTS, why=TEXT),
)
SENT = shape("message", "hint", message=MESSAGE, hint=TEXT)
READING = shape(*("as_of", "items", "told"), as_of=NUMBER, items={"type": "array", "items": LETTER}, told=TEXTS)
ACK = shape(before=TRUTH)
READ = shape(path=PATH, since=TEXT, limit=WHOLE, channel=TEXT, look=TRUTH)
ACKS = shape("ids", ids=TEXTS)

ASK = shape(
    "question", **{"from": TEXT}, question=TEXT, path=PATH, agent_id=TEXT, task_id=TEXT, phase_id=TEXT, key=TEXT
)
CONVERSATION = shape(
    *("conversationId", "status", "toAgentId", "question", "fromAgentId", "answer", "answerId", "unread", "reason"),
    conversationId=TEXT,
    status={"type": "string", "enum": ["pending", "answered"]},
    toAgentId=maybe(TEXT),
    question=TEXT,
    fromAgentId=maybe(TEXT),
    answer=maybe(TEXT),
    answerId=maybe(TEXT),
    unread=TRUTH,
    reason=TEXT,
)
BEGUN = shape(*CONVERSATION["required"], "hint", **CONVERSATION["properties"], hint=TEXT)
QUESTION = shape(
    *("conversationId", "fromAgentId", "question"),
    conversationId=TEXT,
    fromAgentId=TEXT,
    question=TEXT,
    taskId=TEXT,
    phaseId=TEXT,
)
LISTENED = shape("conversation", conversation=maybe(QUESTION))
ANSWER = shape("answer", answer=TEXT)
ANSWERED = shape(
    *("conversationId", "status", "answerId", "toAgentId", "askedAgentId"),
    conversationId=TEXT,
    status=TEXT,
    answerId=TEXT,
    toAgentId=TEXT,
    askedAgentId=TEXT,
)

TITLE = shape(
    *("name", "instance", "revision", "author", "time", "age_seconds", "bytes"),
    name=TEXT,
    instance=TEXT,
    revision=WHOLE,
    author=TEXT,
    time=NUMBER,
    age_seconds=NUMBER,
    bytes=WHOLE,
)
DOCUMENT = shape(*(*TITLE["required"], "body"), **TITLE["properties"], body=TEXT)
WRITE = shape("body", body=TEXT, path=PATH, instance=TEXT, revision=WHOLE, append=TRUTH)

# ── what the other requests say ──────────────────────────────────────────────────────────────────────────────

NOTHING = shape()
PLACE = shape("path", path=PATH)
REASON = shape(reason=TEXT)
PAUSE = shape("path", path=PATH, reason=TEXT)
BRANCH = shape("path", "branch", path=PATH, branch=TEXT, title=TEXT)
SETTING = shape("key", "value", path=PATH, key=TEXT, value=TEXT, home=TRUTH)
PROJECT = shape("path", path=PATH, main=TEXT, write=TRUTH, name=TEXT, checks_command=TEXT, checks_setup=TEXT)
INSTANCE = shape("path", "file", path=PATH, file=TEXT, instance=TEXT, values=ANYTHING, stays=TRUTH, check=TRUTH)
REPLY = shape(words=TEXTS, body=TEXT, key=TEXT)
REVIEW = shape(agent=TEXT, provider=TEXT, options=ANYTHING)
COMMENT = shape("body", body=TEXT, file=TEXT, line=WHOLE, blocking=TRUTH, reply_to=TEXT)
RESOLVE = shape(words=TEXT)
RESTORE = shape("ref", ref=TEXT, branch=TEXT, to=TEXT)
HIRE = shape(
    *("path", "name"),
    path=PATH,
    name=TEXT,
    instance=TEXT,
    provider=TEXT,
    model=TEXT,
    role=TEXT,
    prompt=TEXT,
    context=TRUTH,
    options=ANYTHING,
)

ERROR = shape("error", error=shape("kind", "message", "hint", kind=TEXT, message=TEXT, hint=TEXT))

"""Conversations: one agent asks, another answers, each at its own pace."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import asdict

from windlass.core.requests import Request
from windlass.engine.waking.conversations import Conversation
from windlass.web import message_views
from windlass.web.message_views import AnsweredView, AskedView, ConversationView, ListenedView
from windlass.web.request import LONGEST_WAIT, Call, Folder, PlaceQuery, Seconds


class AskRequest(Request):
    question: str
    sender: str = field(default="", name="from")
    path: Folder = ""
    agent_id: str = ""
    task_id: str = ""
    phase_id: str = ""
    key: str = ""


class ConversationQuery(Request):
    timeout: Seconds = 0.0


class ListenQuery(PlaceQuery):
    agent_id: str = ""
    timeout: Seconds = 0.0


class AnswerRequest(Request):
    answer: str


async def ask(call: Call, given: AskRequest) -> AskedView:
    """Ask an agent, by its name, its task or the phase it works in."""
    readers = [given.agent_id] if given.agent_id else []
    caller = await call.sender(given.path, given.sender, readers, given.task_id)
    targets = {"agent": given.agent_id, "task": given.task_id, "phase": given.phase_id}
    asked = await call.engine.callers.ask(caller, given.question, **targets, key=given.key)
    return AskedView(**asdict(message_views.conversation(Conversation(asked.message))), hint=asked.hint)


async def show(call: Call, given: ConversationQuery) -> ConversationView:
    """A conversation, and its answer as soon as there is one, or without it when the time is over."""
    who = call.caller
    found = await call.engine.replies.to(who, call.id, patience=min(given.timeout, LONGEST_WAIT))
    return message_views.conversation(found)


async def listen(call: Call, given: ListenQuery) -> ListenedView:
    """The oldest question to an agent that has no answer, as soon as there is one; null when the time is over."""
    who = await call.engine.callers.reader(call.caller, given.agent_id, given.path)
    asked = await call.engine.talk.listen(who, patience=min(given.timeout, LONGEST_WAIT))
    return ListenedView(message_views.question(asked) if asked else None)


async def answer(call: Call, given: AnswerRequest) -> AnsweredView:
    """Answer a question; whoever asked is told."""
    who = call.caller
    said = await call.engine.talk.settle(who, call.id, given.answer)
    asked = ", ".join((await call.engine.replies.to(who, call.id, patience=0.0)).question.to)
    between = {"to_agent_id": said.to[0], "asked_agent_id": asked}
    return AnsweredView(conversation_id=call.id, status="answered", answer_id=said.id, **between)

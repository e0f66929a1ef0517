"""Remarks on a change, each within a transaction: a comment, its settling, a review's end, and passing answers on."""

from __future__ import annotations

from dataclasses import replace

from windlass.core.address import HUMAN, SYSTEM
from windlass.core.gate import reviews
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.message import Kind, Message, Opinion, Receipt, Remark
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Reading, Writing
from windlass.engine.records.closing import end_task
from windlass.engine.records.messages import current_task, review_channel, say, withdraw

SETTLED = "Settled."


def said_about(store: Reading, change: str) -> list[Message]:
    """All messages about a change, in order."""
    return store.messages(review_channel(change))


def reviewers_of(store: Reading, change: Change, *states: TaskState) -> list[Task]:
    """The unfinished reviews of a change; only those in these states, if any are named."""
    found = [task for task in store.unfinished_tasks(project=change.project) if task.reviews == change.id]
    return [task for task in found if not states or task.state in states]


def comment(
    store: Writing, who: str, change: Change, given: reviews.Comment, *, now: float, reply_to: str = ""
) -> Message:
    """Comment on a change; a blocking comment holds it at once."""
    made = say(
        store,
        sender=who,
        to=_readers(store, who, change, reply_to),
        body=given.body,
        channel=review_channel(change.id),
        now=now,
        kind=Kind.COMMENT,
        reply_to=reply_to,
        remark=Remark(head=change.head, turn=change.turn, file=given.file, line=given.line, blocking=given.blocking),
    )
    if given.blocking:
        hold(store, change, _objection(store, change))
    return made


def _objection(store: Reading, change: Change) -> str:
    return reviews.objection(change, said_about(store, change.id), wanted=False)


def _readers(store: Reading, who: str, change: Change, reply_to: str) -> tuple[str, ...]:
    """A reviewer speaks to the author, the author to who is answered, or else to all whose comments are open."""
    if who != (change.agent or str(HUMAN)):
        return (change.agent,) if _hears(store, change.agent) else (() if who == str(HUMAN) else (str(HUMAN),))
    answered = store.find(Message, reply_to) if reply_to else None
    open_ones = [answered] if answered else reviews.open_blocking(said_about(store, change.id))
    readers = dict.fromkeys(one.sender for one in open_ones if one.sender != who)
    return tuple(reader for reader in readers if reader == str(HUMAN) or _hears(store, reader))


def _hears(store: Reading, agent: str) -> bool:
    """Whether an agent has an unfinished task, so that it can be woken."""
    task = current_task(store, agent) if agent else None
    return task is not None and not task.ended


_PASSING_HOLDS = (Hold.CHECKS, Hold.CHECKOUT, Hold.TROUBLE)
"""Holds that end by themselves."""


def hold(store: Writing, change: Change, reason: str) -> None:
    """Hold a change for its review, unless a person holds it."""
    if change.state in (ChangeState.QUEUED, ChangeState.TESTING):
        store.record("change.held", change.id, change.move(ChangeState.HELD, reason=reason, hold=Hold.REVIEW))
    elif change.hold in _PASSING_HOLDS or (change.hold is Hold.REVIEW and change.reason != reason):
        held = replace(change, hold=Hold.REVIEW, reason=reason, candidate=None)
        store.record("change.held", change.id, held)


def settle(store: Writing, who: str, change: Change, blocking: Message, *, words: str, now: float) -> None:
    """Settle a blocking comment, and drop it where it is undelivered; after the last one, the change goes on."""
    _note(store, change, who, words or SETTLED, now, kind=Kind.ANSWER, reply_to=blocking.id)
    unheard = [delivery for delivery in store.undelivered(reader=change.agent) if delivery.message == blocking.id]
    if change.agent and unheard:
        dropped = [delivery.move(Receipt.FAILED) for delivery in unheard]
        store.record("message.dropped", change.agent, *dropped, reason=f"{blocking.id} is settled")
    free(store, change.id, now)


def free(store: Writing, key: str, now: float) -> None:
    """Put a change that reviews held back into the queue, unless a comment still blocks it."""
    change = store.find(Change, key)
    if change is None or change.hold is not Hold.REVIEW:
        return
    if objection := _objection(store, change):
        hold(store, change, objection)
        return
    store.record("change.queued", key, change.move(ChangeState.QUEUED))
    withdraw(store, review_channel(key), "What was asked about is settled.", now)


def approve(store: Writing, who: str, change: Change, words: str, now: float) -> None:
    """Record that someone approved a change as it is."""
    _note(store, change, who, words, now, kind=Kind.REPORT, opinion=Opinion.APPROVE)


def _note(
    store: Writing,
    change: Change,
    who: str,
    body: str,
    now: float,
    *,
    kind: Kind,
    to: tuple[str, ...] = (),
    reply_to: str = "",
    head: str = "",
    opinion: Opinion | None = None,
) -> Message:
    remark = Remark(head=head or change.head, turn=change.turn, opinion=opinion)
    channel = review_channel(change.id)
    return say(
        store, sender=who, to=to, body=body, channel=channel, now=now, kind=kind, reply_to=reply_to, remark=remark
    )


# ── the end of a review ──────────────────────────────────────────────────────────────────────────────────────


def conclude(store: Writing, run: Run, task: Task, words: str, now: float) -> None:
    """End a review: take its comments and its summary. A reviewer who objects waits for the answer."""
    change = store.find(Change, task.reviews)
    if change is None or change.ended:
        end_task(store, task, TaskState.DONE, now=now, reason=f"{task.reviews} is {change.state if change else 'gone'}")
        return
    before = {each.id for each in said_about(store, change.id)}
    _take_report(store, run, change, words, now)
    change = store.find(Change, change.id) or change
    said = said_about(store, change.id)
    verdict = reviews.opinion(run.agent, said)
    to = (str(SYSTEM),)
    _note(store, change, run.agent, words, now, kind=Kind.REPORT, to=to, head=run.base, opinion=verdict)
    if verdict is Opinion.APPROVE:
        end_task(store, task, TaskState.DONE, now=now, reason="approved")
        free(store, change.id, now)
        return
    own = [blocking for blocking in reviews.open_blocking(said) if blocking.sender == run.agent]
    waits = f"waits for an answer to {', '.join(each.id for each in own)}"
    store.record("task.paused", task.id, task.move(TaskState.WAITING, now=now, reason=waits))
    _insist(store, run, change, [each for each in own if each.id in before], words=words, now=now)


def _take_report(store: Writing, run: Run, change: Change, words: str, now: float) -> None:
    """Take the comments in a reviewer's last words like those it made by command, each once."""
    report = reviews.read_report(words)
    said = said_about(store, change.id)
    for blocking in reviews.open_blocking(said):
        if blocking.id in report.settled and blocking.sender == run.agent:
            settle(store, run.agent, change, blocking, words="", now=now)
    known = {message.body for message in said if message.sender == run.agent and message.kind is Kind.COMMENT}
    for given in report.comments:
        current = store.find(Change, change.id) or change
        if given.body not in known and current.agent != run.agent:
            comment(store, run.agent, current, given, now=now)


def _insist(store: Writing, run: Run, change: Change, kept: list[Message], *, words: str, now: float) -> None:
    """Tell the author which of its answers were not enough."""
    said = said_about(store, change.id)
    for blocking in kept:
        answered = reviews.rounds(blocking, said, change.agent or str(HUMAN)) > 0
        if answered and _hears(store, change.agent):
            to, body = (change.agent,), words or blocking.body
            _note(store, change, run.agent, body, now, kind=Kind.COMMENT, to=to, reply_to=blocking.id)


# ── the author's answer ──────────────────────────────────────────────────────────────────────────────────────


def pass_on(store: Writing, key: str, most: int, now: float) -> None:
    """Pass the answer of an author who has brought a change again on to those who objected, or ask a person."""
    change = store.find(Change, key)
    if change is None or change.hold is not Hold.REVIEW:
        return
    said = said_about(store, key)
    for blocking in reviews.open_blocking(said):
        if reviews.brought_again(change, blocking, said):
            _pass_on(store, change, blocking, said, most=most, now=now)


def _pass_on(store: Writing, change: Change, blocking: Message, said: list[Message], *, most: int, now: float) -> None:
    author, reviewer = change.agent or str(HUMAN), blocking.sender
    run = store.latest_runs([change.agent]).get(change.agent) if change.agent else None
    answer = run.result if run else ""
    often = reviews.rounds(blocking, said, author)
    if reviewer != str(HUMAN) and _hears(store, reviewer) and often < most:
        body = reviews.passed_on(change, blocking, answer)
        _note(store, change, author, body, now, kind=Kind.COMMENT, to=(reviewer,), reply_to=blocking.id)
        return
    why = f" after {often} answers" if often >= most else ""
    body = reviews.asked_person(change, blocking, answer, why)
    _note(store, change, str(SYSTEM), body, now, kind=Kind.ASK, to=(str(HUMAN),), reply_to=blocking.id)


def begin(store: Writing, change: Change, reviewer: str, now: float) -> None:
    """Remember that this commit is being reviewed."""
    _note(store, change, str(SYSTEM), f"{reviewer} reviews it.", now, kind=Kind.SAY)


def ask_about_review(store: Writing, change: Change, problem: str, now: float) -> None:
    """Ask a person about a change whose review can't begin or end, once for each commit."""
    said = said_about(store, change.id)
    current = store.find(Change, change.id)
    asked = any(each.kind is Kind.ASK and each.remark and each.remark.head == change.head for each in said)
    if asked or current is None or current.ended:
        return
    hold(store, current, problem)
    body = (
        f"{change.id} ({change.title}) waits: {problem} `windlass review {change.id}` tries again, "
        f"`windlass queue release {change.id}` lets it land without."
    )
    _note(store, change, str(SYSTEM), body, now, kind=Kind.ASK, to=(str(HUMAN),))

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
    """All that was said about a change, in order."""
    return store.messages(review_channel(change))


def reviewers_of(store: Reading, change: str, *states: TaskState) -> list[Task]:
    """The reviews of a change that have not ended; of these states, where any are named."""
    found = [task for task in store.unfinished_tasks() if task.reviews == change]
    return [each for each in found if not states or each.state in states]


def comment(
    store: Writing, who: str, change: Change, given: reviews.Comment, *, now: float, reply_to: str = ""
) -> Message:
    """Say something about a change to whom it concerns; what blocks, holds it at once."""
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
    """Whether an agent is still at something, so that it can be woken."""
    task = current_task(store, agent) if agent else None
    return task is not None and not task.ended


_ELSE = (Hold.CHECKS, Hold.CHECKOUT, Hold.TROUBLE)
"""What a change may wait for that goes away by itself."""


def hold(store: Writing, change: Change, reason: str) -> None:
    """What is on its way to main stops; what a person holds waits for them first."""
    if change.state in (ChangeState.QUEUED, ChangeState.TESTING):
        store.record("change.held", change.id, change.move(ChangeState.HELD, reason=reason, hold=Hold.REVIEW))
    elif change.hold in _ELSE or (change.hold is Hold.REVIEW and change.reason != reason):
        held = replace(change, hold=Hold.REVIEW, reason=reason, candidate=None)
        store.record("change.held", change.id, held)


def settle(store: Writing, who: str, change: Change, blocking: Message, *, words: str, now: float) -> None:
    """A blocking comment is settled; who has not heard of it need not; if it was the last one, the change goes on."""
    _note(store, change, who, words or SETTLED, now, kind=Kind.ANSWER, reply_to=blocking.id)
    unheard = [each for each in store.undelivered(reader=change.agent) if each.message == blocking.id]
    if change.agent and unheard:
        dropped = [each.move(Receipt.FAILED) for each in unheard]
        store.record("message.dropped", change.agent, *dropped, reason=f"{blocking.id} is settled")
    free(store, change.id, now)


def free(store: Writing, key: str, now: float) -> None:
    """Put a change that reviews held back into the line, if nothing that was said blocks it any more."""
    change = store.find(Change, key)
    if change is None or change.hold is not Hold.REVIEW:
        return
    if objection := _objection(store, change):
        hold(store, change, objection)
        return
    store.record("change.queued", key, change.move(ChangeState.QUEUED))
    withdraw(store, review_channel(key), "What was asked about is settled.", now)


def approve(store: Writing, who: str, change: Change, words: str, now: float) -> None:
    """Someone has looked at the change as it is, and it may land."""
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
    """A reviewer has said all: its comments, and a summary to the gate. Where it objects, it waits for the answer."""
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
    own = [each for each in reviews.open_blocking(said) if each.sender == run.agent]
    waits = f"waits for an answer to {', '.join(each.id for each in own)}"
    store.record("task.paused", task.id, task.move(TaskState.WAITING, now=now, reason=waits))
    _insist(store, run, change, [each for each in own if each.id in before], words=words, now=now)


def _take_report(store: Writing, run: Run, change: Change, words: str, now: float) -> None:
    """What a reviewer wrote into its last words counts like what it said by command; twice is once."""
    report = reviews.read_report(words)
    said = said_about(store, change.id)
    for each in reviews.open_blocking(said):
        if each.id in report.settled and each.sender == run.agent:
            settle(store, run.agent, change, each, words="", now=now)
    known = {each.body for each in said if each.sender == run.agent and each.kind is Kind.COMMENT}
    for given in report.comments:
        current = store.find(Change, change.id) or change
        if given.body not in known and current.agent != run.agent:
            comment(store, run.agent, current, given, now=now)


def _insist(store: Writing, run: Run, change: Change, kept: list[Message], *, words: str, now: float) -> None:
    """The author hears what is still missing, where its answer was not taken."""
    said = said_about(store, change.id)
    for each in kept:
        answered = reviews.rounds(each, said, change.agent or str(HUMAN)) > 0
        if answered and _hears(store, change.agent):
            to = (change.agent,)
            _note(store, change, run.agent, words or each.body, now, kind=Kind.COMMENT, to=to, reply_to=each.id)


# ── the author's answer ──────────────────────────────────────────────────────────────────────────────────────


def pass_on(store: Writing, key: str, most: int, now: float) -> None:
    """The author has brought the change again: who objected hears its answer, once; or a person is asked."""
    change = store.find(Change, key)
    if change is None or change.hold is not Hold.REVIEW:
        return
    said = said_about(store, key)
    for each in reviews.open_blocking(said):
        if reviews.brought_again(change, each, said):
            _pass_on(store, change, each, said, most=most, now=now)


def _pass_on(store: Writing, change: Change, each: Message, said: list[Message], *, most: int, now: float) -> None:
    author, answer = change.agent or str(HUMAN), _last_words(store, change.agent)
    often = reviews.rounds(each, said, author)
    if each.sender != str(HUMAN) and _hears(store, each.sender) and often < most:
        body = reviews.passed_on(change, each, answer)
        _note(store, change, author, body, now, kind=Kind.COMMENT, to=(each.sender,), reply_to=each.id)
        return
    why = f" after {often} answers" if often >= most else ""
    body = reviews.asked_person(change, each, answer, why)
    _note(store, change, str(SYSTEM), body, now, kind=Kind.ASK, to=(str(HUMAN),), reply_to=each.id)


def _last_words(store: Reading, agent: str) -> str:
    run = store.latest_runs([agent]).get(agent) if agent else None
    return run.result if run else ""


def begin(store: Writing, change: Change, reviewer: str, now: float) -> None:
    """Remember that this commit is being reviewed."""
    _note(store, change, str(SYSTEM), f"{reviewer} reviews it.", now, kind=Kind.SAY)


def ask_about_review(store: Writing, change: Change, problem: str, now: float) -> None:
    """The review that a change needs can't be had: a person is asked, once for each commit."""
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

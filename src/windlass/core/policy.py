"""Choices between nouns: what an ended run means, how mail reaches an agent, what an agent's status is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.address import HUMAN
from windlass.core.display import short, some
from windlass.core.messages.loop_guard import LoopStop, decide_brake
from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.message import GOOD_TO_KNOW, Kind, MailItem, Message
from windlass.core.nouns.run import Cause, Outcome, Run, RunTrouble, TroubleKind
from windlass.core.nouns.task import Task, TaskState
from windlass.core.runs import retry_rules
from windlass.core.runs.provider import DoneSign
from windlass.core.runs.signal import BadSignal, Question, SaidDone, SaidError, SaidQuestions, Signal
from windlass.core.runs.workdir import WorktreeState
from windlass.core.settings.schema import Limits

EXCERPT = 80
"""Characters of a bad signal that are shown with the run."""

# ── waking ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Wake:
    """Start a run for the mail, in the session of an earlier run where there is one."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave the mail where it is, for this reason."""

    reason: str
    until: float | None = None
    """When to look again, where time alone helps."""
    brake: LoopStop | None = None
    """The loop guard, where agents have talked on and on."""


BUSY = "busy; it is woken when this run ends"
NEED_NOT = "it has nothing to do now, and this need not start it"
"""Said of a broadcast or a report: the agent is told at its next run."""
TURN_SECONDS = 60.0
"""After which an agent that waits for its turn is looked at again; usually the end of the other's run wakes it."""


def waits_for(turn: str) -> str:
    """Why one of those who share a worktree is not started yet."""
    return f"{turn} is at work there; it is next"


def decide_wake(
    agent: Agent,
    runs: Sequence[Run],
    items: Sequence[MailItem],
    limits: Limits,
    *,
    past: Sequence[Run],
    idle: bool,
    resumes: bool,
    now: float,
    turn: str = "",
) -> Wake | Wait:
    """Choose how an agent learns that it has mail.

    `runs` are those of its task, `past` all that it ever had; `idle`: no task of its goes on; `turn`: who works before
    it, where they share a worktree.
    """
    latest = runs[-1] if runs else None
    mail = [item.message for item in items if item.calls]
    if latest and latest.live:
        return Wait(BUSY)
    if why := _out_of_reach(agent, latest, mail):
        return Wait(why)
    if items and not mail:
        return Wait(GOOD_TO_KNOW)
    if items and idle and not any(message.spawns for message in mail):
        return Wait(NEED_NOT)
    if turn:
        return Wait(waits_for(turn), now + TURN_SECONDS)
    if brake := decide_brake(past, items, limits, now=now):
        return Wait(brake.words(agent.id), brake.until, brake)
    if latest and not _from_person(items, latest):
        if latest.trouble and latest.trouble.kind in retry_rules.FOR_A_PERSON:
            return Wait(f"needs a person: {latest.reason}")
        until = retry_rules.rest_until(runs)
        if until is not None and (latest.ended_at or 0.0) <= now < until:
            return Wait(f"rests after {retry_rules.named(latest)}", until)
    remembers = latest is not None and latest.starting_at >= agent.created_at  # not what it was before a new start
    return Wake(_session(latest) if latest and resumes and remembers else "")


def _out_of_reach(agent: Agent, latest: Run | None, mail: Sequence[Message]) -> str:
    """Why only a person can wake it, who writes to it alone; nothing if anyone can, or one has."""
    if agent.attended:
        return "a person drives this agent"
    if any(message.spawns and message.sender == str(HUMAN) for message in mail):
        return ""
    if agent.retired_at is not None:
        return "its work is finished"
    return "stopped by hand" if latest and latest.outcome is Outcome.STOPPED else ""


def _from_person(items: Iterable[MailItem], latest: Run) -> bool:
    """Whether a person has said something that the latest run was not told: nobody rests then."""
    calls = (item for item in items if item.calls and item.message.sender == str(HUMAN))
    return any(item.delivery.run != latest.id for item in calls)


def _session(latest: Run) -> str:
    """The session to go on in; one that has become too long, or is lost, is left."""
    left = (TroubleKind.CONTEXT, TroubleKind.LOST)
    return "" if latest.trouble and latest.trouble.kind in left else latest.session


def cause_of(mail: Iterable[Message], task: Task | None) -> Cause:
    """Why a run that carries this mail is started; without a task that goes on, the mail is what there is to do."""
    if task is None or task.ended:
        return Cause.CALL
    return Cause.REMINDER if all(message.kind is Kind.REMINDER for message in mail) else Cause.MAIL


def may_start(project: str, live: Mapping[str, int], *, home: Limits, own: Limits) -> bool:
    """Whether one more run fits: the home limits all projects together, a project only itself."""
    return sum(live.values()) < home.runs and live.get(project, 0) < own.runs


# ── the end of a run ─────────────────────────────────────────────────────────────────────────────────────────


class Then(StrEnum):
    """The step that follows the end of a run."""

    LAND = "land"
    FINISH = "finish"
    ASK = "ask"
    REMIND = "remind"
    FAIL = "fail"
    REST = "rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """Everything that is known when a run's process has gone."""

    exit_code: int | None
    signal: Signal | None
    tree: WorktreeState | None
    """None when the worktree is lost."""
    kept: tuple[str, ...] = ()
    """Commits of its branch that are kept although the worktree is lost."""
    stopping: str = ""
    trouble: RunTrouble | None = None
    """The trouble it was in at its end, by its own output or by our clock."""
    tries: int = 0
    """Runs just before this one that did not end well."""
    waits: int = 0
    """Runs just before this one that met an overloaded model's server."""
    patience: int = 0
    """Further tries of a persistent agent."""
    claim: DoneSign = DoneSign.SIGNAL
    branch: str = ""
    heads: Mapping[str, str] = field(default_factory=dict)
    """The commit that could land in each project, by its id."""
    looks: bool = False
    """It was only to look: nothing in its worktree counts as work."""
    called: bool = False
    """Its task is what someone said to it: there may be nothing to commit."""
    joins: bool = False
    """It takes part in a workflow: what it commits lands when all are quiet, and it need not say that it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """The verdict on a run, with its evidence and the next step."""

    outcome: Outcome
    then: Then
    reason: str = ""
    evidence: tuple[str, ...] = ()
    result: str = ""
    note: str = ""
    """The reminder for the agent."""
    questions: tuple[Question, ...] = ()


def judge(ending: EndedRun, limits: Limits) -> RunVerdict:
    """Decide how a run ended: from its signal, its exit, its tree and our own doing together."""
    return replace(_judge(ending, limits), evidence=evidence_of(ending))


def _judge(ending: EndedRun, limits: Limits) -> RunVerdict:
    if ending.stopping:
        return RunVerdict(outcome=Outcome.STOPPED, then=Then.REST, reason=ending.stopping)
    if ending.tree is None:
        return _failed(_lost(ending))
    match ending.signal:
        case SaidQuestions(questions):
            asked = "; ".join(question.question for question in questions)
            return RunVerdict(outcome=Outcome.ASKED, then=Then.ASK, reason=asked, questions=questions)
        case SaidError(error):
            return _failed(error)
        case SaidDone(result):
            return _judge_done(ending, ending.tree, result, limits)
        case BadSignal(problem, excerpt):
            note = f"Your signal file could not be read: {problem}.\nIt began: {excerpt!r}\nWrite it again."
            return _unfinished(ending, limits.reminders, f"bad signal: {problem}", note)
        case None:
            return _judge_silence(ending, ending.tree, limits)


def _lost(ending: EndedRun) -> str:
    if not ending.kept:
        return "its worktree is gone, and it had no commits that could be kept"
    return f"its worktree is gone; its branch is kept: {ending.branch} at {', '.join(map(short, ending.kept))}"


def _failed(reason: str) -> RunVerdict:
    return RunVerdict(outcome=Outcome.FAILED, then=Then.FAIL, reason=reason)


def _judge_done(ending: EndedRun, tree: WorktreeState, result: str, limits: Limits) -> RunVerdict:
    """It says done: believe the tree, not the word."""
    if ending.looks:
        return RunVerdict(outcome=Outcome.DONE, then=Then.FINISH, result=result)
    if tree.branch != ending.branch:
        where = f"on {tree.branch}" if tree.branch else "on no branch"
        note = f"You said done, but your worktree is {where}. Put your commits on {ending.branch} and check it out."
        return _unfinished(ending, limits.reminders, f"said done, but is {where}, not {ending.branch}", note)
    if tree.refused:
        return _judge_refused(ending, tree.refused, limits)
    left = tree.left
    if ending.joins and not (left and ending.tries < 1):
        kept = f"left {some(left)} uncommitted in its worktree" if left else ""
        return RunVerdict(outcome=Outcome.DONE, then=Then.FINISH, reason=kept, result=result)
    if tree.changed or (left and (ending.tries < limits.reminders or not tree.commits)):
        note = f"You said done, but these files are not committed: {some(left)}. Commit what belongs to the task."
        reason = f"said done, but left {some(left)} uncommitted"
        return _unfinished(ending, limits.reminders, reason, note, outcome=Outcome.FAILED)
    if tree.commits:
        return RunVerdict(outcome=Outcome.DONE, then=Then.LAND, result=result)
    reason = "nothing was committed, so there is nothing to land"
    return RunVerdict(outcome=Outcome.DONE, then=Then.FINISH, reason=reason, result=result)


def _judge_refused(ending: EndedRun, why: str, limits: Limits) -> RunVerdict:
    """Its last commit could not be taken in: nothing of its task lands, not even what came before."""
    note = (
        f"Your commits can't be taken in, so nothing of your task can land: {why}. Make the commits anew without what"
        " is wrong (`git commit --amend`, or `git reset --soft` to the last good commit), then say that you are done."
    )
    allowed = 2 * limits.reminders  # of something else it may have been reminded before, and could not know of this
    return _unfinished(ending, allowed, why, note, outcome=Outcome.FAILED)


def _judge_silence(ending: EndedRun, tree: WorktreeState, limits: Limits) -> RunVerdict:
    """No signal: a trouble, a crash, something forgotten, or a plain command that has done its work."""
    if ending.trouble is not None:
        return _judge_trouble(ending, ending.trouble, limits)
    heard = ending.called and tree.clean
    enough = ending.claim is DoneSign.EXIT and (tree.commits or tree.refused or ending.looks or heard)
    if ending.exit_code == 0 and (ending.joins or enough):
        return _judge_done(ending, tree, "", limits)
    if ending.exit_code == 0 and ending.claim is DoneSign.EXIT:
        missing = f"left {some(tree.left)} uncommitted" if tree.left else "committed nothing"
        note = f"Your last run ended with exit code 0, but {missing}. Commit what belongs to the task."
        return _unfinished(ending, limits.reminders, f"exit code 0, but it {missing}", note)
    if ending.exit_code == 0:
        note = "Your last run ended without a signal. If the work is finished and committed, say so; else go on."
        return _unfinished(ending, limits.reminders, "it ended without a signal", note)
    how = "it was killed" if ending.exit_code is None else f"exit code {ending.exit_code}"
    note = f"Your last run ended before it was finished: {how}. Your files are as you left them. Go on."
    return _unfinished(ending, limits.retries, f"{how}, without a signal", note)


def _judge_trouble(ending: EndedRun, trouble: RunTrouble, limits: Limits) -> RunVerdict:
    """Something outside the agent's work got in the way: what helps depends on what it was."""
    reason = retry_rules.described(trouble)
    if trouble.kind is TroubleKind.QUOTA:
        return RunVerdict(outcome=Outcome.EXHAUSTED, then=Then.REMIND, reason=reason, note=retry_rules.GO_ON)
    if trouble.kind in retry_rules.FOR_A_PERSON:
        ask = (Question("q1", f"{reason}. {retry_rules.FOR_A_PERSON[trouble.kind]}"),)
        return RunVerdict(outcome=Outcome.FAILED, then=Then.ASK, reason=reason, questions=ask)
    if trouble.kind is TroubleKind.RUNAWAY:
        return _failed(reason)
    if trouble.kind in retry_rules.NO_ROOM:
        waited = replace(ending, tries=ending.waits)
        return _unfinished(waited, limits.waits, reason, retry_rules.GO_ON, outcome=Outcome.FAILED)
    note = f"Your last run was cut short: {reason}. Your files are as you left them. Go on."
    return _unfinished(ending, limits.retries, reason, note)


def _unfinished(
    ending: EndedRun, allowed: int, reason: str, note: str, *, outcome: Outcome = Outcome.CRASHED
) -> RunVerdict:
    """Tell the agent and let it go on, as often as is allowed."""
    if ending.tries < allowed + ending.patience:
        return RunVerdict(outcome=outcome, then=Then.REMIND, reason=reason, note=note)
    after = f" (after {ending.tries + 1} runs)" if ending.tries else ""
    return RunVerdict(outcome=outcome, then=Then.FAIL, reason=reason + after)


def evidence_of(ending: EndedRun) -> tuple[str, ...]:
    """The facts, in words."""
    facts = ["exit code unknown" if ending.exit_code is None else f"exit code {ending.exit_code}"]
    facts.append("no signal" if ending.signal is None else f"signal: {_signal_word(ending.signal)}")
    if ending.trouble is not None:
        facts.append(f"trouble: {retry_rules.described(ending.trouble)}")
    if ending.tree is None:
        return (*facts, "worktree lost")
    tree = ending.tree
    facts.append(f"{tree.commits} commit{'' if tree.commits == 1 else 's'} on {tree.branch or 'no branch'}")
    left = {"uncommitted": tree.changed, "untracked": tree.untracked, "not in the snapshot": tree.holes}
    facts += [f"{how}: {some(files)}" for how, files in left.items() if files]
    return (*facts, "clean tree") if tree.clean else tuple(facts)


def _signal_word(signal: Signal) -> str:
    match signal:
        case SaidDone():
            return "done"
        case SaidQuestions():
            return "questions"
        case SaidError():
            return "error"
        case BadSignal(_, excerpt):
            return f"unreadable, it begins {excerpt[:EXCERPT]!r}" if excerpt else "unreadable"


def joined(trees: Mapping[str, WorktreeState], branch: str) -> WorktreeState:
    """Several worktrees as one, by name: what is left over in any is left over, and commits are counted together."""
    first, *more = trees.values()
    if not more:
        return first
    astray = next((tree.branch for tree in trees.values() if tree.branch != branch), branch)
    return WorktreeState(
        head=first.head,
        branch=astray,
        commits=sum(tree.commits for tree in trees.values()),
        changed=tuple(f"{name}/{file}" for name, tree in trees.items() for file in tree.changed),
        untracked=tuple(f"{name}/{file}" for name, tree in trees.items() for file in tree.untracked),
        snapshot=first.snapshot,
        holes=tuple(f"{name}/{file}" for name, tree in trees.items() for file in tree.holes),
        unsaved=tuple(f"{name}/{file}" for name, tree in trees.items() for file in tree.unsaved),
        refused="; ".join(f"in {name}, {tree.refused}" for name, tree in trees.items() if tree.refused),
    )


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────


def status_of(latest: Run | None, task: Task | None, change: Change | None, *, persistent: bool = False) -> Status:
    """Derive what an agent is doing."""
    if latest is None:
        return Status.STOPPED if task and task.state is TaskState.CANCELLED else Status.IDLE
    if latest.live:
        return Status.RUNNING
    if (change and change.state is ChangeState.HELD) or (task and task.state is TaskState.WAITING):
        return Status.WAITING
    if task and task.state is TaskState.ACTIVE:  # it is started again: soon, or when its account has quota
        return Status.WAITING if latest.outcome is Outcome.EXHAUSTED else Status.IDLE
    if task and task.state is TaskState.CANCELLED:
        return Status.STOPPED
    if latest.outcome is Outcome.DONE:  # a persistent agent waits for what comes next
        return Status.COMPLETED if (task is None or task.ended) and not persistent else Status.IDLE
    return _AFTER[latest.outcome] if latest.outcome else Status.IDLE


def is_settled(task: Task, change: Change | None, *, asked: bool) -> bool:
    """Whether nothing more happens to a task without a person."""
    held = change is not None and change.state is ChangeState.HELD and task.state is TaskState.LANDING
    return task.ended or held or (task.state is TaskState.WAITING and (asked or bool(task.reviews)))


_AFTER = {
    Outcome.ASKED: Status.WAITING,
    Outcome.EXHAUSTED: Status.WAITING,
    Outcome.FAILED: Status.ERROR,
    Outcome.CRASHED: Status.ERROR,
    Outcome.STOPPED: Status.STOPPED,
}

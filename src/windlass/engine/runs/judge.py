"""The end of a run: the claim is held against the facts, and all that follows is one transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from windlass.core import policy
from windlass.core.address import HUMAN, SYSTEM
from windlass.core.errors import WindlassError
from windlass.core.gate.rules import rates
from windlass.core.gate.stacks import may_be_chance
from windlass.core.messages.members import Speaker
from windlass.core.nouns.agent import Agent, Permissions
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.message import Kind, Message, Receipt
from windlass.core.nouns.run import Cause, Outcome, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.policy import EndedRun, RunVerdict, Then
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs import retry_rules
from windlass.core.runs.redact import Redactor
from windlass.core.runs.signal import Signal, read_signal
from windlass.core.runs.workdir import Site, WorktreeState
from windlass.engine.confinement import Confinements
from windlass.engine.gate.comments import conclude
from windlass.engine.gate.record import IN_QUEUE
from windlass.engine.messages.talk import Talk
from windlass.engine.records import instances
from windlass.engine.records.changes import queue_change, recent_changes
from windlass.engine.records.closing import close_change, end_task
from windlass.engine.records.messages import ask_about, asked_about, channel_of, say, tell_agent
from windlass.engine.records.sites import site_of
from windlass.engine.runs.own_checks import own_result
from windlass.engine.runs.start import delay

log = logging.getLogger("windlass")

LOOKS_AT_ONCE = 4

EVENTS = {Outcome.ASKED: "run.asked", Outcome.CRASHED: "run.crashed"}
"""All other outcomes are `run.finished`."""


class Judge:
    """Judges runs whose process has gone."""

    def __init__(self, ports: Ports, confinement: Confinements, talk: Talk) -> None:
        self.ports = ports
        self.store = ports.store
        self.confinement = confinement
        self.talk = talk
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def run(self, run: Run) -> None:
        """Gather the facts, judge, and record what follows; again, if the run was stopped or spoke meanwhile."""
        site, task, before, joins = await self.store.read(partial(_history, run))
        await self.talk.catch_up(Speaker(run.agent, site.project.id, run.id), site.project, gone=True)
        redactor = await self.confinement.redactor(run, site.project)
        while True:
            limits = self.ports.settings.at(site.project.path).limits
            trees, kept = await self._look(site, run, redactor)
            found = zip(site.projects, trees.values(), strict=False)
            ending = EndedRun(
                exit_code=await self.ports.processes.exit_code(run.id),
                signal=redactor.whole(await self._signal(run, site)),
                tree=policy.joined(trees, site.agent.branch) if trees else None,
                kept=kept,
                stopping=run.stopping,
                trouble=run.trouble,
                tries=retry_rules.tries_before(before),
                waits=retry_rules.waits_before(before),
                patience=limits.restarts if site.agent.persistent else 0,
                claim=self.ports.providers.get(run.provider).claim,
                heads={project.id: tree.head for project, tree in found if tree.commits},
                branch=site.agent.branch,
                looks=bool(task and not task.mode.writes) or (joins and site.agent.permissions is Permissions.READ),
                called=any(other.cause is Cause.CALL for other in (*before, run)),
                joins=joins,
            )
            verdict = redactor.whole(policy.judge(ending, limits))  # a file's name may be a secret, too
            changed = await self.store.write(partial(record, run, verdict, ending, self.ports.clock.now()))
            if changed is None:
                break
            run = changed

    async def _look(self, site: Site, run: Run, redactor: Redactor) -> tuple[dict[str, WorktreeState], tuple[str, ...]]:
        """The states of its worktrees, by name; if one is gone, the commits that are kept of its agent instead.

        Neither of a stopped run that can't be looked at now.
        """
        git = self.ports.git
        try:
            async with self._looks:
                if not all([await git.has_worktree(project, site.agent) for project in site.projects]):
                    return {}, await self._kept(site)
                trees = [await git.look(project, site.agent, run.id) for project in site.projects]
                return dict(zip(site.names, trees, strict=True)), ()
        except WindlassError as error:
            words = redactor.text(str(error))
            log.warning("run %s: %s", run.id, words)
            await self.store.write(partial(delay, run.id, f"can't be judged yet: {words}"))
            if run.stopping:
                return {}, ()
            raise

    async def _kept(self, site: Site) -> tuple[str, ...]:
        """The commits, not in main, that are kept of an agent whose worktree is gone."""
        git = self.ports.git
        heads = [(project, await git.branch(project, site.agent)) for project in site.projects]
        return tuple([head for project, head in heads if head and not await git.landed(project, head)])

    async def _signal(self, run: Run, site: Site) -> Signal | None:
        if run.said:
            return read_signal(run.said.encode())
        folder = site.folder(self.ports.home, self.ports.git.worktree_path(site.project, site.agent))
        return await self.ports.workdirs.signal(run.id, folder)


def _history(run: Run, store: Reading) -> tuple[Site, Task | None, list[Run], bool]:
    """A run's site, its task, the runs before it of the same task, and whether it is part of a workflow."""
    site, task = site_of(store, run.agent), store.find(Task, run.task)
    before = [old for old in store.runs_of(run.agent) if old.number < run.number and old.task == run.task]
    return site, task, before, instances.joins(store, site.agent, task)


def record(judged: Run, verdict: RunVerdict, ending: EndedRun, now: float, store: Writing) -> Run | None:
    """Within a transaction: the outcome, and what it means for mail, task and change.

    Returns the run, and writes nothing, where it is not the one that was judged any more.
    """
    run = store.find(Run, judged.id)
    if run is None or not run.live:
        return None
    if (run.stopping, run.said, run.trouble) != (judged.stopping, judged.said, judged.trouble):
        return run
    cut_short = ending.signal is None and run.trouble is not None
    ended = run.end(
        verdict.outcome,
        now=now,
        reason=verdict.reason,
        evidence=(*verdict.evidence, *(f"output: {oddity}" for oddity in run.odd)),
        exit_code=ending.exit_code,
        result=verdict.result,
    )
    ended = replace(ended, trouble=run.trouble if cut_short else None)
    seen = verdict.outcome is not Outcome.CRASHED and not cut_short
    mail = [delivery.move(Receipt.READ) for delivery in store.deliveries_of(run.id)] if seen else []
    store.record(EVENTS.get(verdict.outcome, "run.finished"), run.id, ended, *mail)
    task, agent = store.find(Task, run.task), store.find(Agent, run.agent)
    joins = agent is not None and instances.joins(store, agent, task)
    if task is not None and not task.ended:
        _follow_up(store, ended, task, verdict, heads=ending.heads, now=now)
    if agent is not None and joins and verdict.outcome is Outcome.DONE:
        instances.advance(store, agent, ending.heads.get(agent.project, ""))
    return None


def _follow_up(
    store: Writing, run: Run, task: Task, verdict: RunVerdict, *, heads: Mapping[str, str], now: float
) -> None:
    match verdict.then:
        case Then.LAND:
            _submit(store, run, task, heads, now)
        case Then.ASK:
            body = "\n".join(f"{question.id}: {question.question}" for question in verdict.questions)
            store.record("task.paused", task.id, task.move(TaskState.WAITING, now=now, reason=verdict.reason))
            _tell(store, run, body, now, kind=Kind.ASK)
        case Then.REMIND if not _is_owed(store, run.agent, verdict.note):
            tell_agent(store, run.agent, verdict.note, task=task.id, now=now, kind=Kind.REMINDER)
        case Then.REMIND:
            pass
        case Then.REST:
            end_task(store, task, TaskState.CANCELLED, now=now, reason=verdict.reason)
        case Then.FINISH if task.reviews:
            conclude(store, run, task, verdict.result or run.result, now)
        case Then.FINISH:
            end_task(store, task, TaskState.DONE, now=now, reason=verdict.reason)
            if report := verdict.result or verdict.reason:
                _tell(store, run, report, now)
        case _ if unlucky := _unlucky(store, task, heads):
            _leave_to_a_person(store, run, task, unlucky, now)
        case _:
            end_task(store, task, TaskState.FAILED, now=now, reason=verdict.reason)
            _tell(store, run, f"{run.agent} could not finish: {verdict.reason}", now)


def _unlucky(store: Reading, task: Task, heads: Mapping[str, str]) -> list[Change]:
    """The changes of a task that went back, are as they were, and may have failed by chance each time."""
    refused = [change for change in store.changes_of_task(task.id) if change.state is ChangeState.REJECTED]
    return [each for each in refused if heads.get(each.project) == each.head and _may_be_chance(store, each)]


def _may_be_chance(store: Reading, change: Change) -> bool:
    failed = sum(not check.passed and check.stack == (change.id,) for check in change.checks)
    return failed > 0 and may_be_chance(rates(recent_changes(change.project, store)), failed)


def _leave_to_a_person(store: Writing, run: Run, task: Task, changes: Sequence[Change], now: float) -> None:
    """Hold what its author can't mend: there may be nothing to mend. The author is not started for it again."""
    mail = [delivery.move(Receipt.READ) for delivery in store.deliveries_of(run.id)]
    store.record("task.submitted", task.id, task.move(TaskState.LANDING, now=now), *mail)
    for change in changes:
        reason = f"its checks fail, and {run.agent} could not mend it"
        held = change.move(ChangeState.HELD, reason=reason, hold=Hold.HUMAN)
        store.record("change.held", held.id, held)
        ask = (
            f"{change.id} ({change.title}): {reason} ({run.reason}). `windlass queue retry {change.id}` tests it again"
            f" as it is, if they may fail by chance; `windlass queue drop {change.id}` gives it up."
        )
        ask_about(store, held, ask, now)


def _is_owed(store: Reading, agent: str, note: str) -> bool:
    """Whether an agent has yet to hear just this from us."""
    owed = (store.find(Message, delivery.message) for delivery in store.undelivered(reader=agent))
    return any(message and message.kind is Kind.REMINDER and message.body == note for message in owed)


def _submit(store: Writing, run: Run, task: Task, heads: Mapping[str, str], now: float) -> None:
    """Put the agent's branch into the queue of each project; a change that was refused goes there again."""
    before = [change for change in store.changes_of_task(task.id) if not change.ended]
    store.record("task.submitted", task.id, task.move(TaskState.LANDING, now=now))
    for project, head in heads.items():
        mine = [change for change in before if change.project == project]
        known = mine[-1] if mine else None
        for older in mine[:-1]:
            if older.state is ChangeState.REJECTED:  # whoever holds a held change settles it
                closed = older.move(ChangeState.CLOSED, reason="a newer change of its branch took its place")
                store.record("change.closed", older.id, closed)
        landing = known is not None and (known.state in IN_QUEUE or known.hold is Hold.CHECKOUT)
        if known is None or (landing and known.head != head):
            _queue_new(store, run, task, project, head=head, now=now)
        elif landing:
            continue  # it is on its way, or may even have landed
        else:
            _queue_again(store, run, known, head, now)
    for change in before:
        if change.project not in heads and change.state is ChangeState.REJECTED:
            close_change(store, change, "its author has nothing left to land there", now)
    if run.result:
        _tell(store, run, run.result, now)


def _queue_again(store: Writing, run: Run, known: Change, head: str, now: float) -> None:
    """The newest commits take the place of the old ones. What a person holds, and was not answered, stays held."""
    asked = known.hold is Hold.HUMAN and asked_about(store, known)
    queued = known if asked else known.move(ChangeState.QUEUED)
    turn = store.last_seq() + 1
    own = own_result(run, head, known.id)
    again = replace(queued, head=head, candidate=None, checks=own, queued_at=now, turn=turn)
    store.record("change.held" if asked else "change.queued", again.id, again)


def _queue_new(store: Writing, run: Run, task: Task, project: str, *, head: str, now: float) -> None:
    agent = store.find(Agent, run.agent)
    key = store.next_id(Change)
    change = Change(
        id=key,
        project=project,
        branch=agent.branch if agent else "",
        head=head,
        title=task.title,
        agent=run.agent,
        task=task.id,
        checks=own_result(run, head, key),
        queued_at=now,
    )
    queue_change(store, change)


def _tell(store: Writing, run: Run, body: str, now: float, *, kind: Kind = Kind.REPORT) -> None:
    """A report or a question from the agent to the person."""
    sender = run.agent if kind is Kind.ASK or run.outcome is Outcome.DONE else str(SYSTEM)
    say(store, sender=sender, to=(str(HUMAN),), body=body, channel=channel_of(run.task), now=now, kind=kind)

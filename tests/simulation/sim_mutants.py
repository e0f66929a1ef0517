"""An engine broken on purpose, in one way at a time, and what its judge must say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fakes.store import MemoryReading
from windlass.core import policy
from windlass.core.errors import BadInput
from windlass.core.nouns.message import Receipt
from windlass.core.nouns.run import Run
from windlass.core.ports.processes import Launch
from windlass.engine import background, slots, tidy
from windlass.engine.gate import facts, reviews
from windlass.engine.gate import record as gate_record
from windlass.engine.messages import log
from windlass.engine.records.messages import say as real_say
from windlass.engine.runs import judge, output_intake, watch
from windlass.engine.runs import start as runs

Patch = pytest.MonkeyPatch


def forget_to_adopt(patch: Patch) -> None:
    """A run whose start was not recorded is started again, whether its process lives or not."""

    async def recover(self: runs.Runs, run: Any) -> bool:
        self.background.begin(run.id, lambda: self.launch(run))
        return True

    patch.setattr(runs.Runs, "recover", recover)


def forget_the_claim(patch: Patch) -> None:
    """An agent that is running gets a second run."""
    make = runs.Claim.make

    def careless(self: runs.Claim, store: Any) -> Any:
        return make(self, Blind(store))

    patch.setattr(runs.Claim, "make", careless)
    patch.setattr("windlass.core.policy.decide_wake", lambda *_, **__: policy.Wake())


class Blind:
    """A store that does not say which runs there are."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def runs_of(self, agent: str) -> list[Any]:
        return [replace(each, outcome="done") for each in self._store.runs_of(agent)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def start_twice(patch: Patch) -> None:
    """A start that is under way is begun again, and nobody looks whether it is needed any more."""

    async def launch(self: runs.Runs, run: Any) -> None:
        try:
            given = await self.store.read(lambda store: runs._assignment(store, run))
            place = await self.setup.place(run, given.site)
            identity = await self.processes.start(await self._prepare(run, given, place))
        except BadInput as error:
            await self._could_not_start(run, str(error))
        else:
            await self._began(replace(run, identity=identity, base=place.base))

    patch.setattr(runs.Runs, "launch", launch)
    patch.setattr(background.Background, "busy", lambda *_: False)


def deliver_twice(patch: Patch) -> None:
    """What a run was told is told to the next one again."""

    def record(judged: Any, verdict: Any, ending: Any, now: float, store: Any) -> Any:
        return finish_record(judged, verdict, ending, now, Forgetful(store))

    finish_record = judge.record
    patch.setattr(judge, "record", record)


class Forgetful:
    """A store that knows of no delivery a run has carried."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def deliveries_of(self, run: str) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def ignore_limits(patch: Patch) -> None:
    """There is always a slot."""
    patch.setattr(slots.Slots, "fits", lambda *_, **__: True)


def lose_mail(patch: Patch) -> None:
    """Mail counts as read although the run that carried it crashed."""
    seen = judge.record

    def record(judged: Any, verdict: Any, ending: Any, now: float, store: Any) -> Any:
        result = seen(judged, verdict, ending, now, store)
        for delivery in store.undelivered(reader=judged.agent):
            store.record("message.dropped", judged.agent, delivery.move(Receipt.READ, run=judged.id))
        return result

    patch.setattr(judge, "record", record)


def lose_a_refused_change(patch: Patch) -> None:
    """The author of a refused change is not told."""
    patch.setattr(gate_record, "tell_agent", lambda *_, **__: None)


def object_to_nothing(patch: Patch) -> None:
    """The gate does not ask what was said about a change."""
    patch.setattr(reviews.Reviews, "objection_to", lambda *_: "")


def forget_to_pass_on(patch: Patch) -> None:
    """A review whose comments are all settled waits for ever."""
    patch.setattr(facts, "settled", lambda _: [])


def miss_the_last_words(patch: Patch) -> None:
    """What a process said just before it ended is not read."""
    take = output_intake.Intake.take

    async def once(self: output_intake.Intake, run: Any, tail: Any, **named: Any) -> bool:
        lives = run.identity is not None and bool(await self.processes.alive(run.identity))
        return await take(self, run, tail, **named) if lives else True

    patch.setattr(output_intake.Intake, "take", once)


def ignore_stop(patch: Patch) -> None:
    """A process that was asked to stop is left alone."""
    over = watch.Watch._is_over

    async def is_over(self: watch.Watch, run: Any, tail: Any) -> bool:
        return await over(self, replace(run, stopping=""), tail)

    patch.setattr(watch.Watch, "_is_over", is_over)


def ignore_needs(patch: Patch) -> None:
    """A task begins before what it needs is done."""
    patch.setattr(MemoryReading, "_met", lambda *_: True)


def tidy_too_much(patch: Patch) -> None:
    """The worktree of a task that was given up is removed at once."""
    finished = tidy._finished

    def over(task: Any, now: float) -> bool:
        return bool(task.ended)

    patch.setattr(tidy, "_is_over", over)
    patch.setattr(tidy, "_finished", lambda store, now: [replace(each, landed=True) for each in finished(store, now)])


def let_a_question_hang(patch: Patch) -> None:
    """An answer is kept, and wakes nobody."""

    def silent(store: Any, **given: Any) -> Any:
        return real_say(store, **given | ({"to": ("human",)} if given["sender"] == "human" else {}))

    patch.setattr(log, "say", silent)


def act_before_commit(patch: Patch) -> None:
    """The process is started before its intent is written down."""

    async def start(self: runs.Runs, agent: Any, task: Any, cause: Any, *, mail: Any = (), session: str = "") -> None:
        claim = runs.Claim(
            agent=agent,
            task=task.id,
            cause=cause,
            mail=tuple(mail),
            session=session,
            sandbox="",
            now=0.0,
            fits=partial(self.slots.fits, gone=frozenset()),
        )
        run = await self.store.write(lambda store: store.next_id(Run))
        await self.processes.start(Launch(run=run, argv=("x",), cwd=agent.id, environment={}))
        await asyncio.sleep(0)
        await self.store.write(claim.make)

    patch.setattr(runs.Runs, "start", start)


MUTANTS: dict[Callable[[Patch], None], str] = {
    forget_to_adopt: r"I9: r\d+ was started in .*, where r\d+ lives",
    forget_the_claim: r"I6: agent .* has r\d+ and r\d+ alive|I9: r\d+ was started in .*, where r\d+ lives",
    start_twice: r"(I9: r\d+ (was started in .*, where r\d+ lives|lives, and its run has ended)|trouble in start: )",
    deliver_twice: r"I4|end: r\d+ is live",
    ignore_limits: r"limits: r\d+ was started beside \d others",
    lose_mail: r"rest: t\d+ of .* is active for ever",
    lose_a_refused_change: r"rest: t\d+ of .* is active for ever|end: t\d+ is active",
    miss_the_last_words: r"I5: r\d+: its file has more",
    ignore_stop: r"rest: r\d+ of .* should be over",
    ignore_needs: r"I7: t\d+ is active, although t\d+, which it needs, is not done",
    tidy_too_much: r"I10",
    let_a_question_hang: r"rest: t\d+ of .* is waiting for ever|end: t\d+ is waiting",
    act_before_commit: r"I9: r\d+ was started, and is not to live",
}
"""Ways to break an engine, and what is said about each."""

ARRANGED_MUTANTS: dict[Callable[[Patch], None], str] = {
    object_to_nothing: r"line: c\d+ lands, although m\d+ blocks it",
    forget_to_pass_on: r"rest: t\d+ of .* is waiting for ever|end: t\d+ is waiting",
}
"""The same where people arrange the line and agents review."""

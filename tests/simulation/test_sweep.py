"""Each tick is woken by events; that it also looks at everything from time to time is a net that catches nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest
from sim_acts import RULES
from sim_play import STEPS, Play, quiet
from sim_world import World

import sample
import windlass.engine
from windlass.core.nouns.event import Event
from windlass.engine import Engine, Rhythm, Tick

SWEEPS = ("dispatch", "deliver", "tidy", "workflows")
"""The ticks that events wake, and that have nothing to do with time but as a net."""
A_WHILE = 1.0
"""Seconds in which all that was rung for is done."""
NEVER = 1e9
TOLD_LATER = "daemon.troubled"
"""What went wrong is shown at once, and kept when the next tick comes by."""


@pytest.fixture
def only_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Daemons whose ticks wait for an event, however long that takes."""

    def rhythm(tick: Tick, every: float, ear: asyncio.Event) -> Rhythm:
        return Rhythm(tick, NEVER if every >= 30.0 else every, ear)

    monkeypatch.setattr(windlass.engine, "Rhythm", rhythm)


class Sweep:
    """Looks at everything, and notes what it finds to write. What others write meanwhile is theirs."""

    def __init__(self, world: World) -> None:
        self.found: list[str] = []
        self.own: asyncio.Task[object] | None = None
        world.store.follow(self._hear)

    async def all(self, engine: Engine) -> None:
        self.own = asyncio.current_task()
        for name in SWEEPS:
            await engine.ticks[name].tick()
        self.own = None

    def _hear(self, events: Sequence[Event]) -> None:
        if self.own is not None and asyncio.current_task() is self.own:
            self.found += [f"{event.kind} {event.subject}" for event in events if event.kind != TOLD_LATER]


def is_unsettled(world: World, engine: Engine) -> bool:
    """Whether a sweep may find something: a process has gone, and frees its slot before its run is judged; or a tick
    had trouble, and tries again."""
    live = {run.id for run in world.now.live_runs()}
    ending = any(each.launch.run in live and not each.alive for each in world.processes.started.values())
    return ending or any(trouble.tick in SWEEPS for trouble in engine.troubles.all())


@pytest.mark.usefixtures("only_rung")
@pytest.mark.parametrize("seed", range(100 if sample.long() else 25))
def test_a_sweep_finds_nothing_that_the_events_missed(seed: int) -> None:
    """Whenever all is quiet in a random history, a look at everything writes nothing."""
    made = Play(seed, {name: rule for name, rule in RULES.items() if name != "jump"})
    sweep = Sweep(made.world)
    try:
        with quiet():
            for _ in range(STEPS):
                made.take(made.draw())
                made.world.wait(A_WHILE)
                if engine := made.world.engine:
                    with suppress(asyncio.CancelledError):  # the daemon died at it
                        made.world.turn_with(sweep.all(engine))
                    if not is_unsettled(made.world, engine):
                        assert not sweep.found, (made.steps[-1], len(made.steps))
                sweep.found.clear()
    finally:
        made.close()

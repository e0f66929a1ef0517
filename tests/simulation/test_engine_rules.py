"""The same acts as rules of a Hypothesis state machine, which looks for the shortest history that breaks a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from sim_acts import RULES
from sim_draws import Rule
from sim_mutants import act_before_commit
from sim_play import STEPS, TURNS, Play, Step, quiet
from sim_talk import TALKED

import sample

NUMBERS = st.integers(0, 99)
SETTINGS = settings(
    max_examples=40 if sample.long() else 15,
    stateful_step_count=STEPS,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Machine(RuleBasedStateMachine):
    """One history: an act at a time, each checked; left alone and brought to its end when no act follows."""

    acts: Mapping[str, Rule] = RULES
    play: Play | None = None
    broken = False

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        self.play = Play(seed, self.acts)

    def take(self, step: Step) -> None:
        assert self.play is not None
        with self._judged():
            self.play.take(step)

    def teardown(self) -> None:
        if self.play is None:
            return
        try:
            if not self.broken:
                with self._judged():
                    self.play.end()
        finally:
            self.play.close()

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """A broken history is not played to its end."""
        try:
            with quiet():
                yield
        except BaseException:
            self.broken = True
            raise


def _rule(name: str) -> Callable[..., None]:
    def take(self: Machine, which: int, how: int, turns: int) -> None:
        self.take(Step(name, which, how, turns))

    def fits(self: Machine) -> bool:
        return self.play is not None and self.acts[name].fits(self.play.world)

    take.__name__ = name
    made: Callable[..., None] = rule(which=NUMBERS, how=NUMBERS, turns=st.sampled_from(TURNS))(take)
    return precondition(fits)(made)


EngineMachine: type[Machine] = type("EngineMachine", (Machine,), {name: _rule(name) for name in RULES})
TalkMachine: type[Machine] = type("TalkMachine", (Machine,), {name: _rule(name) for name in TALKED} | {"acts": TALKED})


def test_no_rule_breaks_a_promise() -> None:
    """Whatever is done in whichever order, every promise holds, and everything comes to its end."""
    run_state_machine_as_test(EngineMachine, settings=SETTINGS)


def test_nothing_said_is_lost_doubled_or_out_of_order() -> None:
    """Whoever says, reads, peeks or acknowledges whatever, and wherever the daemon dies: I4 holds."""
    run_state_machine_as_test(TalkMachine, settings=SETTINGS)


def test_the_machine_finds_a_broken_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that acts before it has written down what it is about to do does not get past it."""
    act_before_commit(monkeypatch)
    with pytest.raises(AssertionError, match="I9"):
        run_state_machine_as_test(EngineMachine, settings=settings(SETTINGS, phases=[Phase.generate]))

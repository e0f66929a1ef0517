"""One seed, one history: acts drawn with their weights, checked after each, left alone, and brought to an end."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

from sim_acts import MEDDLING, RULES
from sim_draws import Rule
from sim_oracle import Oracle
from sim_world import World

STEPS = 30
TURNS = (0, 1, 3, 8, 20, 60, 150)


@dataclass(frozen=True)
class Step:
    """One act, and how many turns of the loop it is given before the next."""

    name: str
    which: int
    how: int
    turns: int

    def __str__(self) -> str:
        return f"{self.name}({self.which}, {self.how}), then {self.turns} turns"


class Play:
    """A world and its judge."""

    def __init__(self, seed: int, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.names, self.weights = list(rules), list(accumulate(rule.weight for rule in rules.values()))
        self.chance = random.Random(seed)
        self.world = World(self.chance)
        self.oracle = Oracle(self.world)
        self.world.strain.meddle = self._meddle
        self.steps: list[Step] = []

    def draw(self) -> Step:
        chance = self.chance
        name = ""
        while not name or not self.rules[name].fits(self.world):
            name = chance.choices(self.names, cum_weights=self.weights)[0]
        return Step(name, chance.randrange(100), chance.randrange(100), chance.choice(TURNS))

    def take(self, step: Step) -> None:
        """Act, go on for a while, and look."""
        self.steps.append(step)
        self.rules[step.name].act(self.world, step.which, step.how)
        self.world.turn(step.turns)
        self.oracle.check()

    def end(self) -> None:
        """Leave everything alone, then bring it to its end."""
        self.oracle.rest()
        self.oracle.drain()

    def close(self) -> None:
        self.world.close()

    def _meddle(self) -> None:
        chance = self.world.strain.chance
        chance.choice(MEDDLING)(self.world, chance.randrange(100), chance.randrange(100))


@contextmanager
def quiet() -> Iterator[None]:
    """What goes wrong here is meant to; nobody needs to read of it."""
    log = logging.getLogger("windlass")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def play(seed: int, *, steps: int = STEPS, tell: bool = False, rules: Mapping[str, Rule] = RULES) -> Play:
    """One whole history. What it found is raised, with the seed that shows it again."""
    made = Play(seed, rules)
    try:
        with quiet():
            for _ in range(steps):
                step = made.draw()
                if tell:
                    print(step)  # noqa: T201 - a person has asked for it
                made.take(step)
            made.end()
    except BaseException as error:
        error.add_note(f"WINDLASS_SIMULATION_SEED={seed} shows it again, step {len(made.steps)} of {steps}.")
        raise
    finally:
        made.close()
    return made

"""What presses on the gate: many changes at once, second thoughts, a red main, and a daemon that dies there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sim_acts import linger, work
from sim_agents import finish
from sim_draws import NAMES, Rule, _has_agents, _ignore, _is_up, _pick
from sim_losses import BY_HAND
from sim_people import ARRANGED
from sim_world import World

from windlass.core.nouns.change import ChangeState
from windlass.engine import Engine
from windlass.engine.gate.record import IN_QUEUE

AT_THE_GATE = ("git.land.move", "git.land.moved", "git.land.after", "git.landed.after", "checks.run.after")
"""Places between a test and its record where a daemon dies."""

MOMENTS = ("git.land.before", "git.land.move", "git.main.after", "git.stage.after", "checks.run.after")
"""Places of the gate where people think again."""
SECONDS = 3.5
"""How long a test takes at most."""


def order(world: World, which: int, how: int) -> None:
    """Order several things at once, for as many agents as there may be."""
    world.settings.limit(4)
    for number in range(2 + which % 3):
        work(world, 1 + number, how)


def bring(world: World, which: int, how: int) -> None:
    """All who work finish, most of them well, each in a file of its own."""
    for count, _ in enumerate(world.living()):
        finish(world, 0, 4 * (how + count) + (which + count) % len(NAMES))


def regret(world: World, which: int, how: int) -> None:
    """Give up what is being tested."""
    tested = [change.agent for change in world.now.changes() if change.state is ChangeState.TESTING and change.agent]
    if name := _pick(tested, which):
        world.call("regret", lambda engine: engine.changes.withdraw(name, "regretted"), _ignore)


def think_again(world: World, which: int, how: int) -> None:
    """Drop, hold or halt all that is tested, just when the gate is at a certain place."""
    acts = (partial(_all, "drop"), partial(_all, "hold"), ARRANGED["halt"].act)
    world.strain.moment = MOMENTS[how % len(MOMENTS)]
    world.strain.thought = lambda: acts[which % len(acts)](world, which, how)
    world.wait(SECONDS)


def _all(verb: str, world: World, which: int, how: int) -> None:
    """Say the same about each change that is being tested."""
    for name in (change.id for change in world.now.changes() if change.state is ChangeState.TESTING):
        world.call(verb, partial(_said, verb, name), _ignore)


async def _said(verb: str, change: str, engine: Engine) -> None:
    await getattr(engine.queue, verb)(change, BY_HAND)


def redden(world: World, which: int, how: int) -> None:
    """Break main by hand."""
    world.repositories[0].commit({NAMES[how % len(NAMES)]: f"bad by hand {world.number()}\n"})


def die_landing(world: World, which: int, how: int) -> None:
    """Let the daemon die when it next comes to the gate."""
    world.strain.target = AT_THE_GATE[which % len(AT_THE_GATE)]
    world.wait(SECONDS)


def enter_many(world: World, which: int, how: int) -> None:
    """Put two branches of one's own into the line."""
    for number in range(2):
        ARRANGED["enter"].act(world, which + number, how + number)


def _has_line(world: World) -> bool:
    return _is_up(world) and any(change.state in IN_QUEUE for change in world.now.changes())


PRESSED: dict[str, Rule] = {name: replace(each, weight=(each.weight + 3) // 4) for name, each in ARRANGED.items()} | {
    "order": Rule(order, 8, _is_up),
    "bring": Rule(bring, 16, _has_agents),
    "enter_many": Rule(enter_many, 4, _is_up),
    "regret": Rule(regret, 3, _has_line),
    "think_again": Rule(think_again, 24, _has_line),
    "redden": Rule(redden, 2),
    "die_landing": Rule(die_landing, 8, _has_line),
    "linger": Rule(linger, 8),
    "boot": ARRANGED["boot"],
}
"""All acts, but most of all those that press on the gate."""

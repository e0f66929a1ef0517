"""What acts are drawn from: names, words and texts, whom they are done to, and when they make sense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sim_world import World

from windlass.core.nouns.agent import Agent

T = TypeVar("T")

Act = Callable[[World, int, int], None]

NAMES = ("a", "b", "c", "d")

SIGNALS = (
    '{"status": "done", "result": "It is done."}',
    '{"status": "questions", "questions": [{"id": "q1", "question": "Which one?"}]}',
    '{"status": "error", "error": "It is too hard."}',
    '{"status": "done"',
    "[]",
    "",
    '{"status": "asleep"}',
)

WORDS = (b"half a li", b"ne\n", b"session s1\n", b"cost 1\n", b"result fine\n", b"\xff\xfe\x00\r\n", b"x" * 300)

TEXTS = ("good", "good", "good", "bad", "odd")

DONE = SIGNALS[0]


def _pick(found: Sequence[T], which: int) -> T | None:
    return found[which % len(found)] if found else None


def _ignore(result: Any) -> None:
    del result


def _agents(world: World) -> list[Agent]:
    return [*world.now.agents(), *world.now.agents(retired=True)]


def _always(world: World) -> bool:
    return True


def _is_up(world: World) -> bool:
    return world.life is not None


def _is_down(world: World) -> bool:
    return world.life is None


def _has_agents(world: World) -> bool:
    return bool(world.living())


def _has_landed(world: World) -> bool:
    return _is_up(world) and bool(world.witness.landed)


def _has_past(world: World) -> bool:
    return _is_up(world) and bool(world.now.page(Agent, after=0, limit=1))


@dataclass(frozen=True)
class Rule:
    """An act, how often it is drawn, and whether it makes sense now."""

    act: Act
    weight: int
    fits: Callable[[World], bool] = _always

"""When the bell may be rung."""

from __future__ import annotations

import ast
import asyncio
import time
from pathlib import Path

import patience
import windlass.engine
from windlass.core.nouns.event import Event
from windlass.engine.bell import Bell

ENGINE = Path(windlass.engine.__file__).parent


def within_transactions() -> list[ast.FunctionDef]:
    """Every function that writes, and so runs within a transaction, in the writer's thread."""
    trees = (ast.parse(path.read_text(), path.name) for path in sorted(ENGINE.rglob("*.py")))
    found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [each for each in found if any("Writing" in ast.dump(given) for given in each.args.args)]


def test_it_is_never_rung_before_the_commit() -> None:
    """Who hears it and looks at once would see nothing new, and would not be called again."""
    functions = within_transactions()
    assert len(functions) > 50
    rings = ("ring", "hear", "ring_in")
    assert [
        function.name for function in functions for at in ast.walk(function) if getattr(at, "attr", "") in rings
    ] == []


def an_event(kind: str, channel: str = "") -> Event:
    became = ({"noun": "message", "channel": channel},) if channel else ()
    return Event(seq=1, time=1.0, kind=kind, subject="x", became=became)


def test_an_event_wakes_those_it_is_for() -> None:
    """By how its kind begins, and of a message by its channel; output wakes only those who read along."""
    bell = Bell()
    ears = {
        "all": bell.ear(),
        "runs": bell.ear("run.", "task."),
        "reviews": bell.ear("message.sent change/"),
        "output": bell.ear(output=True),
    }

    def woken(*events: Event) -> set[str]:
        bell.hear(events)
        found = {name for name, ear in ears.items() if ear.is_set()}
        for ear in ears.values():
            ear.clear()
        return found

    assert woken(an_event("run.started")) == {"all", "runs", "output"}
    assert woken(an_event("message.sent", "main")) == {"all", "output"}
    said, reviewed = an_event("message.sent", "main"), an_event("message.sent", "change/c1")
    assert woken(said, reviewed) == {"all", "reviews", "output"}
    assert woken(an_event("run.output")) == {"output"}
    bell.ring()
    assert all(ear.is_set() for ear in ears.values())


def test_a_wish_that_is_due_is_not_put_off_by_a_later_one() -> None:
    """The loop was busy when the time came: who asks for a later ring must not take this one away."""

    async def story() -> None:
        bell = Bell()
        ear = bell.ear()
        bell.ring_in(0.001)
        time.sleep(0.01)  # noqa: ASYNC251  this is the busy loop
        bell.ring_in(3600.0)
        async with asyncio.timeout(patience.seconds(10)):
            await ear.wait()

    asyncio.run(story())


def test_after_a_ring_the_next_wish_counts() -> None:
    """A wish that was fulfilled stands in nobody's way."""

    async def story() -> None:
        bell = Bell()
        ear = bell.ear()
        for _ in range(2):
            bell.ring_in(0.001)
            async with asyncio.timeout(patience.seconds(10)):
                await ear.wait()
            ear.clear()

    asyncio.run(story())

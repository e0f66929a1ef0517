"""When the bell may be rung."""

from __future__ import annotations

import ast
import asyncio
import time
from pathlib import Path

import patience
import windlass.engine
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
    rings = ("ring", "ring_after", "ring_in")
    assert [
        function.name for function in functions for at in ast.walk(function) if getattr(at, "attr", "") in rings
    ] == []


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

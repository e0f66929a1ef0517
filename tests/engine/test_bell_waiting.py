"""Waiting for the bell: look now, look again at each ring, and never longer than one has patience."""

from __future__ import annotations

import asyncio

from windlass.engine.bell import Bell


class TestUntil:
    def test_a_look_that_has_found_something_waits_for_nothing(self) -> None:
        """A caller without any patience still gets the first look."""

        async def story() -> None:
            async def look() -> str:
                return "there"

            assert await Bell().until(look, bool, patience=0) == "there"

        asyncio.run(story())

    def test_each_ring_is_a_reason_to_look_again(self) -> None:
        """A ring while the look is under way is not lost."""

        async def story() -> None:
            bell, looks = Bell(), [0]

            async def look() -> int:
                looks[0] += 1
                if looks[0] < 3:
                    bell.ring()
                return looks[0]

            assert await bell.until(look, lambda seen: seen == 3, patience=30) == 3

        asyncio.run(story())

    def test_the_last_look_is_returned_when_the_time_is_over(self) -> None:
        """Nothing was found: the caller gets what was seen last."""

        async def story() -> None:
            async def look() -> list[str]:
                return []

            assert await Bell().until(look, bool, patience=0.01) == []

        asyncio.run(story())


class TestRings:
    def test_a_silent_bell_ends_the_rings_after_one_more(self) -> None:
        """Whoever follows looks a last time when the daemon leaves, and is then let go."""

        async def story() -> None:
            bell, looks = Bell(), 0
            async for _ in bell.rings():
                looks += 1
                if looks == 1:
                    bell.fall_silent()
            assert looks == 1

            async for _ in bell.rings():
                looks += 1
            assert looks == 2

        asyncio.run(story())

    def test_time_passes_for_a_ring(self) -> None:
        """A caller that looks every so often needs nobody to ring."""

        async def story() -> None:
            bell, looks = Bell(), 0
            async for _ in bell.rings(every=0.001):
                looks += 1
                if looks == 3:
                    break
            assert looks == 3

        asyncio.run(story())

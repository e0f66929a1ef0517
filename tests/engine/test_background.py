"""Work beside a tick: once per key, again when asked for meanwhile, and broken off at the end."""

from __future__ import annotations

import asyncio

from stage import SetClock, play

import patience
from windlass.engine.background import Background
from windlass.engine.bell import Bell
from windlass.engine.troubles import Troubles


class TestClosing:
    def test_work_that_never_had_its_turn_keeps_nobody_waiting(self) -> None:
        """A daemon leaves also when something was begun at the very last moment."""

        async def story() -> None:
            background = Background("start", Troubles(SetClock(), Bell()), at_once=1)
            background.begin("r1", lambda: asyncio.sleep(0))
            async with asyncio.timeout(patience.seconds(5)):
                await background.close()
            assert not background.busy("r1")

        play(story)

    def test_what_is_asked_for_while_it_is_done_is_done_once_more(self) -> None:
        """Two more requests during the work are one more piece of work."""

        async def story() -> None:
            background, done = Background("watch", Troubles(SetClock(), Bell()), at_once=1), 0

            async def work() -> None:
                nonlocal done
                done += 1
                await asyncio.sleep(0)

            for _ in range(3):
                background.begin("r1", work)
            await background.settle()
            assert (done, background.busy("r1")) == (2, False)

        play(story)

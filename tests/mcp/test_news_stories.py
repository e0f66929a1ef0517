"""Who hears of news over MCP, and for how long: as long as their run lives, and no more than so many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from stage import SetClock, play
from talk_room import Room

import patience
from fakes.store import MemoryStore
from windlass.core.errors import Unavailable
from windlass.core.nouns.message import Message
from windlass.core.ports.store import Reading
from windlass.mcp.notifier import Listener, Notifier

T = TypeVar("T")


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


async def begun(room: Room) -> str:
    """An agent at work; returns its run."""
    await room.begin("coder")
    await room.send(to=("coder",), body="Begin.")
    await room.move()
    return (await room.run_of("coder")).id


async def until(ended: asyncio.Event) -> None:
    async with asyncio.timeout(patience.seconds(10)):
        await ended.wait()


def test_who_listens_is_let_go_when_its_run_ends(room: Room) -> None:
    """Without a message to it, and without a goodbye; others listen on."""

    async def story() -> None:
        run = await begun(room)
        news, over, on = Notifier(room.engine), asyncio.Event(), asyncio.Event()

        async def tell(_message: Message) -> None:
            """Nothing is said to it."""

        coder = Listener(reader="coder", run=run, tell=tell, end=over.set)
        person = Listener(reader="human", run="", tell=tell, end=on.set)
        for each in (coder, person):
            await news.add(each)
        await room.signal("coder")
        await room.exit("coder")
        await room.move()
        await until(over)
        assert not news.has(coder) and news.has(person) and not on.is_set()
        await news.close()
        assert not on.is_set(), "it goes on with the next daemon"

    play(story)


def test_one_who_leaves_with_an_error_keeps_the_news_from_nobody_else(room: Room) -> None:
    """It is told no more, and those behind it are told."""

    async def story() -> None:
        run = await begun(room)
        news, heard = Notifier(room.engine), asyncio.Event()

        async def refuse(_message: Message) -> None:
            raise ConnectionError

        def fail() -> None:
            raise RuntimeError("It has left before.")

        async def hear(_message: Message) -> None:
            heard.set()

        gone = Listener(reader="coder", run=run, tell=refuse, end=fail)
        other = Listener(reader="coder", run=run, tell=hear, end=heard.clear)
        for each in (gone, other):
            await news.add(each)
        await room.send(to=("coder",), body="Both of you.")
        room.engine.bell.ring()
        await until(heard)
        assert (news.has(gone), news.has(other)) == (False, True)
        await news.close()

    play(story)


class FailingStore(MemoryStore):
    """A store that can't be read for a while."""

    failures = 0

    async def read(self, question: Callable[[Reading], T], /) -> T:
        if self.failures:
            self.failures -= 1
            raise Unavailable("The disk does not answer.")
        return await super().read(question)


def test_who_could_not_be_told_is_told_when_the_store_is_back(repo: Path, tmp_path: Path) -> None:
    """Once each, and without another message."""
    store = FailingStore(SetClock())
    room = Room(repo, tmp_path / "home", store=store)

    async def story() -> None:
        run = await begun(room)
        news, sent, heard = Notifier(room.engine), asyncio.Event(), asyncio.Event()
        told: list[str] = []

        async def break_it(message: Message) -> None:
            await sent.wait()  # so that it is the news that meet the fault
            told.append(f"one {message.body}")
            store.failures = 3

        async def hear(message: Message) -> None:
            told.append(f"two {message.body}")
            heard.set()

        for tell, key in ((break_it, ""), (hear, run)):
            await news.add(Listener(reader="coder", run=key, tell=tell, end=heard.clear))
        await room.send(to=("coder",), body="Both of you.")
        room.engine.bell.ring()
        sent.set()
        await until(heard)
        assert told == ["one Both of you.", "two Both of you."]
        await news.close()

    play(story)

"""What every implementation of the `Processes` port promises: the real one, moved by shell programs, and the fake."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path

import pytest
from process_stages import NO_PROGRAM, STAGES, Stage

import patience
from fakes import FakeProcesses
from fakes.store import MemoryStore
from windlass.core.errors import BadInput
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch, Processes
from windlass.daemon.clock import SystemClock

DEADLINE = patience.seconds(20)


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A port, which must have left no process when the test is over."""
    made = STAGES[request.param](tmp_path)
    yield made
    made.close()


class Ear:
    """Hears stirs, and waits for what they announce."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._event = asyncio.Event()

    def __call__(self, run: str) -> None:
        self.heard.append(run)
        self._event.set()

    async def until(self, condition: Callable[[], bool | Awaitable[bool]]) -> None:
        """Look after each stir, and only then: a stir that does not come is a failure."""
        async with asyncio.timeout(DEADLINE):
            while not (await found if isawaitable(found := condition()) else found):
                await self._event.wait()
                self._event.clear()


async def gone(port: Processes, identity: Identity) -> bool:
    return not await port.alive(identity)


async def said(port: Processes, run: str, words: bytes) -> bool:
    return await port.output(run, 0, 100) == words


def play(stage: Stage, story: Callable[[Processes], Awaitable[None]]) -> None:
    """Run one story; whatever it started is ended after it."""

    async def whole() -> None:
        try:
            await story(stage.port)
        finally:
            for run in ("r1", "r2"):
                stage.port.forget(run)
                await stage.port.stop(run, None, grace=0)

    asyncio.run(whole())


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_known_once_the_process_has_gone(stage: Stage, code: int) -> None:
    """A process that ends tells how, and is not alive any more."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        assert await port.alive(identity)
        assert await port.exit_code("r1") is None
        ear = Ear()
        port.follow("r1", identity, ear)

        stage.exit("r1", code)

        await ear.until(lambda: gone(port, identity))
        assert await port.exit_code("r1") == code

    play(stage, story)


def test_a_process_that_vanishes_leaves_no_exit_code(stage: Stage) -> None:
    """Who is killed together with its shim can't tell how it ended; that it has gone is known all the same."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        ear = Ear()
        port.follow("r1", identity, ear)

        stage.vanish("r1", identity)

        await ear.until(lambda: gone(port, identity))
        assert await port.exit_code("r1") is None

    play(stage, story)


def test_output_is_stirred_and_read_from_any_offset(stage: Stage) -> None:
    """What a process says is announced, and can be read in pieces, byte by byte the same."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        ear = Ear()
        port.follow("r1", identity, ear)

        stage.say("r1", b"one \xff\x00 ")
        stage.say("r1", b"two\r\n")

        await ear.until(lambda: ear.heard != [] and said(port, "r1", b"one \xff\x00 two\r\n"))
        assert await port.output("r1", 4, 2) == b"\xff\x00"
        assert await port.output("r1", 100, 10) == b""
        assert set(ear.heard) == {"r1"}

    play(stage, story)


def test_output_with_a_second_name_is_known_and_never_overwritten(stage: Stage) -> None:
    """It may be someone else's file that was put into its place."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        ear = Ear()
        port.follow("r1", identity, ear)
        stage.say("r1", b"a secret\n")
        await ear.until(lambda: said(port, "r1", b"a secret\n"))
        assert not await port.output_shared("r1") and not await port.output_shared("r2")
        await port.overwrite("r1", 2, b"s*****")
        stage.share("r1")
        await port.overwrite("r1", 0, b"*")
        assert await port.output_shared("r1")
        assert await port.output("r1", 0, 100) == b"a s*****\n"

    play(stage, story)


def test_output_is_dropped_only_whole_and_when_nobody_has_it(stage: Stage) -> None:
    """Not while a process may write, not with more or fewer bytes than are known, not a file with a second name."""

    async def story(port: Processes) -> None:
        for run, shared in (("r1", False), ("r2", True)):
            identity = await port.start(stage.launch(run))
            ear = Ear()
            port.follow(run, identity, ear)
            stage.say(run, b"words\n")
            await ear.until(lambda run=run: said(port, run, b"words\n"))  # type: ignore[misc]  # mypy can't infer a lambda with defaults
            assert not await port.drop_output(run, 6)
            stage.exit(run, 0)
            await ear.until(lambda identity=identity: gone(port, identity))  # type: ignore[misc]  # mypy can't infer a lambda with defaults
            if shared:
                stage.share(run)
            assert not await port.drop_output(run, 5) and not await port.drop_output(run, 7)
            assert await said(port, run, b"words\n")
            assert await port.drop_output(run, 6) is not shared
            assert await said(port, run, b"words\n") is shared
            assert not await port.drop_output(run, 6)
        assert not await port.drop_output("r3", 6)

    play(stage, story)


def test_a_change_in_a_place_is_stirred_for_all_who_follow_a_run_there(stage: Stage, tmp_path: Path) -> None:
    """Also when one of them is forgotten; a place that is not there is no obstacle, and may never be heard of."""
    shared, own, missing = tmp_path / "shared", tmp_path / "own", tmp_path / "missing"
    shared.mkdir()
    own.mkdir()

    async def story(port: Processes) -> None:
        first, second = await port.start(stage.launch("r1")), await port.start(stage.launch("r2"))
        one, two = Ear(), Ear()
        port.follow("r1", first, one, str(shared), str(missing))
        port.follow("r2", second, two, str(shared), str(own))
        await one.until(lambda: bool(one.heard))
        await two.until(lambda: bool(two.heard))
        for ear in (one, two):
            ear.heard.clear()

        stage.touch(shared)
        await one.until(lambda: "r1" in one.heard)
        await two.until(lambda: "r2" in two.heard)

        port.forget("r1")
        for ear in (one, two):
            ear.heard.clear()
        stage.touch(own)
        await two.until(lambda: "r2" in two.heard)
        two.heard.clear()
        stage.touch(shared)
        await two.until(lambda: "r2" in two.heard)
        assert one.heard == []

    play(stage, story)


def test_following_what_has_already_gone_stirs_at_once(stage: Stage) -> None:
    """Nobody waits for news that came before they listened."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        first, second = Ear(), Ear()
        port.follow("r1", identity, first)
        stage.exit("r1", 3)
        await first.until(lambda: gone(port, identity))
        port.forget("r1")

        port.follow("r1", identity, second)

        await second.until(lambda: "r1" in second.heard)

    play(stage, story)


def test_a_forgotten_run_stirs_nobody(stage: Stage) -> None:
    """After `forget` there is silence, even for what was about to be told; another run is still heard."""

    async def story(port: Processes) -> None:
        first, second = await port.start(stage.launch("r1")), await port.start(stage.launch("r2"))
        deaf, ear = Ear(), Ear()
        port.follow("r1", first, deaf)
        port.forget("r1")
        port.follow("r2", second, ear)

        stage.say("r1", b"to nobody")
        stage.say("r2", b"to you")

        await ear.until(lambda: ear.heard != [] and said(port, "r2", b"to you"))
        assert deaf.heard == []

    play(stage, story)


def test_a_live_run_is_found_by_its_name(stage: Stage) -> None:
    """A process is found again as the very one that was started, and not when it has gone."""

    async def story(port: Processes) -> None:
        assert await port.find("r1") is None
        identity = await port.start(stage.launch("r1"))
        other = await port.start(stage.launch("r2"))

        assert await port.find("r1") == identity
        assert await port.find("r2") == other
        assert await port.find("r") is None
        await port.stop("r1", identity, grace=5)
        assert await port.find("r1") is None

    play(stage, story)


def test_a_living_process_of_a_run_that_is_over_is_a_stray(stage: Stage) -> None:
    """Those of the runs that are named are not, nor is what has gone."""

    async def story(port: Processes) -> None:
        first, second = await port.start(stage.launch("r1")), await port.start(stage.launch("r2"))
        assert await port.strays(["r1", "r2"]) == ()
        port.forget("r1")
        assert first.pid in await port.strays(["r2"])
        assert second.pid not in await port.strays(["r2"])

        await port.stop("r1", first, grace=0)

        assert await port.strays(["r2"]) == ()

    play(stage, story)


def test_stop_ends_the_run_and_no_other(stage: Stage) -> None:
    """A stopped run has gone when `stop` returns, with the code of a terminated one; a second stop ends nothing."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))
        other = await port.start(stage.launch("r2"))
        ear = Ear()
        port.follow("r1", identity, ear)

        assert await port.stop("r1", identity, grace=5) >= 1

        assert not await port.alive(identity)
        assert await port.exit_code("r1") == 143
        assert await port.alive(other)
        assert await port.stop("r1", identity, grace=5) == 0
        await ear.until(lambda: "r1" in ear.heard)

    play(stage, story)


def test_another_process_with_the_same_pid_is_not_alive(stage: Stage) -> None:
    """Only pid, start time and boot together make a process the same."""

    async def story(port: Processes) -> None:
        identity = await port.start(stage.launch("r1"))

        reused = Identity(identity.pid, identity.started + 1, identity.boot)
        rebooted = Identity(identity.pid, identity.started, "another boot")
        assert await port.alive(identity, reused, rebooted) == {identity}
        assert await port.alive(*(reused for _ in range(100)), identity) == {identity}, "many are asked for at once"
        assert await port.alive() == frozenset()

    play(stage, story)


def test_a_process_is_as_old_as_it_lives(stage: Stage) -> None:
    """Its age counts from its start and never backwards; nothing but time makes it older."""

    async def story(port: Processes) -> None:
        began = time.monotonic()
        identity = await port.start(stage.launch("r1"))
        ages = [await port.age(identity) for _ in range(3)]

        assert ages == sorted(ages)
        assert 0 <= ages[0] <= time.monotonic() - began + 0.1, "the kernel counts in hundredths"

    play(stage, story)


def test_a_second_start_keeps_what_was_said(stage: Stage) -> None:
    """The output goes on where it was, and the old exit code is not taken for the new one's."""

    async def story(port: Processes) -> None:
        first = await port.start(stage.launch("r1"))
        ear = Ear()
        port.follow("r1", first, ear)
        stage.say("r1", b"before ")
        await ear.until(lambda: said(port, "r1", b"before "))
        stage.exit("r1", 1)
        await ear.until(lambda: gone(port, first))

        second = await port.start(stage.launch("r1"))

        assert second != first
        assert await port.exit_code("r1") is None
        port.follow("r1", second, ear)
        stage.say("r1", b"after")
        await ear.until(lambda: said(port, "r1", b"before after"))

    play(stage, story)


def test_a_missing_program_is_refused(stage: Stage) -> None:
    """A program that is not there is bad input, and leaves nothing running."""

    async def story(port: Processes) -> None:
        launch = Launch(run="r1", argv=(NO_PROGRAM, "--help"), cwd="/", environment={})
        with pytest.raises(BadInput, match=NO_PROGRAM):
            await port.start(launch)

        assert await port.find("r1") is None

    play(stage, story)


def test_nothing_is_known_of_a_run_that_never_was(stage: Stage) -> None:
    """An unknown run has no output and no exit code; stopping it ends nothing."""

    async def story(port: Processes) -> None:
        assert await port.output("r9", 0, 10) == b""
        assert await port.exit_code("r9") is None
        assert await port.stop("r9", None, grace=1) == 0
        port.forget("r9")

    play(stage, story)


def test_no_question_fits_into_a_transaction() -> None:
    """A transaction is a plain function, so whatever is awaited can't be asked in it; two subscriptions are not."""
    plain = {name for name, method in vars(Processes).items() if not iscoroutinefunction(method)}
    assert {name for name in plain if not name.startswith("_")} == {"follow", "forget"}


def test_a_transaction_hands_no_question_out() -> None:
    """The store refuses an answer that would have to be awaited: it was asked for in the middle of a transaction."""
    store, processes = MemoryStore(SystemClock()), FakeProcesses()

    async def story() -> None:
        question = processes.alive()
        for ask in (store.read, store.write):
            with pytest.raises(AssertionError, match="a transaction returned"):
                _ = await ask(lambda _: question)
        question.close()

    asyncio.run(story())

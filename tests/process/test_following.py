"""Following real processes: many at once, and where the kernel tells nothing."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from process_stage import Stage, descriptors, play, until, when_gone
from test_detached import ourselves

import patience
from shortage import no_descriptors
from windlass.process.proc import is_alive, process
from windlass.process.run_folder import RunFolder


class TestMany:
    def test_a_hundred_starts_at_once_leave_the_loop_free(self, tmp_path: Path) -> None:
        """All succeed and end well, and meanwhile the loop has its turns."""

        async def story(stage: Stage) -> None:
            turns = 0

            async def watch() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0.001)
                    turns += 1

            watching = asyncio.create_task(watch())
            runs = [f"r{number}" for number in range(100)]
            identities = await asyncio.gather(*(stage.start(run, f"echo {run}") for run in runs))
            watching.cancel()
            codes = [await stage.ended(run, identity) for run, identity in zip(runs, identities, strict=True)]
            assert codes == [0] * 100
            assert [stage.said(run) for run in runs] == [f"{run}\n" for run in runs]
            assert turns > 20  # starting them on the loop itself would leave it one or two

        play(tmp_path, story)

    def test_fifty_runs_leave_no_descriptor_and_no_zombie(self, tmp_path: Path) -> None:
        """Once followed, ended and forgotten, a run costs nothing."""

        async def story(stage: Stage) -> None:
            async def live(run: str) -> int:
                identity = await stage.start(run, "echo hello")
                gone = asyncio.Event()
                stage.port.follow(run, identity, when_gone(identity, gone))
                await asyncio.wait_for(gone.wait(), patience.seconds(20))
                stage.port.forget(run)
                return identity.pid

            await live("warm-up")
            gc.collect()  # what earlier tests left open goes now, and not between the two looks
            before = descriptors()
            pids = await asyncio.gather(*(live(f"r{number}") for number in range(50)))
            assert descriptors() == before
            await asyncio.to_thread(patience.until, lambda: not any(map(process, pids)), "the last one to be reaped")
            stage.port.close()
            assert descriptors() < before

        play(tmp_path, story)

    def test_a_run_that_nobody_follows_is_reaped_too(self, tmp_path: Path) -> None:
        """The next start takes leave of children that have ended."""

        async def story(stage: Stage) -> None:
            first = await stage.start("r1", "true")
            assert await stage.ended("r1", first) == 0
            second = await stage.start("r2", "true")
            assert process(first.pid) is None
            await stage.ended("r2", second)

        play(tmp_path, story)


class TestFollow:
    def test_when_events_were_lost_all_are_stirred(self, tmp_path: Path) -> None:
        """After an overflow of the kernel's queue nobody's news is missed."""
        queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())

        async def story(stage: Stage) -> None:
            files = []
            heard: set[str] = set()
            for run in ("r1", "r2", "r3"):
                (tmp_path / "runs" / run).mkdir(parents=True)
                files.append((tmp_path / "runs" / run / "output").open("ab", buffering=0))
                stage.port.follow(run, ourselves(), heard.add)
            await until(lambda: len(heard) == 3)
            heard.clear()

            for _ in range(queue // 2 + 1):  # in turn: the same event twice would be merged
                files[0].write(b".")
                files[1].write(b".")
            files[2].write(b".")

            await until(lambda: len(heard) == 3)
            for file in files:
                file.close()

        play(tmp_path, story)

    def test_following_again_replaces_the_one_before(self, tmp_path: Path) -> None:
        """A run has one follower: the last."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", "echo hello")
            first: list[str] = []
            second: list[str] = []
            stage.port.follow("r1", identity, first.append)
            stage.port.follow("r1", identity, second.append)
            assert await stage.ended("r1", identity) == 0
            await until(lambda: second)
            assert first == []

        play(tmp_path, story)


class TestWithoutTheKernelsWord:
    def test_output_and_end_are_seen_when_no_descriptor_is_left_to_watch_them(self, tmp_path: Path) -> None:
        """Following falls back to looking, and still tells all."""

        async def story(stage: Stage) -> None:
            identity = await stage.start("r1", "while [ ! -e go ]; do sleep 0.02; done; echo gone; exit 4")
            stirs = []
            before = descriptors()
            with no_descriptors():
                stage.port.follow(
                    "r1", identity, lambda run: stirs.append(RunFolder.of(tmp_path / "runs", run).read_exit())
                )
            assert descriptors() == before
            (tmp_path / "go").touch()
            await until(lambda: 4 in stirs and not is_alive(identity))
            stage.port.forget("r1")
            assert stage.said("r1") == "gone\n"

        play(tmp_path, story)

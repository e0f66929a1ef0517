"""What the radar does about collisions: it tells agents, or holds tasks, if that is set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from radar_stage import LINES, RadarStage, with_line
from stage import play

from windlass.core.nouns.task import TaskState
from windlass.core.radar.collisions import Act
from windlass.core.settings.schema import RadarSettings


class TestTelling:
    def test_both_are_told_once_and_again_only_of_another_file(self, shared: Path, tmp_path: Path) -> None:
        """Not again for the same files, not after a restart, not when it comes and goes."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            one, other = await stage.begin("One", "Other")
            for name in (one, other):
                await stage.write(name, "shared.txt", with_line(5, name))
            await stage.pass_time(4)
            for reader, about in ((one, other), (other, one)):
                (note,) = await stage.told(reader)
                assert about in note.body and "shared.txt" in note.body
            await stage.write(one, "shared.txt", "".join(LINES))
            await stage.pass_time(3)
            await stage.write(one, "shared.txt", with_line(5, "back"))
            await stage.pass_time(3)
            await stage.restart()
            await stage.pass_time(4)
            assert len(await stage.told(one)) == len(await stage.told(other)) == 1
            for name in (one, other):
                await stage.write(name, "second.txt", f"{name}\n")
            await stage.pass_time(4)
            assert len(await stage.told(one)) == len(await stage.told(other)) == 2

        play(story)

    def test_an_overlap_that_merges_is_not_worth_a_message(self, shared: Path, tmp_path: Path) -> None:
        """Only a conflict is."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            one, other = await stage.begin("One", "Other")
            await stage.write(one, "shared.txt", with_line(2, "mine"))
            await stage.write(other, "shared.txt", with_line(25, "theirs"))
            await stage.pass_time(4)
            assert await stage.told(one) == await stage.told(other) == []

        play(story)

    def test_one_that_is_not_running_is_left_alone(self, shared: Path, tmp_path: Path) -> None:
        """A question to a person stays open: only the one that is at it is told."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            one, other = await stage.begin("One", "Other")
            await stage.write(one, "shared.txt", with_line(5, "mine"))
            await stage.signal(one, '{"status": "questions", "questions": ["Which?"]}')
            await stage.exit(one)
            await stage.move()
            await stage.write(other, "shared.txt", with_line(5, "theirs"))
            await stage.pass_time(4)
            assert len(await stage.told(other)) == 1
            assert await stage.told(one) == []
            assert (await stage.task_of(one)).state is TaskState.WAITING

        play(story)


class TestHolding:
    def test_a_task_waits_until_what_it_would_collide_with_has_landed(self, shared: Path, tmp_path: Path) -> None:
        """The list says why; then it begins by itself."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.HOLD)
            (one,) = await stage.begin("One")
            await stage.write(one, "src/auth/login.py", "mine\n")
            await stage.pass_time(2)
            later = await stage.declare("Later", "src/auth/**")
            await stage.pass_time(3)
            assert (await stage.task_of(later)).state is TaskState.OPEN
            assert await stage.evidence(later) == f"held by the radar: {one} is at src/auth/login.py"
            await stage.finish(one, "src/auth/login.py", "done\n")
            await stage.pass_time(1)
            assert (await stage.run_of(later)).live

        play(story)

    def test_two_that_declare_the_same_run_one_after_the_other(self, shared: Path, tmp_path: Path) -> None:
        """Also when both are given at once, before there is any work."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.HOLD)
            first = await stage.declare("First", "src/auth")
            second = await stage.declare("Second", "src/**/*.py")
            elsewhere = await stage.declare("Elsewhere", "docs")
            await stage.pass_time(4)
            assert (await stage.run_of(first)).live and (await stage.run_of(elsewhere)).live
            assert await stage.evidence(second) == f"held by the radar: {first} is at src/auth"
            await stage.engine.runs.stop(first, "given up")
            await stage.pass_time(2)
            assert (await stage.run_of(second)).live

        play(story)

    def test_what_declares_nothing_is_never_held(self, shared: Path, tmp_path: Path) -> None:
        """And neither is anything where the radar only shows."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.HOLD)
            (one,) = await stage.begin("One")
            await stage.write(one, "src/auth/login.py", "mine\n")
            await stage.pass_time(2)
            (plain,) = await stage.begin("Plain")
            assert (await stage.run_of(plain)).live
            stage.settings.settings = replace(stage.settings.settings, radar=RadarSettings(act=Act.SHOW))
            declared = await stage.declare("Declared", "src/auth")
            await stage.pass_time(1)
            assert (await stage.run_of(declared)).live

        play(story)

    def test_after_a_restart_it_is_still_held(self, shared: Path, tmp_path: Path) -> None:
        """A new daemon knows nothing of anyone's work, and looks before it lets anyone begin."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.HOLD)
            (one,) = await stage.begin("One")
            await stage.write(one, "src/auth/login.py", "mine\n")
            await stage.restart()
            later = await stage.declare("Later", "src/auth/**")
            clear = await stage.declare("Clear", "docs/**")
            await stage.engine.ticks["dispatch"].tick()
            await stage.engine.settle()
            assert "waits for the radar" in await stage.evidence(later)
            await stage.pass_time(3)
            assert (await stage.task_of(later)).state is TaskState.OPEN
            assert (await stage.run_of(clear)).live

        play(story)

"""The radar: it looks where someone wants to know, at a bounded rate, and shows what it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from radar_stage import LINES, RadarStage, with_line
from stage import play

import patience
from windlass.core.errors import Unavailable
from windlass.core.nouns.agent import Permissions
from windlass.core.radar.collisions import Act, Severity
from windlass.engine.projects.tasks import Order
from windlass.engine.radar import tick


class TestShowing:
    def test_a_conflict_between_running_agents_is_seen_before_either_commits(
        self, shared: Path, tmp_path: Path
    ) -> None:
        """It names both, the file, and says how old that is."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, other = await stage.begin("One", "Other")
            await stage.write(one, "shared.txt", with_line(5, "mine"))
            await stage.write(other, "shared.txt", with_line(5, "theirs"))
            (collision,) = await stage.found()
            assert collision.severity is Severity.CONFLICT
            assert (set(collision.agents), collision.files) == ({one, other}, ("shared.txt",))
            assert collision.at == stage.clock.time

        play(story)

    def test_the_same_file_far_apart_is_an_overlap_and_other_files_are_nothing(
        self, shared: Path, tmp_path: Path
    ) -> None:
        """The worst stands first."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, other, third = await stage.begin("One", "Other", "Third")
            await stage.write(one, "shared.txt", with_line(2, "mine"))
            await stage.write(other, "shared.txt", with_line(25, "theirs"))
            await stage.write(third, "new.txt", "new\n")
            (collision,) = await stage.found()
            assert (collision.severity, set(collision.agents)) == (Severity.OVERLAP, {one, other})
            await stage.write(third, "shared.txt", with_line(25, "third"))
            worst, *others = await stage.found()
            assert (worst.severity, set(worst.agents)) == (Severity.CONFLICT, {other, third})
            assert [each.severity for each in others] == [Severity.OVERLAP, Severity.OVERLAP]

        play(story)

    def test_nobody_is_looked_at_as_long_as_nobody_asks(self, shared: Path, tmp_path: Path) -> None:
        """Set to show, the radar costs nothing; once asked, it keeps looking for a minute."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, other = await stage.begin("One", "Other")
            for name in (one, other):
                await stage.write(name, "shared.txt", with_line(5, name))
            await stage.pass_time(12)
            assert not stage.asked
            assert await stage.found()
            seen = stage.asked["quick_look"]
            await stage.write(one, "shared.txt", "".join(LINES))
            await stage.pass_time(3)
            assert stage.asked["quick_look"] > seen
            assert await stage.found(look=False) == []
            stage.clock.time += tick.WATCHED + 1
            seen = stage.asked["quick_look"]
            await stage.write(one, "shared.txt", with_line(5, "again"))
            await stage.pass_time(12)
            assert stage.asked["quick_look"] == seen

        play(story)

    def test_a_pair_that_has_not_changed_is_not_merged_again(self, shared: Path, tmp_path: Path) -> None:
        """However often it is looked at; when one side changes, only its pairs are merged."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            names = await stage.begin("One", "Other", "Third")
            for number, name in enumerate(names):
                await stage.write(name, "shared.txt", with_line(5, f"by {number}"))
            assert len(await stage.found()) == stage.asked["clash"] == 3
            for _ in range(3):
                assert len(await stage.found()) == 3
            assert stage.asked["quick_look"] > 3, "they were looked at again"
            assert stage.asked["clash"] == 3
            await stage.write(names[0], "shared.txt", with_line(5, "otherwise"))
            await stage.found()
            assert stage.asked["clash"] == 5

        play(story)

    def test_main_that_has_moved_is_compared_too(self, shared: Path, tmp_path: Path, git: Callable[..., str]) -> None:
        """A person's commit is in the way of an agent that works on."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            (one,) = await stage.begin("One")
            await stage.write(one, "shared.txt", with_line(5, "mine"))
            assert await stage.found() == []
            (shared / "shared.txt").write_text(with_line(5, "a person's"))
            git("commit", "-q", "-a", "-m", "By hand", cwd=shared)
            (collision,) = await stage.found()
            assert collision.with_main and collision.agents == (one,)
            asked = stage.asked["since"], stage.asked["clash"]
            await stage.found()
            assert (stage.asked["since"], stage.asked["clash"]) == asked

        play(story)

    def test_what_has_landed_or_was_given_up_collides_no_more(self, shared: Path, tmp_path: Path) -> None:
        """Who is left meets main instead, where the other's work is now."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, other, third = await stage.begin("One", "Other", "Third")
            for name in (one, other, third):
                await stage.write(name, "shared.txt", with_line(5, name))
            assert len(await stage.found()) == 3
            await stage.engine.runs.stop(third, "given up")
            await stage.move()
            assert len(await stage.found()) == 1
            await stage.finish(one, "shared.txt", with_line(5, one))
            await stage.move()
            (collision,) = await stage.found()
            assert collision.with_main and collision.agents == (other,)

        play(story)

    def test_one_that_cannot_be_looked_at_does_not_hide_the_others(self, shared: Path, tmp_path: Path) -> None:
        """It is said, and it is not asked again every second."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, other, third = await stage.begin("One", "Other", "Third")
            for name in (one, other, third):
                await stage.write(name, "shared.txt", with_line(5, name))
            git: Any = stage.engine.ports.git
            quick_look = git.quick_look

            async def refuse(project: Any, agent: Any) -> Any:
                if agent.id == third:
                    raise Unavailable("This tree can't be read.")
                return await quick_look(project, agent)

            git.quick_look = refuse
            await stage.move()
            (collision,) = await stage.found()
            assert set(collision.agents) == {one, other}
            assert [each.message for each in stage.engine.troubles.all()] == ["This tree can't be read."]

        play(story)

    def test_who_only_reads_collides_with_nobody(self, shared: Path, tmp_path: Path) -> None:
        """A reviewer's worktree holds another's work, and none of its own that could land."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            one, reader = await stage.begin("One", "Reader")
            for name in (one, reader):
                await stage.write(name, "shared.txt", with_line(5, name))
            reading = replace(await stage.agent(reader), permissions=Permissions.READ)
            await stage.store.write(lambda store: store.record("agent.changed", reader, reading))
            assert await stage.found() == []

        play(story)

    def test_several_projects_do_not_meet(self, shared: Path, tmp_path: Path, git: Callable[..., str]) -> None:
        """The same name in two repositories is two files."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            (one,) = await stage.begin("One")
            copy = tmp_path / "copy"
            git("clone", "-q", str(shared), str(copy), cwd=tmp_path)
            order = Order(path=str(copy), title="Other", provider="command", options={"command": "agent"})
            _, other = await stage.engine.tasks.add(order)
            await stage.move()
            for name in (one, other.id):
                await stage.write(name, "shared.txt", with_line(5, name))
            assert await stage.found() == []

        play(story)


class TestRate:
    def test_whoever_asks_has_the_tick_woken_and_nobody_else_does(self, shared: Path, tmp_path: Path) -> None:
        """Where nobody wants to know, no timer runs."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            await stage.begin("One")
            ear = stage.engine.ticks["radar"].ear
            assert ear is stage.engine.radar.ear and stage.engine.radar._alarm is None
            await stage.found()
            async with asyncio.timeout(patience.seconds(30)):
                await ear.wait()
            ear.clear()
            await stage.engine.ticks["radar"].tick()
            async with asyncio.timeout(patience.seconds(30)):
                await ear.wait()

        play(story)

    def test_the_tick_looks_at_one_agent_a_second_and_only_where_there_is_news(
        self, shared: Path, tmp_path: Path
    ) -> None:
        """Five agents take five seconds; after that, nothing is looked at until one says something."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            names = await stage.begin(*"ABCDE")
            for name in names:
                await stage.mutter(name)
            await stage.move()
            before = stage.asked["quick_look"]
            await stage.pass_time(1)
            for _ in range(3):
                await stage.engine.ticks["radar"].tick()
            assert stage.asked["quick_look"] == before + 1
            await stage.pass_time(9)
            settled = stage.asked["quick_look"]
            await stage.pass_time(20)
            assert stage.asked["quick_look"] == settled
            await stage.mutter(names[2])
            await stage.pass_time(3)
            assert stage.asked["quick_look"] == settled + 1

        play(story)

    def test_a_look_that_takes_long_is_followed_by_a_long_rest(self, shared: Path, tmp_path: Path) -> None:
        """Large trees do not make a busy machine: at most a tenth of the time is spent on them."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            names = await stage.begin("One", "Other")
            await stage.pass_time(5)
            git: Any = stage.engine.ports.git
            quick_look = git.quick_look

            async def slow(*given: Any) -> Any:
                stage.clock.time += 4.0
                return await quick_look(*given)

            git.quick_look = slow
            seen = stage.asked["quick_look"]
            for name in names:
                await stage.mutter(name)
            await stage.pass_time(30)
            assert stage.asked["quick_look"] == seen + 1
            await stage.pass_time(10)
            assert stage.asked["quick_look"] == seen + 2

        play(story)

    def test_a_person_waits_only_so_long(self, shared: Path, tmp_path: Path) -> None:
        """What could not be looked at by then is shown without an age, and the rest with its own."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            await stage.begin(*"ABCDEF")
            git: Any = stage.engine.ports.git
            quick_look = git.quick_look

            async def slow(*given: Any) -> Any:
                stage.clock.time += tick.PATIENCE
                return await quick_look(*given)

            git.quick_look = slow
            picture = await stage.engine.radar.picture()
            unseen = [target for target, seen in picture.looks if seen is None]
            assert 0 < len(unseen) < 6

        play(story)

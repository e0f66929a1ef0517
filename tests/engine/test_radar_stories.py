"""The radar: it looks where someone wants to know, at a bounded rate, and shows, tells or holds as it is set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from windlass.core.errors import Unavailable
from windlass.core.message import Message
from windlass.core.radar import Act, Collision, Severity
from windlass.core.settings import RadarSettings
from windlass.core.task import TaskState
from windlass.engine import radar as radar_module
from windlass.engine.tasks import Order

LINES = [f"line {number}\n" for number in range(30)]


class RadarStage(Stage):
    """Agents that edit, a radar that is set to something, and a count of what git was asked."""

    def __init__(self, repo: Path, home: Path, act: Act = Act.SHOW) -> None:
        super().__init__(repo, home)
        self.settings.settings = replace(self.settings.settings, radar=RadarSettings(act=act))
        self.asked: Counter[str] = Counter()
        self.count()

    def count(self) -> None:
        """Count the calls of the engine's git from now on."""
        git: Any = self.engine.ports.git
        for name in ("glance", "clash", "since"):
            setattr(git, name, self._counted(name, getattr(git, name)))

    def _counted(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(call)
        async def counted(*given: Any) -> Any:
            self.asked[name] += 1
            return await call(*given)

        return counted

    async def restart(self) -> None:
        await super().restart()
        self.count()

    async def begin(self, *titles: str) -> list[str]:
        """Agents at work, by name."""
        names = [await self.order(each) for each in titles]
        await self.move()
        return names

    async def declare(self, title: str, *paths: str) -> str:
        """An agent whose task says what it is to change."""
        order = Order(
            path=str(self.repo), title=title, provider="command", options={"command": "agent"}, paths=tuple(paths)
        )
        _, agent = await self.engine.tasks.add(order)
        return agent.id

    async def write(self, name: str, path: str, text: str) -> None:
        """An agent edits a file, and says so."""
        tree = await self.worktree(name)
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        await self.mutter(name)

    async def mutter(self, name: str) -> None:
        """An agent prints something."""
        self.clock.time += 0.001
        self.processes.say((await self.run_of(name)).id, b"working\n")

    async def pass_time(self, seconds: int) -> None:
        """Let every tick run once a second."""
        for _ in range(seconds):
            self.clock.time += 1.0
            await self.move()

    async def found(self, *, look: bool = True) -> list[Collision]:
        self.clock.time += 3.0  # what was seen just now would be good enough
        return [each for _, each in (await self.engine.radar.picture(look=look)).collisions]

    async def told(self, name: str) -> list[Message]:
        """What the system has told an agent."""
        task = await self.task_of(name)
        said = await self.store.read(lambda store: store.messages(f"task/{task.id}"))
        return [each for each in said if each.sender == "system" and name in each.to]

    async def evidence(self, name: str) -> str:
        return next(each.evidence for each in await self.engine.status.every() if each.agent.id == name)


@pytest.fixture
def shared(repo: Path, git: Callable[..., str]) -> Path:
    """A repository with a file that is long enough for two."""
    (repo / "shared.txt").write_text("".join(LINES))
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "A long file", cwd=repo)
    return repo


def with_line(number: int, text: str) -> str:
    return "".join([*LINES[:number], f"{text}\n", *LINES[number + 1 :]])


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
            seen = stage.asked["glance"]
            await stage.write(one, "shared.txt", "".join(LINES))
            await stage.pass_time(3)
            assert stage.asked["glance"] > seen
            assert await stage.found(look=False) == []
            stage.clock.time += radar_module.WATCHED + 1
            seen = stage.asked["glance"]
            await stage.write(one, "shared.txt", with_line(5, "again"))
            await stage.pass_time(12)
            assert stage.asked["glance"] == seen

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
            assert stage.asked["glance"] > 3, "they were looked at again"
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
            glance = git.glance

            async def refuse(project: Any, agent: Any) -> Any:
                if agent.id == third:
                    raise Unavailable("This tree can't be read.")
                return await glance(project, agent)

            git.glance = refuse
            await stage.move()
            (collision,) = await stage.found()
            assert set(collision.agents) == {one, other}
            assert [each.message for each in stage.engine.troubles.all()] == ["This tree can't be read."]

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
            before = stage.asked["glance"]
            await stage.pass_time(1)
            for _ in range(3):
                await stage.engine.ticks["radar"].tick()
            assert stage.asked["glance"] == before + 1
            await stage.pass_time(9)
            settled = stage.asked["glance"]
            await stage.pass_time(20)
            assert stage.asked["glance"] == settled
            await stage.mutter(names[2])
            await stage.pass_time(3)
            assert stage.asked["glance"] == settled + 1

        play(story)

    def test_a_look_that_takes_long_is_followed_by_a_long_rest(self, shared: Path, tmp_path: Path) -> None:
        """Large trees do not make a busy machine: at most a tenth of the time is spent on them."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home", Act.TELL)
            names = await stage.begin("One", "Other")
            await stage.pass_time(5)
            git: Any = stage.engine.ports.git
            glance = git.glance

            async def slow(*given: Any) -> Any:
                stage.clock.time += 4.0
                return await glance(*given)

            git.glance = slow
            seen = stage.asked["glance"]
            for name in names:
                await stage.mutter(name)
            await stage.pass_time(30)
            assert stage.asked["glance"] == seen + 1
            await stage.pass_time(10)
            assert stage.asked["glance"] == seen + 2

        play(story)

    def test_a_person_waits_only_so_long(self, shared: Path, tmp_path: Path) -> None:
        """What could not be looked at by then is shown without an age, and the rest with its own."""

        async def story() -> None:
            stage = RadarStage(shared, tmp_path / "home")
            await stage.begin(*"ABCDEF")
            git: Any = stage.engine.ports.git
            glance = git.glance

            async def slow(*given: Any) -> Any:
                stage.clock.time += radar_module.PATIENCE
                return await glance(*given)

            git.glance = slow
            picture = await stage.engine.radar.picture()
            unseen = [target for target, seen in picture.looks if seen is None]
            assert 0 < len(unseen) < 6

        play(story)


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

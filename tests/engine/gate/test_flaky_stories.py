"""Checks that fail by chance: the gate tries again as often as that happens here, and nothing fails for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stage import Stage, play

from windlass.core.nouns.change import ChangeState, Hold
from windlass.core.nouns.task import TaskState
from windlass.engine.gate.main_health import Health


class Checks:
    """A check that fails and passes as it is told, and passes when nothing is left."""

    def __init__(self, folder: Path) -> None:
        self.told = folder / "told"
        self.asked = folder / "asked"
        program = f'read next < {self.told}; sed -i 1d {self.told}; echo x >> {self.asked}; [ "$next" != F ]\n'
        (folder / "check.sh").write_text(program)
        self.command = f"sh {folder}/check.sh"
        self.say("")

    def say(self, verdicts: str) -> None:
        self.told.write_text("".join(f"{verdict}\n" for verdict in verdicts))
        self.asked.write_text("")

    @property
    def count(self) -> int:
        return len(self.asked.read_text().split())


async def landed(stage: Stage, file: str) -> int:
    """How often a change went back before it landed."""
    name = await stage.order()
    await stage.move()
    await stage.finish(name, file, "good\n")
    await stage.move()
    change = await stage.change_of(name)
    assert change.landing is not None
    return change.returns


def test_the_budget_of_tries_follows_the_flakes_that_were_seen(repo: Path, tmp_path: Path) -> None:
    """Three changes flake once each; then five failures in a row send nobody back, and main is not called red."""

    async def story() -> None:
        checks = Checks(tmp_path)
        stage = Stage(repo, tmp_path / "home", checks=checks.command)
        for number in range(3):
            checks.say("F")
            await landed(stage, f"f{number}")
        checks.say("FFFFF")
        assert await landed(stage, "more") == 0
        assert checks.count == 6

        checks.say("FFFFF")
        [project] = await stage.store.read(lambda store: store.projects())
        ports, engine = stage.engine.ports, stage.engine
        health = Health(ports, engine.tasks)
        assert await health.test(project, await ports.git.main(project), stage.settings.settings)
        assert checks.count == 6

    play(story)


def test_what_its_author_cannot_mend_is_held_where_it_may_be_chance(repo: Path, tmp_path: Path) -> None:
    """Its author has nothing to mend and gives up; the task has not failed, and the change lands when tried again."""

    async def story() -> None:
        checks = Checks(tmp_path)
        stage = Stage(repo, tmp_path / "home", checks=checks.command)
        name = await stage.order()
        await stage.move()
        checks.say("FFP")
        await stage.finish(name, "a.txt", "good\n")
        await stage.move()
        assert (await stage.change_of(name)).state is ChangeState.REJECTED
        for _ in range(2):  # it is tried once more
            await stage.exit(name, 1)
            await stage.move()

        stage.clock.time += 1000
        await stage.move()
        change = await stage.change_of(name)
        assert (change.state, change.hold) == (ChangeState.HELD, Hold.HUMAN)
        assert not (await stage.run_of(name)).live
        assert (await stage.task_of(name)).state is TaskState.LANDING
        [ask] = await stage.store.read(lambda store: store.open_asks(limit=10))
        assert f"windlass queue retry {change.id}" in ask.body
        await stage.engine.queue.retry(change.id)
        await stage.move()
        assert (await stage.change_of(name)).landing is not None
        assert (await stage.task_of(name)).state is TaskState.DONE

    play(story)


def test_what_surely_fails_by_its_own_fault_fails_with_its_author(repo: Path, tmp_path: Path) -> None:
    """So many failures in a row are no chance, for all that was seen."""

    async def story() -> None:
        checks = Checks(tmp_path)
        stage = Stage(repo, tmp_path / "home", checks=checks.command)
        gate = replace(stage.settings.settings.gate, retries=4)
        stage.settings.settings = replace(stage.settings.settings, gate=gate)
        name = await stage.order()
        await stage.move()
        checks.say("FFFFFPPP")
        await stage.finish(name, "a.txt", "bad\n")
        await stage.move()
        for _ in range(2):
            await stage.exit(name, 1)
            await stage.move()
        assert (await stage.task_of(name)).state is TaskState.FAILED

    play(story)

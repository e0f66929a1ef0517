"""Main itself fails its checks: nobody is blamed for it, nothing else lands, someone mends it, and all goes on."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from stage import Stage, commit, play

from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.settings.schema import WorkSettings

CHECK = "! cat main.* | grep -q broken"


def by_hand(repo: Path, text: str) -> None:
    """What a person does to main."""
    commit(repo, "main.txt", text, dict(os.environ))


async def reddened(stage: Stage, repo: Path) -> str:
    """A change is ready to land, and a person has broken main."""
    name = await stage.order("Good work")
    await stage.move()
    by_hand(repo, "broken\n")
    await stage.finish(name, "a.txt", "a\n")
    await stage.move()
    return name


async def project_of(stage: Stage) -> Project:
    [project] = await stage.store.read(lambda store: store.projects())
    return project


async def mending(stage: Stage) -> list[Task]:
    project = await project_of(stage)
    tasks = await stage.store.read(lambda store: store.unfinished_tasks())
    return [task for task in tasks if task.title == project.mending]


def test_the_author_is_not_blamed_and_lands_when_main_is_green(repo: Path, tmp_path: Path) -> None:
    """The change fails because main does: it waits in line. A person mends main, and it lands."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        name = await reddened(stage, repo)
        change = await stage.change_of(name)
        assert (change.state, change.returns, change.reason) == (ChangeState.QUEUED, 0, "main is red")
        assert (await project_of(stage)).red == f"main is red: exit code 1 ({CHECK})"
        [ask] = await stage.store.read(lambda store: store.open_asks())
        assert "no agent could be asked to repair it" in ask.body

        by_hand(repo, "whole\n")
        await stage.move()
        assert not (await project_of(stage)).red
        assert (await stage.change_of(name)).state is ChangeState.LANDED

    play(story)


@pytest.mark.parametrize("setting", ["sandbox", "checks"])
def test_it_is_tested_again_when_a_setting_that_checks_depend_on_changes(
    repo: Path, tmp_path: Path, setting: str
) -> None:
    """What was missing was not in main: neither main nor the command has changed, and nobody waits five minutes."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=f"test -e {tmp_path}/installed")
        name = await stage.order("Good work")
        await stage.move()
        await stage.finish(name, "a.txt", "a\n")
        await stage.move()
        red = (await project_of(stage)).red
        assert red
        reported = await stage.store.read(lambda store: store.messages(f"project/{store.projects()[0].id}"))
        assert "tested again when" in reported[-1].body

        (tmp_path / "installed").touch()
        await stage.move()
        assert (await project_of(stage)).red == red
        ours = stage.settings.settings
        stage.settings.settings = (
            replace(ours, sandbox=replace(ours.sandbox, readable=("~/tools",)))
            if setting == "sandbox"
            else replace(ours, checks=replace(ours.checks, environment=("TOOLS",)))
        )
        await stage.move()
        assert not (await project_of(stage)).red
        assert (await stage.change_of(name)).state is ChangeState.LANDED

    play(story)


def test_a_project_that_was_forgotten_while_red_says_again_why_changes_wait(repo: Path, tmp_path: Path) -> None:
    """What the gate had found out is forgotten, too: main is tested again, and the change says what it waits for."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        await reddened(stage, repo)
        await stage.engine.forgetting.forget(await project_of(stage), sure=True, delete_hub=False)

        name = await stage.order("New work")
        await stage.move()
        await stage.finish(name, "b.txt", "b\n")
        await stage.move()

        assert (await project_of(stage)).red
        assert (await stage.change_of(name)).reason == "main is red"
        [view] = [each for each in await stage.engine.status.every() if each.agent.id == name]
        assert "main is red: exit code 1" in view.evidence

    play(story)


def test_one_agent_is_asked_to_mend_it_and_only_that_change_goes_on(repo: Path, tmp_path: Path) -> None:
    """It is told what fails; the others land after it. However often it is looked at, there is one such task."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        work = WorkSettings(provider="command", command="mender")
        stage.settings.settings = replace(stage.settings.settings, work=work)
        name = await reddened(stage, repo)
        stage.clock.time += 400
        await stage.restart()
        await stage.move()
        [task] = await mending(stage)
        assert f"\n{CHECK}\n```" in task.brief
        assert (await stage.change_of(name)).state is ChangeState.QUEUED

        await stage.finish(task.agent, "main.txt", "whole\n")
        await stage.move()
        assert not (await project_of(stage)).red
        assert (await stage.task_of(task.agent)).state is TaskState.DONE
        assert (await stage.change_of(name)).state is ChangeState.LANDED

    play(story)


def test_what_fails_on_a_green_main_goes_back(repo: Path, tmp_path: Path) -> None:
    """Main was looked at first, because a person had moved it; it is fine, so it is the change's own fault."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        name = await stage.order("Bad work")
        await stage.move()
        commit(repo, "other.txt", "fine\n", dict(os.environ))
        await stage.finish(name, "main.txt", "broken\n")
        await stage.move()
        assert (await stage.change_of(name)).returns == 1
        project = await project_of(stage)
        assert (project.red, project.health is not None and project.health.passed) == ("", True)

    play(story)


def test_when_what_the_checks_need_is_gone_only_the_first_is_blamed(repo: Path, tmp_path: Path) -> None:
    """One change fails on a green main: its own fault, it seems. When the next one fails, too, main is looked at."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=f"test ! -e {tmp_path}/gone")
        names = [await stage.order(f"Work {each}") for each in range(4)]
        await stage.move()
        await stage.finish(names[0], "f0", "x\n")
        await stage.move()
        (tmp_path / "gone").touch()
        for number, name in enumerate(names[1:], 1):
            await stage.finish(name, f"f{number}", "x\n")
        await stage.move()
        returned = [(await stage.change_of(each)).returns for each in names[1:]]
        assert sum(returned) <= 1
        assert (await project_of(stage)).red

        (tmp_path / "gone").unlink()
        stage.clock.time += 400
        await stage.move()
        assert not (await project_of(stage)).red
        states = [(await stage.change_of(each)).state for each in names[1:]]
        assert states.count(ChangeState.LANDED) == 3 - sum(returned)

    play(story)


def test_a_main_that_is_mended_while_nothing_waits_is_green_again(repo: Path, tmp_path: Path) -> None:
    """What is shown of it is true, also when nobody is in line."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        name = await reddened(stage, repo)
        await stage.engine.queue.drop((await stage.change_of(name)).id, "not needed")
        by_hand(repo, "whole\n")
        await stage.move()
        assert not (await project_of(stage)).red

    play(story)


def test_no_second_agent_is_asked_to_mend_what_the_first_gave_up(repo: Path, tmp_path: Path) -> None:
    """One red tree is worth one agent; then it is up to a person."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home", checks=CHECK)
        work = WorkSettings(provider="command", command="mender")
        stage.settings.settings = replace(stage.settings.settings, work=work)
        await reddened(stage, repo)
        [task] = await mending(stage)
        await stage.engine.runs.stop(task.agent, "stopped by hand")
        for _ in range(3):
            stage.clock.time += 400
            await stage.move()
        assert await mending(stage) == []

    play(story)

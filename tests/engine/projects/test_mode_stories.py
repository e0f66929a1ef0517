"""What a task wants of its agent: the work, a plan for it, or a plan made clearer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.change import Change
from windlass.core.nouns.task import Mode, TaskState
from windlass.engine.projects.tasks import Order


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.REFINE])
def test_what_a_planner_commits_never_lands(mode: Mode, repo: Path, tmp_path: Path) -> None:
    """It was to say what is to be done, and not to do it; its result is what comes of it."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        _, planner = await stage.engine.tasks.add(
            Order(path=str(repo), title="Split it", provider="command", options={"command": "x"}, mode=mode)
        )
        await stage.move()
        await stage.finish(planner.id, "a", "hasty")
        await stage.move()

        assert (await stage.task_of(planner.id)).state is TaskState.DONE
        assert await stage.store.read(lambda store: store.find(Change, "c1")) is None

    play(story)


@pytest.mark.parametrize("mode", [Mode.EXECUTE, Mode.PLAN])
def test_an_agent_finds_its_mode_in_its_manifest(mode: Mode, repo: Path, tmp_path: Path) -> None:
    """And its prompt is made for it, also when it is woken again."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        _, agent = await stage.engine.tasks.add(
            Order(path=str(repo), title="Split it", provider="command", options={"command": "x"}, mode=mode)
        )
        await stage.move()
        manifest = json.loads((await stage.worktree(agent.id) / ".windlass/input/manifest.json").read_text())
        assert manifest["mode"] == mode
        await stage.signal(agent.id, '{"status": "questions", "questions": ["Which?"]}')
        await stage.exit(agent.id)
        await stage.move()
        await stage.engine.talk.answer(agent.id, ["That one."])
        await stage.move()
        told = stage.prompt_of(await stage.run_of(agent.id))
        assert ("git_workflow" in told, "you plan work that others will do" in told) == (
            mode.writes,
            mode is Mode.PLAN,
        )

    play(story)


def test_a_plan_that_was_stopped_goes_on_as_a_plan(repo: Path, tmp_path: Path) -> None:
    """Also then nothing lands of what was committed on the way."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        order = Order(path=str(repo), title="Split it", provider="command", options={"command": "x"}, mode=Mode.PLAN)
        task, planner = await stage.engine.tasks.add(order)
        await stage.move()
        await stage.commit(planner.id, "a", "hasty")
        await stage.engine.runs.stop(planner.id, "stopped by hand")
        await stage.move()
        person = await stage.engine.talk.speaker("")
        await stage.engine.talk.send(person, NewMessage(body="Go on.", project=task.project, to=(planner.id,)))
        await stage.move()
        assert (await stage.task_of(planner.id)).mode is Mode.PLAN
        await stage.signal(planner.id)
        await stage.exit(planner.id)
        await stage.move()
        await stage.engine.talk.send(person, NewMessage(body="Now do it.", project=task.project, to=(planner.id,)))
        await stage.move()
        assert (await stage.task_of(planner.id)).mode is Mode.EXECUTE
        assert not (await stage.worktree(planner.id) / "a").exists()
        assert await stage.store.read(lambda store: store.find(Change, "c1")) is None

    play(story)

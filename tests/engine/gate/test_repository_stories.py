"""One agent, several repositories: a worktree of each, and each change through its own gate."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from stage import DONE, Stage, commit, play

from windlass.core.agents.grants import Grant
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState


class PairStage(Stage):
    """A project whose agents change `web` as well."""

    name = ""

    async def begin(self) -> None:
        self.name = await self.order("Rename the field")
        await self.move()

    async def folder(self) -> Path:
        """Where the agent works."""
        return await self.worktree(self.name)

    async def change(self, *names: str, text: str = "new\n", file: str = "field.txt") -> None:
        """Commit a file in each of these repositories."""
        launch = self.processes.started[(await self.run_of(self.name)).id].launch
        for name in names:
            commit(await self.folder() / name, file, text, os.environ | dict(launch.environment))

    async def one_bad_and_one_in_the_way(self) -> Path:
        """Its change in `repo` fails there, and that in `web` meets a file of the user's, which is returned."""
        self.check_with("test ! -e field.txt || grep -q new field.txt")
        await self.begin()
        await self.change("repo", text="bad\n")
        await self.change("web")
        mine = self.repo.parent / "web" / "field.txt"
        mine.write_text("mine, and in the way")
        await self.done()
        return mine

    async def done(self) -> None:
        await self.signal(self.name, DONE)
        await self.exit(self.name)
        await self.move()

    async def look(self) -> None:
        """Take in what the agent has committed so far."""
        run = await self.run_of(self.name)
        for project in await self.store.read(lambda store: store.projects()):
            await self.engine.ports.git.look(project, await self.agent(self.name), run.id)

    async def states(self) -> list[ChangeState]:
        task = await self.task_of(self.name)
        changes = await self.store.read(lambda store: store.changes_of_task(task.id))
        return [change.state for change in changes]


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> PairStage:
    clone(repo, tmp_path / "web")
    made = PairStage(repo, tmp_path / "home")
    ours = made.settings.settings
    made.settings.settings = replace(ours, project=replace(ours.project, repositories=("../web",)))
    return made


def clone(repo: Path, to: Path) -> None:
    subprocess.run(["git", "clone", "-q", str(repo), str(to)], check=True)


def main_of(path: Path) -> str:
    shown = subprocess.run(["git", "show", "main:field.txt"], cwd=path, capture_output=True, text=True, check=False)
    return shown.stdout


def test_both_are_found_by_name_and_both_land(stage: PairStage, tmp_path: Path) -> None:
    """The agent's folder leads to a worktree of each, its prompt says so, and the task is done when all has landed."""

    async def story() -> None:
        await stage.begin()
        folder = await stage.folder()
        assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == ["repo", "web"]
        manifest = json.loads((folder / ".windlass/input/manifest.json").read_text())
        assert manifest["agentName"] == stage.name
        prompt = stage.prompt_of(await stage.run_of(stage.name))
        assert "- `web/`: its commits land on `main`" in prompt
        await stage.change("repo", "web")
        await stage.done()
        assert await stage.states() == [ChangeState.LANDED, ChangeState.LANDED]
        assert (await stage.task_of(stage.name)).state is TaskState.DONE
        assert main_of(stage.repo) == main_of(tmp_path / "web") == "new\n"
        assert not folder.joinpath("web").resolve().exists()  # both worktrees are removed, and saved
        events = await stage.store.read(lambda store: store.events(after=0, limit=1000))
        [retired] = [event for event in events if event.kind == "agent.retired"]
        assert len(retired.data["rescues"]) == 2

    play(story)


def test_who_looks_from_one_project_sees_nothing_of_the_other(stage: PairStage) -> None:
    """An agent's differences are shown project by project; a person and the agent itself see them all."""

    async def story() -> None:
        await stage.begin()
        await stage.change("repo", text="ours\n")
        await stage.change("web", text="theirs\n")
        await stage.look()
        home = (await stage.agent(stage.name)).project
        whole, part = [await stage.engine.diffs.of(stage.name, within=within) for within in ("", home)]
        assert "+ours" in whole and "+theirs" in whole
        assert "+ours" in part and "+theirs" not in part

    play(story)


def test_a_change_in_another_project_is_for_its_author_alone(stage: PairStage, tmp_path: Path) -> None:
    """For the author's neighbours it does not exist, as nothing does of a project that is not theirs."""

    async def story() -> None:
        await stage.begin()
        neighbour = await stage.order("Live beside them")
        await stage.move()
        author, other = [(await stage.run_of(name)).id for name in (stage.name, neighbour)]
        web = (await stage.engine.projects.at(str(tmp_path / "web"))).id
        change = Change(id="c9", project=web, agent=stage.name, task="", title="x", branch="x", head="x")
        await stage.store.write(lambda store: store.record("change.queued", change.id, change))
        admit = stage.engine.callers.admit
        assert (await admit(author, Grant.CHANGE, "c9")).run == author
        with pytest.raises(NotFound, match="c9"):
            await admit(other, Grant.CHANGE, "c9")

    play(story)


def test_a_hub_is_not_deleted_under_the_worktree_of_a_retired_guest(stage: PairStage, tmp_path: Path) -> None:
    """The agent belongs to another project, and its clone borrows objects from this one."""

    async def story() -> None:
        await stage.begin()
        tree = (await stage.folder() / "web").resolve()
        (tree / "results.log").write_text("hours of work\n")
        await stage.change("web", text="*.log\n", file=".gitignore")
        await stage.done()
        assert (await stage.agent(stage.name)).retired_at is not None and tree.exists()
        web = await stage.engine.forgetting.find(str(tmp_path / "web"))
        with pytest.raises(Conflict, match=r"results\.log"):
            await stage.engine.forgetting.forget(web, sure=True, delete_hub=True)
        assert (tree / "results.log").exists()

    play(story)


def test_only_what_was_changed_wants_to_land(stage: PairStage, tmp_path: Path) -> None:
    """A repository without commits of the agent's has no change."""

    async def story() -> None:
        await stage.begin()
        await stage.change("web")
        await stage.done()
        assert await stage.states() == [ChangeState.LANDED]
        assert (main_of(stage.repo), main_of(tmp_path / "web")) == ("", "new\n")

    play(story)


def test_done_counts_only_when_every_worktree_is_clean(stage: PairStage) -> None:
    """What is left over is named with its repository."""

    async def story() -> None:
        await stage.begin()
        await stage.change("repo")
        (await stage.folder() / "web" / "left.txt").write_text("forgotten")
        await stage.done()
        runs = await stage.store.read(lambda store: store.runs_of(stage.name))
        assert runs[0].outcome is Outcome.FAILED
        assert "web/left.txt" in runs[0].reason
        assert runs[1].live

    play(story)


def test_one_refused_goes_back_while_the_other_has_landed(stage: PairStage, tmp_path: Path) -> None:
    """The author mends the one; the task ends when that has landed, too."""

    async def story() -> None:
        stage.check_with("test ! -e field.txt || grep -q new field.txt")
        await stage.begin()
        await stage.change("repo")
        await stage.change("web", text="bad\n")
        await stage.done()
        assert await stage.states() == [ChangeState.LANDED, ChangeState.REJECTED]
        assert (await stage.task_of(stage.name)).state is TaskState.ACTIVE
        assert (await stage.run_of(stage.name)).number == 2

        await stage.change("web")
        await stage.done()
        assert await stage.states() == [ChangeState.LANDED, ChangeState.LANDED]
        assert (await stage.task_of(stage.name)).state is TaskState.DONE
        assert main_of(tmp_path / "web") == "new\n"

    play(story)


def test_a_lost_worktree_of_any_ends_the_run(stage: PairStage) -> None:
    """Without all of its repositories nothing it says can be checked."""

    async def story() -> None:
        await stage.begin()
        (await stage.folder() / "web").resolve().rename(stage.home / "elsewhere")
        await stage.move()
        assert (await stage.run_of(stage.name)).outcome is Outcome.FAILED

    play(story)


def test_two_of_one_name_are_refused(stage: PairStage, tmp_path: Path) -> None:
    """An agent could not tell them apart; nothing is created."""

    async def story() -> None:
        clone(stage.repo, tmp_path / "other/web")
        ours = stage.settings.settings
        both = replace(ours.project, repositories=("../web", "../other/web"))
        stage.settings.settings = replace(ours, project=both)
        with pytest.raises(BadInput, match="called web"):
            await stage.order()
        assert await stage.store.read(lambda store: store.agents()) == []

    play(story)


def test_who_is_stopped_wants_nothing_to_land_any_more(stage: PairStage, tmp_path: Path) -> None:
    """One change went back to its author, the other waits: when the author is stopped, neither is left to nobody."""

    async def story() -> None:
        await stage.one_bad_and_one_in_the_way()
        assert await stage.states() == [ChangeState.REJECTED, ChangeState.HELD]
        assert (await stage.run_of(stage.name)).live

        await stage.engine.runs.stop(stage.name, "stopped by hand")
        await stage.move()
        assert (await stage.task_of(stage.name)).state is TaskState.CANCELLED
        assert await stage.states() == [ChangeState.CLOSED, ChangeState.CLOSED]
        (tmp_path / "web" / "field.txt").unlink()
        stage.clock.time += 60
        await stage.move()
        assert main_of(tmp_path / "web") == ""

    play(story)


def test_a_refusal_after_the_task_has_ended_is_told_to_the_person(stage: PairStage, tmp_path: Path) -> None:
    """Nobody would mend it: it is closed, and not sent back to an author whose task has failed."""

    async def story() -> None:
        stage.limit(retries=0, reminders=0)
        gate = replace(stage.settings.settings.gate, retries=4)  # so many failures are no chance
        stage.settings.settings = replace(stage.settings.settings, gate=gate)
        in_the_way = await stage.one_bad_and_one_in_the_way()
        await stage.exit(stage.name, 1)
        await stage.move()
        assert (await stage.task_of(stage.name)).state is TaskState.FAILED
        assert await stage.states() == [ChangeState.CLOSED, ChangeState.HELD]

        in_the_way.unlink()
        commit(tmp_path / "web", "other.txt", "main moves on", dict(os.environ))
        stage.check_with("test ! -e field.txt")
        stage.clock.time += 60
        await stage.move()
        assert await stage.states() == [ChangeState.CLOSED, ChangeState.CLOSED]

    play(story)


def test_what_the_author_asks_stays_open_when_its_other_change_goes_on(stage: PairStage, tmp_path: Path) -> None:
    """One change went back, and its author has a question; what held the other one is over, and the question is not."""

    async def story() -> None:
        in_the_way = await stage.one_bad_and_one_in_the_way()
        await stage.signal(stage.name, json.dumps({"status": "questions", "questions": ["Which name?"]}))
        await stage.exit(stage.name)
        await stage.move()
        assert (await stage.task_of(stage.name)).state is TaskState.WAITING
        assert await stage.states() == [ChangeState.REJECTED, ChangeState.HELD]

        in_the_way.unlink()
        commit(tmp_path / "web", "other.txt", "main moves on", dict(os.environ))
        stage.clock.time += 60
        await stage.move()
        assert await stage.states() == [ChangeState.REJECTED, ChangeState.LANDED]
        asked = await stage.store.read(lambda store: store.open_asks())
        assert [(each.sender, each.body) for each in asked] == [(stage.name, "q1: Which name?")]

        await stage.engine.talk.answer(stage.name, ["The new one."])
        await stage.move()
        assert (await stage.run_of(stage.name)).live

    play(story)


def test_what_a_person_is_asked_about_one_change_stays_open_when_the_other_goes_on(
    stage: PairStage, tmp_path: Path
) -> None:
    """Both are held, for reasons of their own; what settles the one says nothing about the other."""

    async def story() -> None:
        in_the_way = await stage.one_bad_and_one_in_the_way()
        while (await stage.run_of(stage.name)).live:
            await stage.signal(stage.name)
            await stage.exit(stage.name)
            await stage.move()
        assert await stage.states() == [ChangeState.HELD, ChangeState.HELD]

        in_the_way.unlink()
        commit(tmp_path / "web", "other.txt", "main moves on", dict(os.environ))
        stage.clock.time += 60
        await stage.move()
        assert await stage.states() == [ChangeState.HELD, ChangeState.LANDED]
        (asked,) = await stage.store.read(lambda store: store.open_asks())
        assert "going back 2 times" in asked.body

        await stage.engine.talk.answer(stage.name, ["Write new into it."])
        await stage.move()
        assert (await stage.run_of(stage.name)).live

    play(story)

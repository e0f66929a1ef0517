"""Forgetting a project: what is saved, what is refused, what is shown afterwards, and beginning again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from stage import Stage, play

from windlass.core.errors import Conflict, NotFound
from windlass.core.invariants import Finding
from windlass.core.messages.members import Speaker
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import TaskState
from windlass.engine.forgetting import Forgotten
from windlass.engine.gate.queue import Queue
from windlass.engine.views.audit import Audit


def carry(repository: Path, to: Path) -> None:
    """Move a repository, as a person does."""
    repository.rename(to)


async def forget(stage: Stage, *, sure: bool = False, delete_hub: bool = False) -> Forgotten:
    project = await stage.engine.forgetting.find(str(stage.repo))
    return await stage.engine.forgetting.forget(project, sure=sure, delete_hub=delete_hub)


async def broken(stage: Stage) -> Sequence[Finding]:
    """The promises that `doctor --check` sees broken."""
    return [each async for each in Audit(stage.engine.ports, pause=asyncio.sleep).findings(list) if not each.ok]


async def left_a_draft(stage: Stage) -> str:
    """An agent has failed and left a file that it had not committed, and another one wants to land something."""
    name = await stage.order()
    await stage.move()
    (await stage.worktree(name) / "draft.txt").write_text("half\n")
    await stage.signal(name, '{"status": "error", "error": "Too hard."}')
    await stage.exit(name)
    await stage.move()
    return name


async def a_held_change(stage: Stage) -> str:
    stage.check_with("")
    name = await stage.order("Land")
    await stage.move()
    await stage.finish(name, "a.txt", "a\n")
    await stage.move()
    return name


class TestForget:
    def test_a_gone_project_is_forgotten_and_its_unlanded_work_saved(self, repo: Path, tmp_path: Path) -> None:
        """Worktrees become refs of the hub, tasks and changes end, nothing is listed, and every promise is kept."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            failed, lander = await left_a_draft(stage), await a_held_change(stage)
            carry(repo, tmp_path / "away")
            await stage.move()
            done = await forget(stage)
            change = await stage.change_of(lander)
            assert done.changes == (change.id,) and change.state is ChangeState.CLOSED
            assert (await stage.task_of(lander)).state is TaskState.CANCELLED
            refs = {each.agent.id: [*each.refs.values()] for each in done.cleared}
            assert refs == {name: [f"refs/windlass/rescue/{name}/1/tree"] for name in (failed, lander)}
            files = {
                name: files
                for item, found in (await stage.engine.rescue.every()).items
                if item.saved.removed
                for name, files in [(item.saved.agent, found.files)]
            }
            assert files == {failed: ("draft.txt",), lander: ("a.txt",)}
            assert await stage.engine.status.every(retired=True) == []
            assert await stage.engine.queue.every(ended=True) == ([], [])
            assert await stage.engine.forgetting.listing() == []
            await stage.move()
            assert await broken(stage) == []

        play(story)

    def test_it_is_refused_while_an_agent_runs_there(self, repo: Path, tmp_path: Path) -> None:
        """Nothing is changed then, and the error names the agent."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            with pytest.raises(Conflict, match=name) as raised:
                await forget(stage, sure=True)
            assert raised.value.hint.startswith(f"`windlass stop {name}`")
            assert (await stage.task_of(name)).state is TaskState.ACTIVE

        play(story)

    def test_a_project_that_is_there_is_forgotten_only_with_a_word_and_can_come_back(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """The repository is not touched; used again, it is a new project in the list, and old work stays saved."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            failed = await left_a_draft(stage)
            with pytest.raises(Conflict, match=f"its repository {repo} is there"):
                await forget(stage)
            old = (await forget(stage, sure=True)).project
            with pytest.raises(Conflict, match="forgotten before"):
                await forget(stage, sure=True)
            again = await stage.engine.projects.at(str(repo))
            assert again.id != old.id and not again.forgotten
            assert [project.id for project, _ in await stage.engine.forgetting.listing()] == [again.id]
            name = await stage.order()
            await stage.move()
            await stage.finish(name, "b.txt", "b\n")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            saved = [item.saved.id for item, _ in (await stage.engine.rescue.every()).items]
            assert f"{failed}/1" in saved
            assert await broken(stage) == []

        play(story)

    def test_the_same_id_comes_back_as_the_same_project(self, repo: Path, tmp_path: Path) -> None:
        """As where its settings file names it: it is not paused any more, and has what its hub kept."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            failed = await left_a_draft(stage)
            await stage.engine.queue.pause(str(repo), "for good")
            old = (await forget(stage, sure=True)).project
            stage.settings.settings = stage.settings.settings.__class__(
                project=stage.settings.settings.project.__class__(uuid=old.id)
            )
            again = await stage.engine.projects.at(str(repo))
            assert (again.id, again.paused, again.forgotten) == (old.id, "", "")
            assert (await stage.engine.rescue.show(f"{failed}/1"))[0].project.id == old.id

        play(story)

    def test_a_hub_is_deleted_only_when_everything_could_be_saved(self, repo: Path, tmp_path: Path) -> None:
        """A file that git ignores keeps the worktree, and with it the hub; then the deleted work is not missed."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            await stage.commit(name, ".gitignore", "*.log\n")
            (tree / "results.log").write_text("hours of work\n")
            await stage.signal(name, '{"status": "error", "error": "Too hard."}')
            await stage.exit(name)
            await stage.move()
            with pytest.raises(Conflict, match=r"results\.log: ignored by git"):
                await forget(stage, sure=True, delete_hub=True)
            assert [project.name for project, _ in await stage.engine.forgetting.listing()] == [repo.name]
            done = await forget(stage, sure=True)
            assert [each.kept != "" for each in done.cleared] == [True]
            assert (tree / "results.log").exists()
            (tree / "results.log").unlink()
            with pytest.raises(Conflict, match="deletes its hub"):
                await forget(stage, delete_hub=True)
            deleted = (await forget(stage, sure=True, delete_hub=True)).project
            assert deleted.hub_deleted_at is not None
            assert not tree.exists() and not [*(tmp_path / "home" / "hubs").iterdir()]
            assert (await stage.engine.rescue.every(landed=True)).items == ()
            assert await broken(stage) == []

        play(story)

    def test_a_worktree_without_repository_and_hub_is_kept_and_named(self, repo: Path, tmp_path: Path) -> None:
        """Nothing can be saved there any more, so its files stay where they are."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            tree = await stage.worktree(await left_a_draft(stage))
            carry(repo, tmp_path / "moved")
            carry(tmp_path / "home" / "hubs", tmp_path / "lost")
            await stage.restart()
            done = await forget(stage, sure=True)
            assert [str(tree) in each.kept for each in done.cleared] == [True]
            assert (tree / "draft.txt").exists()

        play(story)

    def test_only_changes_that_were_given_up_are_named(self, repo: Path, tmp_path: Path) -> None:
        """One that has ended meanwhile was not."""

        class LateQueue(Queue):
            async def drop(self, key: str, reason: str) -> Change:
                raise Conflict(f"{key} has ended, {reason}.")

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            change = await stage.change_of(await a_held_change(stage))
            forgetting = stage.engine.forgetting
            assert await forgetting._drop_changes(await forgetting.find(str(repo))) == (change.id,)
            queue = stage.engine.queue
            await a_held_change(stage)
            forgetting.queue = LateQueue(queue.ports, queue.projects, queue.changes, queue.moves)
            assert await forgetting._drop_changes(await forgetting.find(str(repo))) == ()

        play(story)

    def test_a_person_stands_in_no_project_that_is_forgotten(self, repo: Path, tmp_path: Path) -> None:
        """Neither by its id nor because it was the only one."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            old = await stage.engine.projects.at(str(repo))
            other = Project(id="p-2", name="other", path="/elsewhere", main="main")
            await stage.store.write(lambda store: store.record("project.added", other.id, other))
            callers = stage.engine.callers
            assert await callers.only_project() == ""
            await forget(stage, sure=True)
            assert await callers.only_project() == "p-2"
            with pytest.raises(NotFound, match="was forgotten"):
                await callers.identify(Speaker("human"), project=old.id)

        play(story)

    def test_a_name_that_two_projects_have_must_be_said_more_exactly(self, repo: Path, tmp_path: Path) -> None:
        """Path and id are always enough; an unknown name is refused."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            one = await stage.engine.projects.at(str(repo))
            other = Project(id="p-2", name=one.name, path="/elsewhere", main="main")
            await stage.store.write(lambda store: store.record("project.added", other.id, other))
            with pytest.raises(Conflict, match="2 projects are called"):
                await stage.engine.forgetting.find(one.name)
            assert await stage.engine.forgetting.find("/elsewhere") == other
            assert await stage.engine.forgetting.find(one.id) == one
            with pytest.raises(NotFound, match="no-such"):
                await stage.engine.forgetting.find("no-such")

        play(story)

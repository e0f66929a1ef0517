"""A project whose repository is gone: everything waits with the reason, and goes on when it is back."""

from __future__ import annotations

from pathlib import Path

from stage import Stage, play

from windlass.core.address import HUMAN
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Outcome
from windlass.core.nouns.task import TaskState


def carry(repository: Path, to: Path) -> None:
    """Move a repository, as a person does."""
    repository.rename(to)


async def evidence(stage: Stage, name: str) -> str:
    """What `windlass list` says about an agent."""
    return next(view.evidence for view in await stage.engine.status.every() if view.agent.id == name)


async def reports(stage: Stage) -> list[Message]:
    """What the person was told about repositories."""
    said = await stage.store.read(lambda store: store.said(store.projects()[0].id, to=str(HUMAN)))
    return [message for message in said if "is gone" in message.body]


async def a_waiting_change(stage: Stage) -> str:
    """An agent has finished, and its change is in the queue."""
    name = await stage.order()
    await stage.move()
    await stage.engine.queue.pause(str(stage.repo), "not yet")
    await stage.finish(name, "a.txt", "a\n")
    await stage.move()
    await stage.engine.queue.resume(str(stage.repo))
    return name


class TestGone:
    def test_a_change_waits_with_the_reason_and_lands_when_the_repository_is_back(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """Nothing is a trouble of the daemon's, nobody is told twice, and a restart does not tell it again."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await a_waiting_change(stage)
            carry(repo, tmp_path / "away")
            for _ in range(3):
                stage.clock.time += 60
                await stage.move()
            await stage.restart()
            await stage.move()
            change, why = await stage.change_of(name), f"its repository {repo} is gone (noticed 2 min ago)"
            assert change.state is ChangeState.QUEUED
            assert await stage.engine.changes.halted(change) == why
            assert await evidence(stage, name) == f"{change.id} is queued: {why}"
            assert len(await reports(stage)) == 1
            carry(tmp_path / "away", repo)
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            assert await stage.kinds(change.project) == [
                *("project.added", "project.paused", "project.resumed", "project.gone", "project.back")
            ]

        play(story)

    def test_a_change_that_is_tested_goes_back_into_the_queue(self, repo: Path, tmp_path: Path) -> None:
        """Also one that a daemon was killed with: it is not said to be tested for ever."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await a_waiting_change(stage)
            testing = (await stage.change_of(name)).move(ChangeState.TESTING)
            await stage.store.write(lambda store: store.record("change.testing", testing.id, testing))
            carry(repo, tmp_path / "away")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.QUEUED

        play(story)

    def test_its_change_can_be_dropped_and_its_agent_stopped(self, repo: Path, tmp_path: Path) -> None:
        """What the hub knows is enough for both."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            other = await stage.order("Another")
            one = await a_waiting_change(stage)
            carry(repo, tmp_path / "away")
            await stage.move()
            change = await stage.change_of(one)
            assert (await stage.engine.queue.drop(change.id, "")).state is ChangeState.CLOSED
            assert await stage.engine.stopping.agent(other)
            await stage.move()
            assert (await stage.run_of(other)).outcome is Outcome.STOPPED

        play(story)

    def test_a_run_that_ends_meanwhile_is_judged_and_its_change_waits(self, repo: Path, tmp_path: Path) -> None:
        """Its work is in its worktree and goes into the hub; the repository is needed only to land."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            carry(repo, tmp_path / "away")
            await stage.finish(name, "a.txt", "a\n")
            await stage.move()
            assert (await stage.run_of(name)).outcome is Outcome.DONE
            assert (await stage.change_of(name)).state is ChangeState.QUEUED
            carry(tmp_path / "away", repo)
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED

        play(story)

    def test_nobody_is_started_there_by_a_task_or_by_mail(self, repo: Path, tmp_path: Path) -> None:
        """The list says why; both begin when the repository is back."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            idle = await stage.order("First")
            await stage.move()
            await stage.signal(idle, '{"status": "error", "error": "Too hard."}')
            await stage.exit(idle)
            await stage.move()
            name = await stage.order()
            project = await stage.engine.projects.at(str(repo))
            carry(repo, tmp_path / "away")
            new = NewMessage(project=project.id, to=(idle,), body="Go on")
            sent = await stage.engine.talk.send(Speaker(str(HUMAN)), new)
            await stage.move()
            why = f"its repository {repo} is gone"
            assert (await stage.task_of(name)).state is TaskState.OPEN
            assert await evidence(stage, name) == f"can't start: {why} (noticed 0 s ago)"
            assert [sentence for _, sentence in await stage.engine.outlook.of(sent.id)] == [f"waits: {why}"]
            assert f"mail waits: {why}" in await evidence(stage, idle)
            carry(tmp_path / "away", repo)
            await stage.move()
            assert (await stage.task_of(name)).state is TaskState.ACTIVE
            assert (await stage.run_of(idle)).live

        play(story)

"""The tidy tick: what it removes, what it keeps, and what the person is told of that."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from stage import Stage, play

from windlass.core.address import HUMAN
from windlass.core.messages.new_message import NewMessage
from windlass.core.settings.schema import WorkSettings
from windlass.engine.records.messages import channel_of, tell_person


async def told(stage: Stage, name: str) -> list[str]:
    """What the person was told about a worktree that is kept."""
    task = await stage.task_of(name)
    said = await stage.store.read(lambda store: store.messages(channel_of(task.id)))
    return [message.body for message in said if message.to == (str(HUMAN),) and "is kept" in message.body]


class TestKeptWorktrees:
    def test_the_person_is_told_of_a_worktree_that_is_kept_and_why(self, repo: Path, tmp_path: Path) -> None:
        """A file that no snapshot has is named with the folder; a secret in its name is not."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            stage.settings.settings = replace(stage.settings.settings, work=WorkSettings(environment=("MY_TOKEN",)))
            stage.processes.variables["MY_TOKEN"] = "tell-nobody-4711"
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            await stage.commit(name, ".gitignore", "*.log\n")
            (tree / "results.log").write_text("hours of work\n")
            (tree / "tell-nobody-4711.log").write_text("x\n")
            await stage.signal(name)
            await stage.exit(name)
            await stage.move()
            assert (await stage.agent(name)).retired_at is not None
            assert (tree / "results.log").exists()
            [said] = await told(stage, name)
            assert all(part in said for part in (name, "results.log: ignored by git", str(tree)))
            assert "****************.log" in said and "tell-nobody" not in said
            events = await stage.store.read(lambda store: store.events(after=0, limit=1_000))
            assert [event.data["kept"] for event in events if event.kind == "agent.retired"] == [said]

        play(story)

    def test_a_report_for_the_person_alone_is_not_on_the_page_of_another_agent(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """The person sees it, and so does nobody else."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            channel = channel_of((await stage.task_of(name)).id)
            tell = partial(tell_person, channel=channel, now=1.0)
            await stage.store.write(lambda store: tell(store, "for all"))
            await stage.store.write(lambda store: tell(store, "for you", direct=True))
            pages = [await stage.engine.status.page(name, viewer=viewer) for viewer in ("", "neighbour")]
            seen = [[report.body for report in page.reports] for page in pages]
            assert seen == [["for all", "for you"], ["for all"]]

        play(story)

    def test_nothing_is_said_of_a_worktree_that_is_gone_and_saved(self, repo: Path, tmp_path: Path) -> None:
        """There is nothing to look after."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            tree = await stage.worktree(name)
            await stage.finish(name, "a.txt", "x\n")
            await stage.move()
            assert not tree.exists() and await told(stage, name) == []

        play(story)


def test_one_that_a_person_calls_in_the_very_moment_keeps_its_worktree(repo: Path, tmp_path: Path) -> None:
    """The tidy tick has found it finished, and waits for its seat meanwhile."""

    async def story() -> None:
        stage = Stage(repo, tmp_path / "home")
        name = await stage.order()
        await stage.move()
        tree = await stage.worktree(name)
        await stage.finish(name, "a.txt", "x\n")
        held = os.open(tree, os.O_PATH)  # so no later folder has its number
        seat = stage.engine.runs.seats[name]
        async with seat:
            moving = asyncio.create_task(stage.move())
            while not seat._waiters:  # noqa: ASYNC110 - no event tells that somebody waits for a lock
                await asyncio.sleep(0.01)
            project = (await stage.task_of(name)).project
            person = await stage.engine.talk.speaker("")
            await stage.engine.talk.send(person, NewMessage(body="One thing more.", project=project, to=(name,)))
        await moving
        assert (await stage.run_of(name)).live
        assert os.path.samestat(os.fstat(held), tree.stat())
        os.close(held)

    play(story)

"""Landings that meet something unexpected: recorded once, never given up half-way, and others go on."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from small_disk import can_mount, fill, small_disk
from windlass.core.errors import Conflict, Unavailable
from windlass.core.nouns.change import Candidate, ChangeState, Hold, Landing
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import TaskState
from windlass.core.settings.schema import GateSettings
from windlass.engine.records.messages import channel_of, say
from windlass.web import views

Git = Callable[..., str]


class TestUnexpected:
    def test_a_change_that_fails_unexpectedly_is_set_aside_and_the_others_land(
        self, repo: Path, tmp_path: Path
    ) -> None:
        """One poisoned change does not block the queue."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="")
            bad, good = await stage.order("Bad"), await stage.order("Good")
            await stage.move()
            await stage.finish(bad, "a.txt", "")
            await stage.move()
            await stage.finish(good, "b.txt", "")
            await stage.move()
            poisoned = (await stage.change_of(bad)).head
            git = stage.engine.ports.git
            stage_it = git.stage

            async def failing(project: Project, head: str, message: str, **more: Any) -> Candidate:
                if head == poisoned:
                    raise Unavailable("git says no")
                return await stage_it(project, head, message, **more)

            git.stage = failing  # type: ignore[method-assign]  # a fault that only this change has
            stage.check_with("true")
            for _ in range(3):
                await stage.move(troubled=True)
            held = await stage.change_of(bad)
            assert (held.state, held.hold, held.reason) == (ChangeState.HELD, Hold.TROUBLE, "git says no")
            assert (await stage.change_of(good)).state is ChangeState.LANDED

        play(story)

    def test_what_has_landed_is_recorded_even_if_that_failed_at_first(self, repo: Path, tmp_path: Path) -> None:
        """An error right after main moved leaves a landed change, not a closed one."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            git = stage.engine.ports.git
            land = git.land

            async def failing(project: Project, *stack: Candidate) -> Landing:
                await land(project, *stack)
                git.land = land  # type: ignore[method-assign]  # once is enough
                raise Unavailable("The disk is full.")

            git.land = failing  # type: ignore[method-assign]  # main moves, and then something fails
            await stage.finish(name, "a.txt", "")
            await stage.move()
            stage.clock.time += 60
            await stage.move()
            change = await stage.change_of(name)
            assert change.state is ChangeState.LANDED
            assert change.landing is not None

        play(story)

    def test_what_has_landed_can_not_be_given_up(self, repo: Path, tmp_path: Path) -> None:
        """An error right after main moved: until that is recorded, stopping is refused, and undoing is named."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            git = stage.engine.ports.git
            land = git.land

            async def failing(project: Project, *stack: Candidate) -> Landing:
                await land(project, *stack)
                git.land = land  # type: ignore[method-assign]  # once is enough
                raise Unavailable("The disk is full.")

            git.land = failing  # type: ignore[method-assign]  # main moves, and then something fails
            await stage.finish(name, "a.txt", "")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.HELD
            with pytest.raises(Conflict, match="c1 has landed already"):
                await stage.engine.changes.withdraw(name, "stopped by hand")

            stage.clock.time += 60
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED

        play(story)

    @pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")
    def test_a_change_waits_for_room_and_lands_by_itself(self, repo: Path, tmp_path: Path) -> None:
        """The person's disk is full: the change is held with how much it needs, and tried again without a word."""

        async def story(mine: Path) -> None:
            stage = Stage(mine, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            fill(mine / "ballast")
            await stage.finish(name, "a.txt", "large\n" * 9000)
            await stage.move()
            held = await stage.change_of(name)
            assert (held.state, held.hold) == (ChangeState.HELD, Hold.CHECKOUT)
            assert "has no room: this change needs" in held.reason and not (mine / "a.txt").exists()

            (mine / "ballast").unlink()
            stage.clock.time += 60
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            assert (mine / "a.txt").is_file()

        mine = tmp_path / "mine"
        mine.mkdir()
        with small_disk(mine, "8m"):
            shutil.copytree(repo, mine, dirs_exist_ok=True)
            play(lambda: story(mine))

    def test_a_held_change_is_not_given_up_while_it_lands(self, repo: Path, tmp_path: Path) -> None:
        """Whoever is first goes on alone: main never has what was given up."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            (repo / "a.txt").write_text("in the way\n")
            await stage.finish(name, "a.txt", "")
            await stage.move()
            (repo / "a.txt").unlink()
            git = stage.engine.ports.git
            land = git.land
            giving_up: list[asyncio.Task[bool]] = []

            async def slow(project: Project, *stack: Candidate) -> Landing:
                giving_up.append(asyncio.create_task(stage.engine.changes.withdraw(name, "stopped by hand")))
                await asyncio.wait(giving_up, timeout=0.5)  # it would be over by then, if it did not wait for us
                return await land(project, *stack)

            git.land = slow  # type: ignore[method-assign]  # as with a large repository
            stage.clock.time += 60
            await stage.move()
            with pytest.raises(Conflict):
                await giving_up[0]
            assert (await stage.change_of(name)).state is ChangeState.LANDED

        play(story)

    def test_the_projects_own_folder_shows_what_happens(self, repo: Path, tmp_path: Path) -> None:
        """`process-status.json` is kept where `windlass init` made a folder, and says in the end that we stopped."""

        async def story() -> None:
            (repo / ".windlass").mkdir()
            (repo / ".windlass" / ".gitignore").write_text("*\n")
            file = repo / ".windlass" / "process-status.json"
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order("Say hello")
            await stage.move()
            assert json.loads(file.read_text())[name]["status"] == "running"
            await stage.finish(name, "a.txt", "")
            await stage.move()
            shown = json.loads(file.read_text())
            assert (shown[name]["status"], shown["server"]["status"]) == ("completed", "running")
            assert shown["server"]["startedAt"] == "1970-01-01T00:16:40Z"
            await stage.engine.close()
            assert json.loads(file.read_text())["server"]["status"] == "stopped"

        play(story)

    def test_a_refused_change_whose_author_has_brought_a_later_one_is_closed(self, repo: Path, tmp_path: Path) -> None:
        """Nobody would ever mend the first: the second has all of it. The task is done when that has landed."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="! grep -q bad a.txt")
            stage.settings.settings = replace(stage.settings.settings, gate=GateSettings(strict=True))
            name = await stage.order()
            await stage.move()
            await stage.engine.queue.pause(str(repo), "until both are in line")
            await stage.finish(name, "a.txt", "bad\n")
            await stage.move()
            first = await stage.change_of(name)
            again = partial(say, sender="human", to=(name,), body="Look again.", channel=channel_of(first.task))
            await stage.store.write(lambda store: again(store, now=stage.clock.time))
            await stage.move()
            await stage.finish(name, "a.txt", "good\n")
            await stage.move()
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            [*_, older, later] = await stage.store.read(lambda store: store.changes_of_task(first.task))
            assert (older.id, older.state, older.reason) == (first.id, ChangeState.CLOSED, "c2 has taken its place")
            assert later.state is ChangeState.LANDED
            assert (await stage.task_of(name)).state is TaskState.DONE

        play(story)

    def test_the_receipt_has_the_tests_before_and_after(self, repo: Path, tmp_path: Path) -> None:
        """What the runner counted is kept with each landing, and compared with what ran before."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks='echo "Ran $(cat count.*) tests in 0.1s"; echo OK')
            receipts = []
            for count in ("5", "3"):
                name = await stage.order()
                await stage.move()
                await stage.finish(name, "count.txt", count)
                await stage.move()
                change = await stage.change_of(name)
                if change.hold is Hold.GUARD:  # tests are gone: a person has looked
                    await stage.engine.queue.release(change.id)
                    await stage.move()
                    change = await stage.change_of(name)
                assert change.landing is not None
                receipts.append(views.receipt(change, change.landing, None, slice(0, 1))["tests"])
            assert receipts[0] == {"before": None, "after": {"ran": 5, "skipped": 0}, "complaint": ""}
            assert receipts[1]["before"] == receipts[0]["after"]
            assert receipts[1]["complaint"] == "2 fewer ran"

        play(story)

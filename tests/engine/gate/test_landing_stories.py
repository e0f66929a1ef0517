"""From a task to main: what lands, what goes back, what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, play

from windlass.core.errors import Conflict, Unavailable
from windlass.core.nouns.change import Candidate, ChangeState, Hold, Landing
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import TaskState
from windlass.core.settings.schema import GateSettings
from windlass.engine.records.messages import channel_of, say
from windlass.web import views

Git = Callable[..., str]


class TestLanding:
    def test_a_finished_change_reaches_main(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Committed, said done, checked on the merged tree, landed; the task is done and the agent retired."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="grep -q fixed login.py")
            name = await stage.order("Fix the login race")
            await stage.move()
            await stage.finish(name, "login.py", "fixed = True\n")
            await stage.move()

            change = await stage.change_of(name)
            assert change.state is ChangeState.LANDED
            assert change.landing is not None
            assert git("rev-parse", "main", cwd=repo) == change.landing.after
            assert git("rev-parse", "main^{tree}", cwd=repo) == change.landing.tree == change.checks[0].tree
            assert (await stage.task_of(name)).state is TaskState.DONE
            assert (await stage.agent(name)).retired_at is not None
            assert (repo / "login.py").read_text() == "fixed = True\n"

        play(story)

    def test_a_red_change_goes_back_with_the_exact_output_and_lands_when_mended(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """The author is woken with what the check printed; main has not moved until it is green."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="cat a.txt; test ! -e broken")
            before = git("rev-parse", "main", cwd=repo)
            name = await stage.order()
            await stage.move()
            await stage.commit(name, "broken", "")
            await stage.finish(name, "a.txt", "the exact words\n")
            await stage.move()

            assert (await stage.change_of(name)).state is ChangeState.REJECTED
            assert (await stage.task_of(name)).state is TaskState.ACTIVE
            assert git("rev-parse", "main", cwd=repo) == before
            second = await stage.run_of(name)
            assert second.number == 2
            assert "the exact words" in stage.prompt_of(second)

            (await stage.worktree(name) / "broken").unlink()
            await stage.finish(name, "b.txt", "")
            await stage.move()
            change = await stage.change_of(name)
            assert (change.state, change.returns) == (ChangeState.LANDED, 1)

        play(story)

    def test_what_is_green_alone_but_red_together_does_not_land(self, repo: Path, tmp_path: Path) -> None:
        """Each of two changes passes by itself; the second is checked on the tree with the first in it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="test ! -e a -o ! -e b")
            first, second = await stage.order("One"), await stage.order("Two")
            await stage.move()
            await stage.finish(first, "a", "")
            await stage.move()
            await stage.finish(second, "b", "")
            await stage.move()

            assert (await stage.change_of(first)).state is ChangeState.LANDED
            assert (await stage.change_of(second)).state is ChangeState.REJECTED

        play(story)

    def test_a_conflict_goes_back_with_both_sides(self, repo: Path, tmp_path: Path) -> None:
        """The author is told what main has and what it has itself."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            first, second = await stage.order("One"), await stage.order("Two")
            await stage.move()
            await stage.finish(first, "README.md", "first words\n")
            await stage.move()
            await stage.finish(second, "README.md", "second words\n")
            await stage.move()

            change = await stage.change_of(second)
            assert (change.state, change.reason) == (ChangeState.REJECTED, "conflicts with main")
            prompt = stage.prompt_of(await stage.run_of(second))
            assert "first words" in prompt
            assert "second words" in prompt

        play(story)

    def test_after_too_many_returns_a_person_is_asked(self, repo: Path, tmp_path: Path) -> None:
        """The author gets a limited number of tries; then the change is held with an open question."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="test ! -e a.txt")
            name = await stage.order()
            for number in range(3):
                await stage.move()
                await stage.finish(name, "a.txt", f"try {number}\n")
            await stage.move()

            change = await stage.change_of(name)
            assert (change.state, change.hold, change.returns) == (ChangeState.HELD, Hold.HUMAN, 2)
            asks = await stage.store.read(lambda store: store.open_asks())
            assert len(asks) == 1

        play(story)

    def test_without_a_check_command_nothing_lands_until_there_is_one(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """The change is held and the person asked; setting the command is all it takes."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="")
            before = git("rev-parse", "main", cwd=repo)
            name = await stage.order()
            await stage.move()
            await stage.finish(name, "a.txt", "")
            await stage.move()
            held = await stage.change_of(name)
            assert (held.state, held.hold) == (ChangeState.HELD, Hold.CHECKS)
            assert git("rev-parse", "main", cwd=repo) == before

            assert len(await stage.store.read(lambda store: store.open_asks())) == 1

            stage.check_with("true")
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            assert await stage.store.read(lambda store: store.open_asks()) == []

        play(story)

    def test_local_changes_in_the_way_hold_the_change_until_they_are_gone(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """Nothing of the person's is overwritten; when the file is out of the way, the change lands by itself."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            (repo / "README.md").write_text("my own edit\n")
            await stage.finish(name, "README.md", "the agent's edit\n")
            await stage.move()
            held = await stage.change_of(name)
            assert (held.state, held.hold) == (ChangeState.HELD, Hold.CHECKOUT)
            assert "README.md" in held.reason
            assert (repo / "README.md").read_text() == "my own edit\n"

            git("checkout", "-q", "README.md", cwd=repo)
            stage.clock.time += 60
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.LANDED
            kinds = ["change.queued", "change.staged", "change.tested", "change.held", "change.landed"]
            assert await stage.kinds(held.id) == kinds, "the same tree is not tested twice"

        play(story)

    def test_undo_takes_a_landed_change_back_through_the_same_gate(self, repo: Path, tmp_path: Path) -> None:
        """Undoing is a change like any other; it is checked, and doing it twice is refused."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.finish(name, "a.txt", "new\n")
            await stage.move()
            undo = await stage.engine.changes.undo((await stage.change_of(name)).id)
            await stage.move()

            assert (await stage.engine.changes.get(undo.id)).state is ChangeState.LANDED
            assert not (repo / "a.txt").exists()

        play(story)

    def test_a_change_that_main_has_already_is_closed(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """When somebody else brought the same commits to main, there is nothing left to do."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="")
            name = await stage.order()
            await stage.move()
            await stage.finish(name, "a.txt", "")
            await stage.move()
            git("merge", "-q", "--ff-only", f"work/{name}", cwd=repo)
            stage.check_with("true")
            await stage.move()

            assert (await stage.change_of(name)).state is ChangeState.CLOSED
            assert (await stage.task_of(name)).state is TaskState.DONE

        play(story)

    def test_a_change_to_how_changes_are_tested_waits_for_a_person(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Nobody decides how its own work is tested; when a person has merged it by hand, it is closed."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            (await stage.worktree(name) / ".windlass").mkdir(exist_ok=True)
            await stage.finish(name, ".windlass/config.toml", '[checks]\ncommand = "true"\n')
            await stage.move()
            held = await stage.change_of(name)
            assert (held.state, held.hold) == (ChangeState.HELD, Hold.GUARD)

            git("merge", "-q", "--ff-only", f"work/{name}", cwd=repo)
            stage.clock.time += 60
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.CLOSED

        play(story)

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

    def test_who_has_fewer_tests_run_is_named_in_the_receipt(self, repo: Path, tmp_path: Path) -> None:
        """What the runner counted is kept with each landing, and compared with what ran before."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks='echo "Ran $(cat count.txt) tests in 0.1s"; echo OK')
            receipts = []
            for count in ("5", "3"):
                name = await stage.order()
                await stage.move()
                await stage.finish(name, "count.txt", count)
                await stage.move()
                change = await stage.change_of(name)
                assert change.landing is not None
                receipts.append(views.receipt(change, change.landing, None)["tests"])
            assert receipts[0] == {"before": None, "after": {"ran": 5, "skipped": 0}, "complaint": ""}
            assert receipts[1]["before"] == receipts[0]["after"]
            assert receipts[1]["complaint"] == "2 fewer ran"

        play(story)

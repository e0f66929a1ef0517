"""From a task to main: what lands, what goes back, what waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stage import Stage, play

from windlass.core.nouns.change import ChangeState, Hold
from windlass.core.nouns.task import TaskState

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

    def test_what_was_in_the_way_is_gone_but_other_checks_count_now(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """A held change has passed; by checks that are not the project's any more, so it is tested again."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            (repo / "README.md").write_text("my own edit\n")
            await stage.finish(name, "README.md", "the agent's edit\n")
            await stage.move()
            assert (await stage.change_of(name)).hold is Hold.CHECKOUT

            git("checkout", "-q", "README.md", cwd=repo)
            stage.check_with("! grep -rq edit")
            stage.clock.time += 60
            await stage.move()
            assert (await stage.change_of(name)).state is ChangeState.REJECTED

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

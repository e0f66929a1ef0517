"""The line before the gate, as people arrange it: entering, waiting, going first, leaving, and a halt for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, play

import patience
from windlass.core.errors import Conflict, NotFound
from windlass.core.gate.reviews import compose
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.document import Document
from windlass.core.nouns.task import TaskState

Git = Callable[..., str]


def branch(repo: Path, git: Git, name: str, file: str, text: str = "mine\n") -> None:
    """The person commits a file on a branch of their own, and goes back to main."""
    git("switch", "-q", "-C", name, cwd=repo)
    (repo / file).write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", f"Write {file}", cwd=repo)
    git("switch", "-q", "main", cwd=repo)


async def reaches(stage: Stage, key: str, state: ChangeState) -> None:
    """Wait until a change is that far."""
    ear = stage.engine.bell.ear()
    async with asyncio.timeout(patience.seconds(20)):
        while (await now(stage, key)).state is not state:
            await ear.wait()
            ear.clear()


async def now(stage: Stage, key: str) -> Change:
    return await stage.engine.changes.get(key)


async def finished(stage: Stage, title: str, file: str) -> str:
    """An agent that has said done; returns its name."""
    name = await stage.order(title)
    await stage.move()
    await stage.finish(name, file, f"{title}\n")
    await stage.move()
    return name


class TestAdd:
    def test_a_persons_branch_lands_like_any_other_change(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """It is checked on the merged tree, has no author, and is called by its newest commit."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="grep -q mine hand.txt")
            branch(repo, git, "by-hand", "hand.txt")
            made = await stage.engine.queue.add(str(repo), "by-hand")
            await stage.move()

            landed = await now(stage, made.id)
            assert (landed.state, landed.agent, landed.task) == (ChangeState.LANDED, "", "")
            assert landed.title == "Write hand.txt"
            assert (repo / "hand.txt").read_text() == "mine\n"

        play(story)

    def test_a_branch_that_is_refused_is_closed_and_can_be_added_again(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """There is no author to send it back to; the mended branch is a new change."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="grep -q right hand.txt")
            branch(repo, git, "by-hand", "hand.txt", "wrong\n")
            first = await stage.engine.queue.add(str(repo), "by-hand")
            await stage.move()
            assert (await now(stage, first.id)).state is ChangeState.CLOSED

            branch(repo, git, "by-hand", "hand.txt", "right\n")
            second = await stage.engine.queue.add(str(repo), "by-hand")
            await stage.move()
            assert second.id != first.id
            assert (await now(stage, second.id)).state is ChangeState.LANDED

        play(story)

    def test_adding_it_again_takes_the_new_commits(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """A branch has one change at a time; the same commits twice are refused."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            branch(repo, git, "by-hand", "one.txt")
            first = await stage.engine.queue.add(str(repo), "by-hand")
            with pytest.raises(Conflict, match=first.id):
                await stage.engine.queue.add(str(repo), "by-hand")
            branch(repo, git, "by-hand", "two.txt")
            second = await stage.engine.queue.add(str(repo), "by-hand")
            assert (second.id, second.head) == (first.id, git("rev-parse", "by-hand", cwd=repo))
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (repo / "two.txt").exists()

        play(story)

    def test_an_agents_branch_that_is_on_its_way_is_not_added(self, repo: Path, tmp_path: Path) -> None:
        """Its own change is there already."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            name = await stage.order()
            await stage.move()
            await stage.engine.queue.pause(str(repo), "")
            await stage.finish(name, "a.txt", "a\n")
            await stage.move()
            with pytest.raises(Conflict, match=name):
                await stage.engine.queue.add(str(repo), f"work/{name}")

        play(story)


class TestHold:
    def test_what_is_held_by_hand_lands_when_it_is_released(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """It says why it waits, asks for the word, and goes on with it; nothing else is asked any more."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            name = await finished(stage, "One", "a.txt")
            key = (await stage.change_of(name)).id
            await stage.engine.queue.hold(key, "after the release")
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            held = await now(stage, key)
            assert (held.state, held.hold) == (ChangeState.HELD, Hold.HUMAN)
            assert held.reason == "held by hand: after the release"
            assert [question.message.body for question in await stage.engine.talk.questions()] == [
                f"{key} (One) is held by hand: after the release. `windlass queue release {key}` lets it go on."
            ]
            with pytest.raises(Conflict, match="is held"):
                await stage.engine.queue.hold(key, "")

            await stage.engine.queue.release(key)
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert await stage.engine.talk.questions() == []
            assert await stage.store.read(lambda store: store.open_asks()) == []
            with pytest.raises(Conflict, match=f"{key} has landed"):
                await stage.engine.queue.hold(key, "")

        play(story)

    @pytest.mark.parametrize("verdict", ["true", "false"])
    def test_a_hold_during_the_test_counts(self, repo: Path, git: Git, tmp_path: Path, verdict: str) -> None:
        """Main does not move after it was said, nor does the change go back, whatever the checks find."""

        async def story() -> None:
            go = tmp_path / "go"
            stage = Stage(repo, tmp_path / "home", checks=f"until [ -e {go} ]; do sleep 0.01; done; {verdict}")
            before = git("rev-parse", "main", cwd=repo)
            branch(repo, git, "by-hand", "hand.txt")
            key = (await stage.engine.queue.add(str(repo), "by-hand")).id
            moving = asyncio.create_task(stage.move())
            await reaches(stage, key, ChangeState.TESTING)
            await stage.engine.queue.hold(key, "")
            go.touch()
            await moving
            assert (await now(stage, key)).state is ChangeState.HELD
            assert git("rev-parse", "main", cwd=repo) == before

        play(story)

    def test_what_is_found_about_older_commits_does_not_count_for_newer_ones(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """While the old ones were tested, and found wrong, right ones have taken their place: those are tested."""

        async def story() -> None:
            go = tmp_path / "go"
            check = f"until [ -e {go} ]; do sleep 0.01; done; grep -q right hand.txt"
            stage = Stage(repo, tmp_path / "home", checks=check)
            branch(repo, git, "by-hand", "hand.txt", "wrong\n")
            key = (await stage.engine.queue.add(str(repo), "by-hand")).id
            moving = asyncio.create_task(stage.move())
            await reaches(stage, key, ChangeState.TESTING)
            await stage.engine.queue.hold(key, "")
            branch(repo, git, "by-hand", "hand.txt", "right\n")
            assert (await stage.engine.queue.add(str(repo), "by-hand")).id == key
            go.touch()
            await moving
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert (repo / "hand.txt").read_text() == "right\n"

        play(story)

    def test_an_author_that_goes_on_does_not_undo_a_persons_hold(self, repo: Path, tmp_path: Path) -> None:
        """Its new commits are taken in, and wait with the rest for the person's word."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            name = await finished(stage, "One", "a.txt")
            key = (await stage.change_of(name)).id
            await stage.engine.queue.hold(key, "later")
            await stage.engine.reviews.comment("", key, compose("[BLOCKING] Say why."))
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            await stage.finish(name, "b.txt", "why\n")
            await stage.move()
            held = await now(stage, key)
            assert (held.state, held.hold, held.reason) == (ChangeState.HELD, Hold.HUMAN, "held by hand: later")
            [comment] = [each for each in await stage.engine.reviews.said(held) if each.remark and each.remark.blocking]
            await stage.engine.reviews.resolve("", key, comment.id)
            await stage.engine.queue.release(key)
            await stage.move()
            assert (repo / "b.txt").exists()

        play(story)

    def test_what_is_not_held_cannot_be_released(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The answer says where it is; a change that is not there is named."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            branch(repo, git, "by-hand", "hand.txt")
            key = (await stage.engine.queue.add(str(repo), "by-hand")).id
            with pytest.raises(Conflict, match="queued"):
                await stage.engine.queue.release(key)
            with pytest.raises(NotFound, match="c99"):
                await stage.engine.queue.release("c99")

        play(story)


class TestDrop:
    def test_a_dropped_change_ends_with_its_task(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Main does not move, the author is not woken, and nobody is asked."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="")
            before = git("rev-parse", "main", cwd=repo)
            name = await finished(stage, "One", "a.txt")
            change = await stage.change_of(name)
            assert change.hold is Hold.CHECKS
            await stage.engine.queue.drop(change.id, "not wanted")
            stage.check_with("true")
            await stage.move()
            dropped = await now(stage, change.id)
            assert (dropped.state, dropped.reason) == (ChangeState.CLOSED, "not wanted")
            assert (await stage.task_of(name)).state is TaskState.CANCELLED
            assert git("rev-parse", "main", cwd=repo) == before
            assert await stage.store.read(lambda store: store.open_asks()) == []

        play(story)

    def test_what_was_learned_from_a_hopeless_change_is_kept(self, repo: Path, tmp_path: Path) -> None:
        """It went back, and was given up in the end: why it never landed is a document, and can be read."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="test ! -e a.txt || { echo 'a is bad'; false; }")
            name = await finished(stage, "One", "a.txt")
            change = await stage.change_of(name)
            await stage.engine.runs.stop(name, "stopped by hand")
            await stage.move()
            assert (await now(stage, change.id)).state is ChangeState.CLOSED
            kept = await stage.store.read(lambda store: store.find(Document, f"project-1/learnings/{change.id}"))
            assert kept is not None
            assert kept.body.startswith(f"# {change.id}: One\n\nGiven up: stopped by hand. It went back 1 time.")
            assert "a is bad" in kept.body

        play(story)

    def test_what_its_author_mends_is_not_dropped(self, repo: Path, tmp_path: Path) -> None:
        """It would only come again: the author is to be stopped."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home", checks="test ! -e a.txt")
            name = await finished(stage, "One", "a.txt")
            change = await stage.change_of(name)
            assert change.state is ChangeState.REJECTED
            with pytest.raises(Conflict, match="would only bring it again") as refused:
                await stage.engine.queue.drop(change.id, "")
            assert f"windlass stop {name}" in refused.value.hint

        play(story)

    def test_a_drop_during_the_test_counts(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Main does not move after it was said."""

        async def story() -> None:
            go = tmp_path / "go"
            stage = Stage(repo, tmp_path / "home", checks=f"until [ -e {go} ]; do sleep 0.01; done")
            before = git("rev-parse", "main", cwd=repo)
            branch(repo, git, "by-hand", "hand.txt")
            key = (await stage.engine.queue.add(str(repo), "by-hand")).id
            moving = asyncio.create_task(stage.move())
            await reaches(stage, key, ChangeState.TESTING)
            await stage.engine.queue.drop(key, "")
            go.touch()
            await moving
            assert (await now(stage, key)).state is ChangeState.CLOSED
            assert git("rev-parse", "main", cwd=repo) == before

        play(story)


class TestOrder:
    def test_what_is_wanted_first_lands_first(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The last word counts: of two that were put first, the later one goes before the other."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            await stage.engine.queue.pause(str(repo), "")
            for name in ("one", "two", "three"):
                branch(repo, git, name, f"{name}.txt")
                await stage.engine.queue.add(str(repo), name)
            await stage.engine.queue.first("c2")
            await stage.engine.queue.first("c3")
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            events = await stage.store.read(lambda store: store.events(after=0, limit=10_000))
            assert [event.subject for event in events if event.kind == "change.landed"] == ["c3", "c2", "c1"]

        play(story)

    def test_a_flaky_refusal_can_be_tried_again_as_it_is(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Nothing that was found before counts, and the author need do nothing."""

        async def story() -> None:
            well = tmp_path / "well"
            stage = Stage(repo, tmp_path / "home", checks=f"test ! -e a.txt -o -e {well}")
            name = await finished(stage, "One", "a.txt")
            change = await stage.change_of(name)
            assert change.state is ChangeState.REJECTED
            well.touch()
            await stage.engine.queue.retry(change.id)
            with pytest.raises(Conflict, match="about to be tried"):
                await stage.engine.queue.retry(change.id)
            await stage.move()
            assert (await now(stage, change.id)).state is ChangeState.LANDED

        play(story)

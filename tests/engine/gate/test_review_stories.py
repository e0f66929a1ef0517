"""Reviews: who looks, what blocks, how an author's answer comes back, and who settles it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from review_stage import BLOCKS, LOOK, done, now, proposed, reviewed, said, says
from stage import Stage, play

from windlass.core.errors import Conflict, NotAllowed, NotFound
from windlass.core.gate.reviews import compose
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.change import ChangeState, Hold
from windlass.core.nouns.message import Kind, Opinion
from windlass.core.nouns.task import TaskState

Git = Callable[..., str]


class TestReview:
    def test_what_is_reviewed_lands_after_the_summary(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """The reviewer reads the change's own commit, leaves no branch, and its summary goes to the gate."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            _, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            held = await now(stage, key)
            assert (held.state, held.hold, held.reason) == (ChangeState.HELD, Hold.REVIEW, f"{reviewer} reviews it")
            assert (await stage.agent(reviewer)).permissions is Permissions.READ
            tree = await stage.worktree(reviewer)
            assert git("rev-parse", "HEAD", cwd=tree) == held.head
            assert (tree / "a.txt").read_text() == "One\n"
            assert f"Review the change {key}: One" in stage.prompt_of(await stage.run_of(reviewer))

            await done(stage, reviewer, "It is sound.")
            assert (await now(stage, key)).state is ChangeState.LANDED
            [summary] = [each for each in await said(stage, key) if each.kind is Kind.REPORT]
            assert (summary.sender, summary.to, summary.body) == (reviewer, ("system",), "It is sound.")
            assert summary.remark is not None
            assert (summary.remark.opinion, summary.remark.head) == (Opinion.APPROVE, held.head)
            assert (await stage.task_of(reviewer)).state is TaskState.DONE
            assert (await stage.agent(reviewer)).retired_at is not None
            assert f"work/{reviewer}" not in git("branch", "--list", cwd=repo)

        play(story)

    def test_a_blocking_comment_goes_to_the_author_and_its_answer_comes_back(
        self, repo: Path, git: Git, tmp_path: Path
    ) -> None:
        """File, line and text wake the author; its new commit and words wake the reviewer, who accepts it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            comment = await says(stage, reviewer, key)
            other = await stage.engine.reviews.comment("", key, compose("[BLOCKING] Say why."))
            await stage.engine.reviews.resolve("", key, other.id)
            await done(stage, reviewer)
            assert "blocks it: This loses the lock." in (await now(stage, key)).reason
            assert (await stage.task_of(reviewer)).state is TaskState.WAITING
            woken = await stage.run_of(author)
            assert woken.number == 2
            prompt = stage.prompt_of(woken)
            assert f"{comment.id} from {reviewer} (comment, on a.txt:1)" in prompt
            assert "This loses the lock." in prompt
            assert f"This blocks your change {key}" in prompt

            await stage.commit(author, "a.txt", "with the lock\n")
            await done(stage, author, "Took the lock first.")
            assert (await now(stage, key)).state is ChangeState.HELD
            again = await stage.run_of(reviewer)
            assert again.number == 2
            assert "Took the lock first." in stage.prompt_of(again)
            assert "There are new commits" in stage.prompt_of(again)
            assert (await stage.worktree(reviewer) / "a.txt").read_text() == "with the lock\n"

            await stage.engine.reviews.resolve(again.id, key, comment.id)
            await done(stage, reviewer, "Now it is sound.")
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert (repo / "a.txt").read_text() == "with the lock\n"
            assert (await stage.task_of(reviewer)).state is TaskState.DONE

        play(story)

    def test_a_reviewer_that_reaches_no_socket_says_it_in_its_result(self, repo: Path, tmp_path: Path) -> None:
        """Marked paragraphs are comments; a mark settles one of its own; what was said by command counts once."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            twice = "[SUGGESTION] Say why."
            await says(stage, reviewer, key, compose("Say why."))
            await done(stage, reviewer, f"Nearly.\n\n[BLOCKING] a.txt:1 This loses\nthe lock.\n\n- {twice}\n")
            comments = [each for each in await said(stage, key) if each.kind is Kind.COMMENT]
            assert [(comment.body, comment.remark and comment.remark.line) for comment in comments] == [
                ("Say why.", 0),
                ("This loses\nthe lock.", 1),
            ]
            await stage.commit(author, "a.txt", "with the lock\n")
            await done(stage, author)
            await done(stage, reviewer, f"[RESOLVED] {comments[1].id}: it is there.")
            assert (await now(stage, key)).state is ChangeState.LANDED

        play(story)

    def test_a_comment_that_is_kept_open_goes_back_until_a_person_is_asked(self, repo: Path, tmp_path: Path) -> None:
        """The author hears what is missing; after the allowed returns neither is woken any more."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            comment = await says(stage, reviewer, key)
            await done(stage, reviewer)
            for number in range(2):
                await done(stage, author, f"It is right as it is, {number}.")
                assert "There is no new commit" in stage.prompt_of(await stage.run_of(reviewer))
                await done(stage, reviewer, f"No, look again, {number}.")
                assert f"No, look again, {number}." in stage.prompt_of(await stage.run_of(author))
            await done(stage, author, "I insist.")
            runs = (await stage.run_of(author)).number, (await stage.run_of(reviewer)).number
            assert runs == (4, 3)
            [asked] = await stage.engine.talk.questions()
            assert "after 2 answers" in asked.message.body
            assert f"windlass change resolve {key} {comment.id}" in asked.message.body

            await stage.engine.reviews.resolve("", key, comment.id)
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert await stage.engine.talk.questions() == []
            assert (await stage.task_of(reviewer)).state is TaskState.DONE

        play(story)

    def test_what_nobody_waits_for_ends_with_the_change(self, repo: Path, tmp_path: Path) -> None:
        """A reviewer whose comment was never answered is done when its author is stopped."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            await says(stage, reviewer, key)
            await done(stage, reviewer)
            await stage.engine.runs.stop(author, "stopped by hand")
            stage.processes.exit((await stage.run_of(author)).id, 1)
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.CLOSED
            assert (await stage.task_of(reviewer)).state is TaskState.DONE
            with pytest.raises(Conflict, match="closed"):
                await stage.engine.reviews.start(key, LOOK)

        play(story)


class TestComment:
    def test_a_suggestion_holds_nothing_and_wakes_nobody(self, repo: Path, tmp_path: Path) -> None:
        """The change lands; the author is not started for what is only good to know."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            made = await stage.engine.reviews.comment("", key, compose("I would call it b.", file="a.txt"))
            assert made.to == (author,)
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert (await stage.run_of(author)).number == 1

        play(story)

    def test_a_suggestion_is_told_with_the_next_reason_to_go_on(self, repo: Path, tmp_path: Path) -> None:
        """It waits in the author's mail until there is something to be done."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            await stage.engine.reviews.comment("", key, compose("I would call it b."))
            await stage.move()
            assert (await stage.run_of(author)).number == 1
            await stage.engine.reviews.comment("", key, BLOCKS)
            await stage.move()
            assert "I would call it b." in stage.prompt_of(await stage.run_of(author))

        play(story)

    def test_a_persons_comment_works_the_same(self, repo: Path, tmp_path: Path) -> None:
        """The author mends it, the person is asked, and their word lets it land."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            comment = await stage.engine.reviews.comment("", key, compose("[BLOCKING] This loses the lock."))
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await now(stage, key)).hold is Hold.REVIEW
            await stage.commit(author, "a.txt", "with the lock\n")
            await done(stage, author, "Took it.")
            [asked] = await stage.engine.talk.questions()
            assert "The author says: Took it." in asked.message.body
            assert (await now(stage, key)).state is ChangeState.HELD

            await stage.engine.reviews.resolve("", key, comment.id)
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert await stage.engine.talk.questions() == []

        play(story)

    def test_a_comment_during_the_test_counts(self, repo: Path, git: Git, tmp_path: Path) -> None:
        """Main does not move after it was said, although the checks pass."""

        async def story() -> None:
            go = tmp_path / "go"
            stage = Stage(repo, tmp_path / "home", checks=f"until [ -e {go} ]; do sleep 0.01; done")
            before = git("rev-parse", "main", cwd=repo)
            _, key = await proposed(stage)
            await stage.engine.queue.resume(str(repo))
            moving, ear = asyncio.create_task(stage.move()), stage.engine.bell.ear()
            while (await now(stage, key)).state is not ChangeState.TESTING:
                await ear.wait()
                ear.clear()
            await stage.engine.reviews.comment("", key, BLOCKS)
            go.touch()
            await moving
            assert (await now(stage, key)).hold is Hold.REVIEW
            assert git("rev-parse", "main", cwd=repo) == before

        play(story)

    def test_what_is_settled_before_it_was_heard_wakes_nobody(self, repo: Path, tmp_path: Path) -> None:
        """The author never hears of it, and the change lands."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            comment = await stage.engine.reviews.comment("", key, BLOCKS)
            await stage.engine.reviews.resolve("", key, comment.id)
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert (await stage.run_of(author)).number == 1
            with pytest.raises(Conflict, match="has landed"):
                await stage.engine.reviews.comment("", key, BLOCKS)

        play(story)

    def test_what_waits_for_something_else_is_held_for_the_comment_afterwards(self, repo: Path, tmp_path: Path) -> None:
        """An edit in the way has gone, but the comment is still open."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            _, key = await proposed(stage)
            (repo / "a.txt").write_text("my own\n")
            await stage.engine.queue.resume(str(repo))
            await stage.move()
            assert (await now(stage, key)).hold is Hold.CHECKOUT
            await stage.engine.reviews.comment("", key, BLOCKS)
            (repo / "a.txt").unlink()
            stage.clock.time += 100
            await stage.move()
            assert (await now(stage, key)).hold is Hold.REVIEW
            with pytest.raises(Conflict, match="blocks"):
                await stage.engine.queue.release(key)

        play(story)


class TestWhoMay:
    def test_nobody_judges_their_own_work(self, repo: Path, tmp_path: Path) -> None:
        """An author answers, but neither blocks, nor settles, nor reviews its change."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            author, key = await proposed(stage)
            comment = await stage.engine.reviews.comment("", key, BLOCKS)
            await stage.move()
            run = (await stage.run_of(author)).id
            with pytest.raises(NotAllowed, match="can't settle"):
                await stage.engine.reviews.resolve(run, key, comment.id)
            with pytest.raises(NotAllowed, match="can't block"):
                await says(stage, author, key)
            answer = await stage.engine.reviews.comment(run, key, compose("Why?"), comment.id)
            assert answer.to == ("human",)
            assert (await now(stage, key)).state is ChangeState.HELD

        play(story)

    def test_an_agent_that_does_not_review_it_has_no_say(self, repo: Path, tmp_path: Path) -> None:
        """No agent can hold up another's work unless it was asked to look at it."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            _, key = await proposed(stage)
            other = await stage.order("Other")
            await stage.move()
            with pytest.raises(NotAllowed, match=f"{other} does not review {key}"):
                await says(stage, other, key)

        play(story)

    def test_a_reviewer_settles_only_its_own_comments(self, repo: Path, tmp_path: Path) -> None:
        """A person's are theirs, also where the reviewer's last words say otherwise."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            _, key = await proposed(stage)
            comment = await stage.engine.reviews.comment("", key, BLOCKS)
            reviewer = await reviewed(stage, key)
            with pytest.raises(NotAllowed, match="is human's"):
                await stage.engine.reviews.resolve((await stage.run_of(reviewer)).id, key, comment.id)
            await done(stage, reviewer, f"[RESOLVED] {comment.id}")
            assert (await now(stage, key)).state is ChangeState.HELD
            with pytest.raises(NotFound, match="no comment m99"):
                await stage.engine.reviews.resolve("", key, "m99")

        play(story)

    def test_a_change_has_one_review_at_a_time(self, repo: Path, tmp_path: Path) -> None:
        """The second is refused with the name of the first."""

        async def story() -> None:
            stage = Stage(repo, tmp_path / "home")
            _, key = await proposed(stage)
            reviewer = await reviewed(stage, key)
            with pytest.raises(Conflict, match=f"{reviewer} reviews {key} already"):
                await stage.engine.reviews.start(key, LOOK)

        play(story)

"""Reviews that the settings ask for: each change gets one, and the person is asked where that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from review_stage import done, now
from stage import Stage, play

from windlass.core.nouns.change import ChangeState, Hold
from windlass.core.settings.schema import GateSettings, Reviewing, WorkSettings


class TestWanted:
    def test_every_agents_change_is_reviewed_before_it_lands(self, repo: Path, tmp_path: Path) -> None:
        """With the setting, what nobody has looked at does not land; a new commit is looked at anew."""

        async def story() -> None:
            stage = demanding(repo, tmp_path, checks="test ! -e broken")
            author = await stage.order()
            await stage.move()
            await stage.commit(author, "broken", "")
            await stage.finish(author, "a.txt", "a\n")
            await stage.move()
            key = (await stage.change_of(author)).id
            first = await reviewer_of(stage, key)
            await done(stage, first)
            assert (await now(stage, key)).state is ChangeState.REJECTED, "the checks come after the review"

            (await stage.worktree(author) / "broken").unlink()
            await stage.finish(author, "b.txt", "b\n")
            await stage.move()
            assert (await now(stage, key)).hold is Hold.REVIEW
            second = await reviewer_of(stage, key)
            assert second != first
            await done(stage, second)
            assert (await now(stage, key)).state is ChangeState.LANDED

        play(story)

    def test_a_review_that_fails_is_put_to_a_person_once(self, repo: Path, tmp_path: Path) -> None:
        """No second one is paid for; their release counts as having looked."""

        async def story() -> None:
            stage = demanding(repo, tmp_path)
            author = await stage.order()
            await stage.move()
            await stage.finish(author, "a.txt", "a\n")
            await stage.move()
            key = (await stage.change_of(author)).id
            reviewer = await reviewer_of(stage, key)
            await stage.signal(reviewer, '{"status": "error", "error": "It is too long."}')
            await stage.exit(reviewer)
            await stage.move()
            stage.clock.time += 100
            await stage.move()
            assert (await now(stage, key)).hold is Hold.REVIEW
            [asked] = [question for question in await stage.engine.talk.questions() if question.agent.id == author]
            assert "did not come to an end" in asked.message.body
            names = [each.name for each in await stage.store.read(lambda store: store.agents())]
            assert sorted(names) == sorted([author, reviewer])

            await stage.engine.queue.release(key)
            await stage.move()
            assert (await now(stage, key)).state is ChangeState.LANDED
            assert await stage.store.read(lambda store: store.open_asks()) == []

        play(story)

    def test_a_review_that_cannot_begin_says_why(self, repo: Path, tmp_path: Path) -> None:
        """Without a provider nobody can look: the person is told, and the change waits."""

        async def story() -> None:
            stage = demanding(repo, tmp_path, command="")
            author = await stage.order()
            await stage.move()
            await stage.finish(author, "a.txt", "a\n")
            await stage.move()
            [asked] = await stage.engine.talk.questions()
            assert "its review can't begin" in asked.message.body
            assert (await stage.change_of(author)).state is ChangeState.HELD

        play(story)


def demanding(repo: Path, tmp_path: Path, *, checks: str = "true", command: str = "reviewer-like") -> Stage:
    """A stage on which every agent's change must be reviewed."""
    stage = Stage(repo, tmp_path / "home", checks=checks)
    work = WorkSettings(provider="command", command=command)
    stage.settings.settings = replace(stage.settings.settings, gate=GateSettings(review=Reviewing.AGENT), work=work)
    return stage


async def reviewer_of(stage: Stage, key: str) -> str:
    tasks = await stage.store.read(lambda store: store.unfinished_tasks())
    [task] = [each for each in tasks if each.reviews == key]
    return task.agent

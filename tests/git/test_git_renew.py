"""An agent that stays: its next task begins at main, and nothing of the last one is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gitkit import World, an_agent

from windlass.core.errors import NotAllowed
from windlass.git import HubGit


async def land(world: World, head: str) -> None:
    await world.git.land(world.project, await world.git.stage(world.project, head, "Land it"))


async def begun_anew(world: World) -> tuple[str, Path, str]:
    """Renew, and make the worktree; returns what was saved, where it is, and its commit."""
    saved = await world.git.renew(world.project, an_agent())
    path, _ = await world.git.worktree(world.project, an_agent())
    assert world.run("symbolic-ref", "--short", "HEAD", at=Path(path)) == "work/coder"
    assert world.run("status", "--porcelain", at=Path(path)) == ""
    return saved, Path(path), world.tip("HEAD", at=Path(path))


class TestRenew:
    def test_after_landing_it_begins_at_the_newest_main(self, world: World) -> None:
        """And nothing needs to be saved."""

        async def story() -> None:
            await land(world, await world.change({"new.txt": "new\n"}))
            newest = world.commit({"a.txt": "theirs\n"})

            saved, path, head = await begun_anew(world)

            assert (saved, head) == ("", newest)
            assert (path / "new.txt").exists()

        asyncio.run(story())

    def test_what_has_not_landed_is_saved(self, world: World) -> None:
        """Commits and files alike; the new branch has neither."""

        async def story() -> None:
            head = await world.change({"half.txt": "half\n"})
            path = Path(world.git.worktree_path(world.project, an_agent()))
            (path / "b.txt").write_text("changed\n")
            (path / "draft.txt").write_text("draft\n")

            saved, path, now = await begun_anew(world)

            assert now == world.tip()
            assert not (path / "half.txt").exists() and not (path / "draft.txt").exists()
            kept = world.run("--git-dir", str(world.hub), "ls-tree", "-r", "--name-only", saved).split()
            assert {"half.txt", "draft.txt"} <= set(kept)
            assert world.run("--git-dir", str(world.hub), "show", f"{saved}:b.txt") == "changed"
            assert world.run("--git-dir", str(world.hub), "merge-base", head, saved) == head

        asyncio.run(story())

    def test_a_branch_whose_worktree_is_gone_is_saved_too(self, world: World) -> None:
        """Its commits are in the hub alone."""

        async def story() -> None:
            head = await world.change({"half.txt": "half\n"})
            await world.git.remove_worktree(world.project, an_agent())

            saved, _, now = await begun_anew(world)

            assert now == world.tip()
            assert world.run("--git-dir", str(world.hub), "rev-parse", saved) == head

        asyncio.run(story())

    def test_what_git_ignores_stays_where_it_is(self, world: World) -> None:
        """It may have taken long to make; unless main has a file in its place now, which would overwrite it."""

        async def story() -> None:
            await world.change({"half.txt": "half\n"})
            path = Path(world.git.worktree_path(world.project, an_agent()))
            (path / "deps.log").mkdir()
            (path / "deps.log/x").write_text("made")
            (path / "run.log").write_text("mine")

            _, path, _ = await begun_anew(world)
            assert (path / "deps.log/x").read_text() == "made"
            assert (path / "run.log").read_text() == "mine"

            (world.repository / ".git/info/exclude").write_text("")
            world.write({"run.log": "theirs\n", "deps.log": "a file\n"})
            world.run("add", "-f", "run.log", "deps.log")
            world.run("commit", "-q", "-m", "Track logs")
            with pytest.raises(NotAllowed, match=r"deps\.log: ignored by git, but main has a file there; run\.log"):
                await world.git.renew(world.project, an_agent())
            assert (path / "run.log").read_text() == "mine"

        asyncio.run(story())

    def test_what_cannot_be_saved_stays_where_it_is(self, world: World) -> None:
        """A nested repository keeps the worktree, and the agent does not begin."""

        async def story() -> None:
            _, path = await world.agent()
            world.run("init", "-q", str(path / "nested"))
            (path / "nested/x.txt").write_text("x")

            with pytest.raises(NotAllowed, match="nested"):
                await world.git.renew(world.project, an_agent())
            assert (path / "nested/x.txt").exists()

        asyncio.run(story())

    def test_it_can_be_repeated(self, world: World) -> None:
        """A second time there is nothing to save, and a clone that is fresh stays."""

        async def story() -> None:
            await world.change({"half.txt": "half\n"})
            first, path, _ = await begun_anew(world)
            inode = (path / ".git").stat().st_ino

            again, _, _ = await begun_anew(world)

            assert first and not again
            assert (path / ".git").stat().st_ino == inode

        asyncio.run(story())

    def test_a_crash_at_any_of_its_steps_loses_nothing(self, world: World) -> None:
        """Broken off before or after each command that writes, and repeated: all is saved, and it begins at main."""
        steps: list[str] = []

        class Crashed(BaseException):
            """The daemon is gone."""

        def crash_at(number: int) -> HubGit:
            seen = iter(range(1000))

            def step(name: str) -> None:
                steps.append(name)
                if next(seen) == number:
                    raise Crashed

            return HubGit(world.state, environment=world.environment, step=step)

        async def story(number: int) -> bool:
            head = await world.change({f"half{number}.txt": "half\n"}, name="coder")
            crashing = crash_at(number)
            try:
                await crashing.renew(world.project, an_agent())
                crashed = False
            except Crashed:
                crashed = True
            _, _, now = await begun_anew(world)
            saved = world.run("--git-dir", str(world.hub), "for-each-ref", "--contains", head, "refs/windlass/rescue/")
            assert now == world.tip()
            assert saved, f"lost at step {number}"
            return crashed

        number = 0
        while asyncio.run(story(number)):
            number += 1
        assert number > 4, steps


class TestFurnish:
    def test_what_a_new_worktree_was_given_goes_with_it(self, world: World) -> None:
        """What the agent has made itself since then, and git ignores, keeps it."""

        async def story() -> None:
            agent, path = await world.agent()
            await world.git.hide(world.project, agent, (".env",))
            (path / ".env").write_text("given")
            (path / "deps.log").mkdir()
            (path / "deps.log/x").write_text("made by the set-up")
            (path / ".windlass/output").mkdir(parents=True)
            (path / ".windlass/process-status.json").write_text("{}")
            await world.git.record_extra_files(world.project, agent)
            (path / "own.log").write_text("the agent's")
            await world.git.record_extra_files(world.project, agent)

            with pytest.raises(NotAllowed, match=r"cannot hold all of it: own\.log: ignored by git\."):
                await world.git.remove_worktree(world.project, agent)
            (path / "own.log").unlink()
            await world.git.remove_worktree(world.project, agent)

            _, again = await world.agent()
            (again / "deps.log").mkdir()
            (again / "deps.log/x").write_text("the agent's")
            with pytest.raises(NotAllowed, match="deps"):
                await world.git.remove_worktree(world.project, agent)

        asyncio.run(story())


class TestHide:
    def test_what_is_hidden_never_looks_like_work(self, world: World) -> None:
        """Neither to the agent's git, nor to ours; also in a worktree that is there already, and with odd names."""

        async def story() -> None:
            agent, path = await world.agent()
            names = (".env", "node modules", "we*ird[1]")
            await world.git.hide(world.project, agent, names)
            for name in names:
                (path / name).write_text("x")
            (path / "weXird1").write_text("work")

            assert world.run("status", "--porcelain", at=path) == "?? weXird1"
            assert (await world.git.look(world.project, agent, "r1")).untracked == ("weXird1",)

            await world.git.hide(world.project, agent, ("other",))
            _, second = await world.agent("tester")
            (second / ".env").write_text("x")
            (second / "other").write_text("x")
            assert world.run("status", "--porcelain", at=second) == ""

        asyncio.run(story())

    def test_a_planted_link_is_not_written_through(self, world: World) -> None:
        """What an agent has put in the place of git's own files leads nowhere."""

        async def story() -> None:
            agent, path = await world.agent()
            target = world.folder / "target"
            target.write_text("safe")
            (path / ".git/info/exclude").unlink()
            (path / ".git/info/exclude").symlink_to(target)

            await world.git.hide(world.project, agent, (".env",))

            assert target.read_text() == "safe"
            assert "/.env" in (path / ".git/info/exclude").read_text()

        asyncio.run(story())


def test_the_files_of_main_are_listed(world: World) -> None:
    """All of them, with their folders; and the lock files of a branch with what is in them."""

    async def story() -> None:
        agent, path = await world.agent()
        before = await world.git.locks(world.project, agent)
        world.commit({"go.sum": "1\n", "web/package-lock.json": "{}\n"}, at=path)
        await world.git.look(world.project, agent, "r1")

        assert await world.git.files(world.project) == ([".gitignore", "a.txt", "b.txt", "dir/c.txt"], False)
        assert before == {}
        assert set(await world.git.locks(world.project, agent)) == {"go.sum", "web/package-lock.json"}

    asyncio.run(story())

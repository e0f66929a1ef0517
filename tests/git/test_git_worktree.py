"""The hub and agents' worktrees."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from gitkit import World, an_agent

from windlass.core.errors import BadInput, NotAllowed, Unavailable
from windlass.core.ports.git import Git
from windlass.git import HubGit


def agent_git(world: World, path: Path, *args: str, ok: bool = True) -> str:
    """Git as an agent runs it."""
    return world.run(*args, at=path, extra=world.git.environment(world.project, an_agent()), ok=ok)


class TestHub:
    def test_it_shares_no_object_file_and_borrows_none(self, world: World) -> None:
        """What the user's own gc removes is still there, and what happens to the user's files does not happen to it."""
        asyncio.run(world.git.main(world.project))
        files = [path for path in (world.hub / "objects").rglob("*") if path.is_file()]
        assert files and all(file.stat().st_nlink == 1 for file in files)
        assert not (world.hub / "objects/info/alternates").exists()

    def test_it_survives_the_users_gc(self, world: World) -> None:
        """A landed base that the user has thrown away does not break the agents that stand on it."""

        async def story() -> None:
            world.run("checkout", "-q", "-b", "doomed")
            doomed = world.commit({"a.txt": "doomed\n"})
            project = replace(world.project, main="doomed")
            agent = an_agent()
            path, base = await world.git.worktree(project, agent)
            assert base == doomed
            world.run("checkout", "-q", "main")
            world.run("branch", "-D", "doomed")
            world.run("reflog", "expire", "--expire=now", "--all")
            world.run("gc", "-q", "--prune=now")
            world.run("fsck", "--full", at=Path(path))
            world.commit({"a.txt": "still fine\n"}, at=Path(path))
            assert "still fine" in await world.git.diff(world.project, agent)

        asyncio.run(story())

    def test_a_source_that_borrows_is_copied(self, world: World) -> None:
        """The hub of a shared clone does not depend on the clone's lender."""
        lender = world.folder / "lender"
        world.run("clone", "-q", "--bare", str(world.repository), str(lender))
        shutil.rmtree(world.repository)
        world.run("clone", "-q", "--shared", str(lender), str(world.repository), at=world.folder)
        asyncio.run(world.git.main(world.project))
        shutil.rmtree(lender)
        assert world.run("--git-dir", str(world.hub), "fsck", "--full", at=world.folder) == ""

    def test_main_follows_the_user_wherever_it_goes(self, world: World) -> None:
        """Also back: users rebase."""

        async def story() -> None:
            first = await world.git.main(world.project)
            second = world.commit({"a.txt": "next\n"})
            assert await world.git.main(world.project) == second
            world.run("reset", "-q", "--hard", first)
            assert await world.git.main(world.project) == first

        asyncio.run(story())

    def test_many_at_once_make_one_hub(self, world: World) -> None:
        """Agents that start together do not race."""

        async def story() -> None:
            made = await asyncio.gather(*(world.agent(f"coder-{each}") for each in range(6)))
            assert len({path for _, path in made}) == 6
            assert [each.name for each in world.hub.parent.iterdir()] == ["p-1.git"]

        asyncio.run(story())

    def test_a_shallow_repository_works_to_the_end(self, world: World) -> None:
        """From clone --depth to a landed change, also after the user's main went on."""

        async def story() -> None:
            world.commit({"a.txt": "2\n"})
            world.commit({"a.txt": "3\n"})
            shallow = world.folder / "shallow"
            world.run("clone", "-q", "--depth=1", f"file://{world.repository}", str(shallow))
            project = replace(world.project, path=str(shallow))
            agent = an_agent()
            path, _ = await world.git.worktree(project, agent)
            world.commit({"b.txt": "from the agent\n"}, at=Path(path))
            assert len(world.run("log", "--oneline", at=Path(path)).splitlines()) == 2
            world.commit({"a.txt": "4\n"}, at=shallow)
            head = (await world.git.look(project, agent, "r1")).head
            landing = await world.git.land(project, await world.git.stage(project, head, "Land"))
            assert landing.files == ("b.txt",)
            assert (shallow / "b.txt").read_text() == "from the agent\n"
            world.run("fsck", at=shallow)

        asyncio.run(story())

    def test_a_sha256_repository_works_to_the_end(self, tmp_path: Path) -> None:
        """Longer names change nothing."""

        async def story() -> None:
            world = World(tmp_path)
            world.run("init", "-q", "--object-format=sha256", "--initial-branch=main")
            world.commit({"a.txt": "a\n"})
            head = await world.change({"a.txt": "b\n"})
            landing = await world.git.land(world.project, await world.git.stage(world.project, head, "Land"))
            assert len(landing.after) == 64
            assert world.tip() == landing.after

        asyncio.run(story())


class TestHome:
    def test_a_home_that_cannot_be_written_is_said(self, world: World) -> None:
        """A file in the place of a folder stands for all that can be wrong; nothing is half-made."""
        (world.state / "hubs").write_text("in the way")
        with pytest.raises(Unavailable, match="could not be made"):
            asyncio.run(world.agent())
        assert [path.name for path in world.state.iterdir() if path.name != "gitconfig"] == ["hubs"]

    def test_it_is_the_port(self, world: World) -> None:
        """The type checker holds this line."""
        port: Git = world.git
        assert port.worktree_path(world.project, an_agent()).endswith("/worktrees/p-1/coder")


class TestWorktree:
    def test_it_is_a_clone_on_its_own_branch(self, world: World) -> None:
        """Clean, at main, with main as origin/main."""

        async def story() -> None:
            agent, path = await world.agent()
            assert path == world.state / "worktrees/p-1/coder"
            assert agent_git(world, path, "status", "--porcelain", "--branch") == "## work/coder"
            assert world.tip("HEAD", at=path) == world.tip("origin/main", at=path) == world.tip()
            assert await world.git.worktree(world.project, agent) == (str(path), world.tip())

        asyncio.run(story())

    def test_an_instance_has_a_path_of_its_own(self, world: World) -> None:
        """Two agents of one name do not meet."""
        agent = an_agent("coder", "pr-7")
        path, _ = asyncio.run(world.git.worktree(world.project, agent))
        assert path.endswith("/coder.pr-7")
        assert world.run("branch", "--show-current", at=Path(path)) == "work/coder.pr-7"

    def test_the_user_is_the_author(self, world: World) -> None:
        """A commit in it carries the user's name and e-mail."""
        world.run("config", "user.email", "ada@work.example")
        _, path = asyncio.run(world.agent())
        (path / "a.txt").write_text("x\n")
        agent_git(world, path, "commit", "-qam", "x")
        assert agent_git(world, path, "log", "-1", "--format=%an <%ae>") == "Ada Lovelace <ada@work.example>"

    def test_someone_is_the_author_where_the_user_has_no_name(self, world: World) -> None:
        """A commit does not fail for lack of a name."""
        (world.home / ".gitconfig").unlink()
        _, path = asyncio.run(world.agent())
        (path / "a.txt").write_text("x\n")
        agent_git(world, path, "commit", "-qam", "x")
        assert agent_git(world, path, "log", "-1", "--format=%an") == "Windlass agent"

    def test_nothing_else_of_the_users_settings_is_there(self, world: World) -> None:
        """No signing, alias, hook or credential helper."""
        world.run("config", "--global", "commit.gpgsign", "true")
        world.run("config", "--global", "alias.st", "status")
        world.run("config", "--global", "credential.helper", "store")
        _, path = asyncio.run(world.agent())
        settings = agent_git(world, path, "config", "--list")
        assert "commit.gpgsign=false" in settings
        assert "alias" not in settings and "credential" not in settings and "=true\ncommit.gpgsign" not in settings

    def test_line_endings_are_the_users(self, world: World) -> None:
        """Files are written with CRLF where the user has them, and are not taken for changed."""
        world.run("config", "core.autocrlf", "true")

        async def story() -> None:
            agent, path = await world.agent()
            assert (path / "b.txt").read_bytes() == b"bee\r\n"
            assert (await world.git.look(world.project, agent, "r1")).clean
            (path / "b.txt").write_bytes(b"wasp\r\n")
            world.run("commit", "-qam", "x", at=path)
            tree = await world.git.look(world.project, agent, "r2")
            assert tree.clean and tree.commits == 1
            assert world.run("--git-dir", str(world.hub), "cat-file", "blob", f"{tree.head}:b.txt") == "wasp"

        asyncio.run(story())

    def test_what_the_user_ignores_everywhere_is_ignored_here(self, world: World) -> None:
        """The user's global excludes apply, and our own folders are nobody's work."""
        world.run("config", "--global", "core.excludesFile", "~/ignored")
        (world.home / "ignored").write_text("*.swp\n")

        async def story() -> None:
            agent, path = await world.agent()
            world.write({"x.swp": "", ".windlass/input/a": "", ".windlass/output/b": "", ".windlass/kept": ""}, path)
            assert (await world.git.look(world.project, agent, "r1")).untracked == (".windlass/kept",)

        asyncio.run(story())

    def test_asking_again_changes_nothing(self, world: World) -> None:
        """Uncommitted work is never reset; the start is where the branch left main."""

        async def story() -> None:
            agent, path = await world.agent()
            base = world.tip()
            world.commit({"a.txt": "mine\n"}, at=path)
            (path / "b.txt").write_text("unfinished\n")
            world.commit({"dir/c.txt": "user goes on\n"})
            again = HubGit(world.state, environment=world.environment)
            assert await again.worktree(world.project, agent) == (str(path), base)
            assert (path / "b.txt").read_text() == "unfinished\n"

        asyncio.run(story())

    def test_a_removed_one_comes_back_on_its_branch(self, world: World) -> None:
        """The branch is in the hub, so a recycled worktree starts where the agent left off."""

        async def story() -> None:
            agent, path = await world.agent()
            head = world.commit({"a.txt": "mine\n"}, at=path)
            await world.git.look(world.project, agent, "r1")
            shutil.rmtree(path)
            assert await world.git.worktree(world.project, agent) == (str(path), world.tip())
            assert world.tip("HEAD", at=path) == head
            assert (await world.git.look(world.project, agent, "r2")).clean

        asyncio.run(story())

    def test_what_a_crash_left_half_made_is_no_obstacle(self, world: World) -> None:
        """Half-made things lie beside the place, never in it."""

        async def story() -> None:
            await world.git.main(world.project)
            (world.state / "worktrees/p-1/.new-dead/tree/.git").mkdir(parents=True)
            (world.state / "hubs/.new-dead").mkdir()
            _, path = await world.agent()
            assert (path / "a.txt").is_file()

        asyncio.run(story())

    @pytest.mark.parametrize("what", ["link", "folder", "file"])
    def test_something_foreign_in_its_place_is_refused(self, world: World, what: str) -> None:
        """A link would lead our writing elsewhere."""
        place = world.state / "worktrees/p-1/coder"
        place.parent.mkdir(parents=True)
        if what == "link":
            place.symlink_to(world.home)
        elif what == "folder":
            (place / ".git").mkdir(parents=True)
        else:
            place.write_text("x")
        with pytest.raises(NotAllowed, match="is in the way"):
            asyncio.run(world.agent())

    @pytest.mark.parametrize("name", ["../x", "-rf", "a/b", "", "x" * 300, "a\nb", "A"])
    def test_a_name_that_is_no_name_makes_nothing(self, world: World, name: str) -> None:
        """Paths and options are no names."""
        with pytest.raises(BadInput):
            asyncio.run(world.git.worktree(world.project, an_agent(name)))
        assert not (world.state / "worktrees").exists()

    def test_a_taken_branch_is_known(self, world: World) -> None:
        """In the hub, or in the user's repository."""

        async def story() -> None:
            world.run("branch", "work/users")
            await world.agent()
            answers = [await world.git.branch_taken(world.project, f"work/{each}") for each in ("users", "coder", "x")]
            assert answers == [True, True, False]

        asyncio.run(story())

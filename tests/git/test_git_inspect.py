"""Which repositories Windlass works on, and what it says to the others."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from gitkit import World

from windlass.core.errors import BadInput, NotAllowed, Unavailable, WindlassError
from windlass.git import HubGit


def inspect(world: World, path: Path | None = None, main: str = "") -> tuple[str, str]:
    async def both() -> tuple[str, str]:
        top = await world.git.locate(str(path or world.repository))
        return top, await world.git.inspect(top, main=main)

    return asyncio.run(both())


def refusal(world: World, path: Path | None = None, main: str = "") -> WindlassError:
    with pytest.raises(WindlassError) as caught:
        inspect(world, path, main)
    assert caught.value.hint
    return caught.value


class TestTop:
    def test_a_folder_inside_leads_to_the_top(self, world: World) -> None:
        """Spaces and letters beyond ASCII are no trouble."""
        assert inspect(world, world.repository / "dir") == (str(world.repository), "main")

    def test_a_known_top_is_asked_of_git_again_when_it_is_another_repository(self, world: World) -> None:
        """A folder that was emptied, made bare or put elsewhere is looked at as if it were new."""
        assert inspect(world)[0] == str(world.repository)
        world.run("config", "core.bare", "true")
        assert "bare repository" in str(refusal(world))
        world.run("config", "core.bare", "false")
        assert inspect(world)[0] == str(world.repository)
        shutil.rmtree(world.repository / ".git")
        assert "not in a git repository" in str(refusal(world))

    def test_a_linked_worktree_leads_to_the_primary_one(self, world: World) -> None:
        """A repository is one project, from whichever of its worktrees it is asked for."""
        world.run("worktree", "add", "-q", str(world.folder / "linked"), "-b", "side")
        assert inspect(world, world.folder / "linked") == (str(world.repository), "main")

    def test_what_is_no_repository_is_refused(self, world: World) -> None:
        """The sentence names the folder."""
        assert "is not in a git repository" in str(refusal(world, world.home))

    def test_a_bare_repository_is_refused(self, world: World) -> None:
        """There is nothing to work on without a checkout."""
        world.run("clone", "-q", "--bare", str(world.repository), str(world.folder / "bare.git"))
        assert "bare" in str(refusal(world, world.folder / "bare.git"))

    def test_the_inside_of_a_git_folder_is_refused(self, world: World) -> None:
        """A .git folder is not a checkout."""
        assert "inside a .git folder" in str(refusal(world, world.repository / ".git"))

    def test_a_repository_without_commits_is_refused(self, world: World) -> None:
        """There is no main to land on yet."""
        empty = world.folder / "empty"
        world.run("init", "-q", str(empty))
        assert "no commits yet" in str(refusal(world, empty))

    def test_an_agents_worktree_is_refused(self, world: World) -> None:
        """An agent's clone never becomes a project of its own."""
        _, path = asyncio.run(world.agent())
        assert isinstance(refusal(world, path), NotAllowed)

    def test_a_repository_of_another_user_is_refused_as_git_does(self, world: World, tmp_path: Path) -> None:
        """The hint says how to trust it; once trusted, everything works."""
        strict = tmp_path / "strict"
        strict.mkdir()
        (strict / "git").write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
        (strict / "git").chmod(0o755)
        path = f"{strict}:{world.environment['PATH']}"
        world.git = HubGit(world.state, environment=world.environment | {"PATH": path})
        problem = refusal(world)
        assert "belongs to another user" in str(problem)
        assert "safe.directory" in problem.hint

        world.run("config", "--global", "--add", "safe.directory", str(world.repository), at=world.home)
        inspect(world)
        head = asyncio.run(world.change({"a.txt": "new\n"}))
        assert head in world.run("rev-parse", "work/coder")


class TestMain:
    def test_the_setting_wins(self, world: World) -> None:
        """What the user says is main is main, with slashes too."""
        world.run("branch", "release/1.0")
        assert inspect(world, main="release/1.0")[1] == "release/1.0"

    def test_a_setting_that_names_no_branch_is_refused_with_the_near_miss(self, world: World) -> None:
        """A typo is named."""
        assert "Did you mean main?" in refusal(world, main="mian").hint

    def test_the_remotes_default_comes_next(self, world: World) -> None:
        """A clone's main is what its origin calls so, even if another branch is checked out."""
        world.run("checkout", "-q", "-b", "trunk")
        world.run("clone", "-q", str(world.repository), str(world.folder / "clone"))
        world.run("checkout", "-q", "-b", "main", at=world.folder / "clone")
        assert inspect(world, world.folder / "clone")[1] == "trunk"

    @pytest.mark.parametrize("name", ["trunk", "entwicklung-ä", "release/x"])
    def test_any_branch_that_is_checked_out_will_do(self, tmp_path: Path, name: str) -> None:
        """A default branch may have any name."""
        assert inspect(World(tmp_path, name).begin())[1] == name

    def test_a_detached_head_is_fine_where_main_is_plain(self, world: World) -> None:
        """Only the way to know main matters."""
        world.run("checkout", "-q", "--detach")
        assert inspect(world)[1] == "main"

    def test_a_detached_head_without_a_plain_main_is_refused(self, tmp_path: Path) -> None:
        """Windlass does not guess among branches."""
        world = World(tmp_path, "trunk").begin()
        world.run("checkout", "-q", "--detach")
        assert "detached HEAD" in str(refusal(world))

    def test_the_place_is_known_where_main_is_not(self, tmp_path: Path) -> None:
        """Or else nobody could set project.main there, which is what the refusal tells one to do."""
        world = World(tmp_path, "trunk").begin()
        world.run("checkout", "-q", "--detach")
        assert asyncio.run(world.git.locate(str(world.repository / "dir"))) == str(world.repository)

    def test_a_main_called_work_is_refused(self, tmp_path: Path) -> None:
        """It would collide with the branches of agents."""
        assert "work/NAME" in str(refusal(World(tmp_path, "work").begin()))


class TestWhatWeCannotDo:
    def test_submodules_are_refused(self, world: World) -> None:
        """They would be silently missing."""
        world.commit({".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ../x\n'})
        assert "submodules, which Windlass does not handle yet" in str(refusal(world))

    def test_lfs_is_refused_wherever_it_is_set_up(self, world: World) -> None:
        """Agents would see pointers instead of files."""
        world.commit({"art/.gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n"})
        assert "Git LFS" in str(refusal(world))

    def test_an_attribute_that_only_looks_like_lfs_is_fine(self, world: World) -> None:
        """A comment is no attribute."""
        world.commit({".gitattributes": "# *.png filter=lfs\n*.txt text\n"})
        inspect(world)

    def test_a_partial_clone_is_refused(self, world: World) -> None:
        """Its objects are elsewhere."""
        world.run("config", "remote.origin.promisor", "true")
        assert "partial clone" in str(refusal(world))

    def test_what_was_good_is_looked_at_again_when_main_has_moved(self, world: World) -> None:
        """A repository that is known may get submodules later."""
        inspect(world)
        world.commit({".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ../x\n'})
        assert "submodules" in str(refusal(world))


class TestTheProgram:
    def test_no_git_is_said_with_how_to_install_it(self, world: World, tmp_path: Path) -> None:
        """The first thing a fresh machine lacks."""
        git = HubGit(world.state, environment=world.environment | {"PATH": str(tmp_path)})
        with pytest.raises(Unavailable, match="git is not installed") as caught:
            asyncio.run(git.locate(str(world.repository)))
        assert "apt install git" in caught.value.hint

    def test_an_old_git_is_said(self, world: World, tmp_path: Path) -> None:
        """The sentence has the version that was found."""
        fake = tmp_path / "bin"
        fake.mkdir()
        (fake / "git").write_text("#!/bin/sh\necho git version 2.30.1\n")
        (fake / "git").chmod(0o755)
        git = HubGit(world.state, environment=world.environment | {"PATH": str(fake)})
        with pytest.raises(Unavailable, match=r"too old.*2\.30\.1"):
            asyncio.run(git.locate(str(world.repository)))

    def test_an_inherited_git_dir_does_not_lead_astray(self, world: World) -> None:
        """Variables such as GIT_DIR in the daemon's environment are dropped."""
        git = HubGit(world.state, environment=world.environment | {"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/"})
        assert asyncio.run(git.inspect(str(world.repository))) == "main"

    def test_a_project_id_that_is_a_path_is_refused(self, world: World) -> None:
        """The id comes from a file in the repository, so it may say anything."""
        with pytest.raises(BadInput):
            asyncio.run(world.git.main(replace(world.project, id="../../evil")))
        assert not list(world.state.iterdir())

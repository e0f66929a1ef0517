"""An agent that plants things: nothing of it executes, and nothing of the user's is reached."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from gitkit import NOW, World, an_agent

from windlass.core.errors import Conflict, TimedOut, Unavailable
from windlass.git import HubGit, program

ATTRIBUTES = "* filter=evil diff=evil merge=evil ident\n"


def plant(world: World, path: Path) -> None:
    """Everything that git could be made to execute, in the agent's own clone."""
    evil = f"touch '{world.canary}'; cat"
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "filter.lfs.clean", "filter.lfs.process"),
        *("diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "merge.default"),
        *("uploadpack.packObjectsHook", "credential.helper", "gpg.program", "alias.add", "alias.fetch"),
        *("core.alternateRefsCommand", "sequence.editor", "interactive.diffFilter", "trailer.evil.command"),
    ):
        world.run("config", key, evil, at=path)
    world.run("config", "filter.evil.required", "true", at=path)
    world.run("config", "core.worktree", "/", at=path)
    hooks = path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{world.canary}'\n")
        (hooks / name).chmod(0o755)
    world.run("config", "core.hooksPath", str(hooks), at=path)
    (path / ".git/info/attributes").write_text(ATTRIBUTES)


class TestPlanted:
    def test_nothing_that_is_planted_executes(self, world: World) -> None:
        """Not when we look, diff, merge, land or remove; and the file that would tell does tell."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "mine\ntwo\nthree\n", ".gitattributes": ATTRIBUTES}, at=path)
            world.commit({"a.txt": "one\ntwo\ntheirs\n"})
            plant(world, path)
            world.write({"b.txt": "uncommitted\n", "new.txt": "new\n"}, path)

            tree = await world.git.look(world.project, agent, "r1")
            assert tree.changed == ("b.txt",) and tree.untracked == ("new.txt",) and tree.commits == 1
            assert "+uncommitted" in await world.git.diff(world.project, agent)
            candidate = await world.git.stage(world.project, tree.head, "Land")
            landing = await world.git.land(world.project, candidate)
            await world.git.revert(world.project, landing, "work/undo", "Undo")
            await world.git.worktree(world.project, agent)
            await world.git.trees.place(world.project, landing.after, world.folder / "place")
            await world.git.worktree(world.project, an_agent("second"))
            await world.git.remove_worktree(world.project, agent)
            assert (world.repository / "a.txt").read_text() == "mine\ntwo\ntheirs\n"
            assert not world.canary.exists()

        asyncio.run(story())

    def test_a_link_put_into_a_tree_of_checks_is_not_written_through(self, world: World) -> None:
        """Whoever gets hold of that folder, and is fast: the tree is refused; the person's file is as it was."""
        place, precious = world.folder / "place", world.folder / "precious"
        precious.write_text("mine\n")

        def plant_link(step: str) -> None:
            if step == "git.read-tree.after":
                (place / ".git").mkdir()
                (place / ".git/index").symlink_to(precious)

        async def story() -> None:
            git = HubGit(world.state, environment=world.environment, now=lambda: NOW, step=plant_link)
            with pytest.raises(Unavailable):
                await git.trees.place(world.project, await git.main(world.project), place)

        asyncio.run(story())
        assert precious.read_text() == "mine\n"

    def test_the_trap_works(self, world: World) -> None:
        """Git that is run the usual way in that worktree does execute it: the test above can fail."""
        _, path = asyncio.run(world.agent())
        plant(world, path)
        world.run("--work-tree=.", "status", at=path, ok=False)
        assert world.canary.exists()

    def test_a_planted_merge_driver_does_not_run_in_a_conflict(self, world: World) -> None:
        """A conflict stays a conflict."""

        async def story() -> None:
            agent, path = await world.agent()
            world.commit({"a.txt": "mine\n", ".gitattributes": ATTRIBUTES}, at=path)
            world.commit({"a.txt": "theirs\n"})
            plant(world, path)
            tree = await world.git.look(world.project, agent, "r1")
            with pytest.raises(Conflict):
                await world.git.stage(world.project, tree.head, "Land")
            assert not world.canary.exists()

        asyncio.run(story())

    def test_a_driver_that_the_user_has_set_up_does_not_run_either(self, world: World) -> None:
        """A tree that an agent wrote could name it for any file."""

        async def story() -> None:
            evil = f"touch '{world.canary}'; cat"
            for key in ("merge.evil.driver", "diff.evil.textconv", "filter.evil.clean", "diff.external"):
                world.run("config", "--global", key, evil)
            agent, path = await world.agent()
            world.write({"a.txt": "mine\n", ".gitattributes": ATTRIBUTES}, path)
            tree = await world.git.look(world.project, agent, "r1")
            await world.git.diff(world.project, agent)
            assert tree.untracked == (".gitattributes",)
            assert not world.canary.exists()

        asyncio.run(story())

    def test_a_clone_that_pretends_to_be_partial_fetches_nothing(self, world: World) -> None:
        """A missing object does not make us run the transport that the agent names."""

        async def story() -> None:
            agent, path = await world.agent()
            known = world.tip()
            world.commit({"a.txt": "mine\n"}, at=path)
            blob = world.run("rev-parse", "HEAD:a.txt", at=path)
            (path / ".git/objects" / blob[:2] / blob[2:]).unlink()
            world.run("config", "protocol.ext.allow", "always", at=path)
            world.run("config", "remote.evil.url", f"ext::sh -c touch% '{world.canary}'", at=path)
            world.run("config", "remote.evil.promisor", "true", at=path)
            world.run("config", "extensions.partialClone", "evil", at=path)
            world.run("config", "core.repositoryFormatVersion", "1", at=path)
            tree = await world.git.look(world.project, agent, "r1")
            assert tree.head == known and tree.holes
            assert not world.canary.exists()

        asyncio.run(story())

    def test_a_fifo_as_gitignore_cannot_hold_us_for_ever(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """Git would wait for a writer; its time is limited."""

        async def story() -> None:
            agent, path = await world.agent()
            await world.git.main(world.project)
            (path / ".gitignore").unlink()
            os.mkfifo(path / ".gitignore")
            monkeypatch.setattr(program, "PATIENCE", 2.0)
            with pytest.raises(TimedOut):
                await world.git.look(world.project, agent, "r1")

        asyncio.run(story())


class TestReach:
    @pytest.mark.parametrize("target", ["main", "refs/heads/work/other", "work/coder", "refs/windlass/x"])
    def test_pushing_to_the_hub_is_refused(self, world: World, target: str) -> None:
        """The gate takes work in; nobody pushes it."""

        async def story() -> None:
            await world.change({"a.txt": "other\n"}, name="other")
            agent, path = await world.agent()
            world.commit({"a.txt": "mine\n"}, at=path)
            before = world.run("--git-dir", str(world.hub), "for-each-ref")
            environment = world.git.environment(world.project, agent)
            said = world.run("push", "-f", "origin", f"HEAD:{target}", at=path, extra=environment, ok=False)
            assert "rejected" in said
            assert world.run("--git-dir", str(world.hub), "for-each-ref") == before

        asyncio.run(story())

    def test_an_agent_sees_main_and_nothing_else(self, world: World) -> None:
        """Another agent's branch is neither listed nor fetched by its name; main is."""

        async def story() -> None:
            await world.change({"a.txt": "other\n"}, name="other")
            _, path = await world.agent()
            listed = world.run("ls-remote", "origin", at=path).split()[1::2]
            assert listed == ["HEAD", "refs/heads/main"]
            assert "couldn't find" in world.run("fetch", "origin", "work/other", at=path, ok=False)
            newer = world.commit({"b.txt": "newer\n"})
            await world.git.main(world.project)
            world.run("fetch", "-q", "origin", at=path)
            assert world.tip("origin/main", at=path) == newer

        asyncio.run(story())

    def test_nothing_of_the_users_is_reached(self, world: World) -> None:
        """Global settings, stash, branches and worktrees of the user stay as they are."""

        async def story() -> None:
            world.write({"b.txt": "stashed\n"})
            world.run("stash")
            settings = (world.home / ".gitconfig").read_bytes()
            local = (world.repository / ".git/config").read_bytes()
            refs = world.run("for-each-ref")
            agent, path = await world.agent()
            environment = world.git.environment(world.project, agent)
            for line in (
                "config --global user.name evil",
                "config --global core.fsmonitor evil",
                "config user.name evil",
                "stash list",
                "branch -f main HEAD",
                "update-ref refs/heads/main HEAD",
                "update-ref -d refs/remotes/origin/main",
                "worktree add ../extra -b extra",
                "gc -q --prune=now",
                "tag evil",
            ):
                said = world.run(*line.split(), at=path, extra=environment)
                assert "stash@" not in said
            assert world.run("config", "--global", "user.name", at=path, extra=environment) == "evil"
            assert (world.home / ".gitconfig").read_bytes() == settings
            assert (world.repository / ".git/config").read_bytes() == local
            assert world.run("for-each-ref") == refs
            assert world.run("worktree", "list").count("\n") == 0
            world.run("stash", "pop")

        asyncio.run(story())

    def test_the_agents_git_never_waits_for_a_person(self, world: World) -> None:
        """No prompt, no editor."""
        environment = world.git.environment(world.project, an_agent())
        assert environment["GIT_TERMINAL_PROMPT"] == "0" and environment["GIT_EDITOR"] == "true"

"""What the hub has taken in stays: on the disk when it is said to be there, and also where someone collects garbage."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from gitkit import NOW, World

from windlass.git import HubGit


def test_collecting_garbage_in_the_hub_loses_nothing(world: World) -> None:
    """Everything that is needed later is under a ref: branches, snapshots, rescues, candidates, main as it was."""

    async def story() -> None:
        def collect() -> None:
            world.run("--git-dir", str(world.hub), "reflog", "expire", "--all", "--expire=now")
            world.run("--git-dir", str(world.hub), "gc", "-q", "--prune=now")

        agent, path = await world.agent()
        world.commit({"a.txt": "first\n"}, at=path)
        world.write({"b.txt": "not committed\n"}, path)
        seen = await world.git.look(world.project, agent, "r1")
        candidate = await world.git.stage(world.project, seen.head, "Land")
        world.run("commit", "-q", "--amend", "--no-edit", "-a", at=path)
        await world.git.look(world.project, agent, "r2")
        collect()
        landing = await world.git.land(world.project, candidate)
        world.run("reset", "-q", "--hard", "HEAD~1")
        world.commit({"c.txt": "another history\n"})
        await world.git.main(world.project)
        collect()
        ref = await world.git.remove_worktree(world.project, agent)
        collect()
        second, clone = await world.agent("second")
        world.run("fsck", "--strict", at=clone)
        for commit in (seen.head, seen.snapshot, landing.after, ref):
            await world.git.trees.place(world.project, commit, world.folder / "place")
        assert (await world.git.receipt(world.project, candidate)).landed_at == NOW
        assert (await world.git.archive.examine(world.project)).lost == ()
        assert second.name == "second"

    asyncio.run(story())


def flushes(trace: Path) -> dict[str, int]:
    """How often each git command waited for the disk, by its name, from a trace of git's."""
    names: dict[str, str] = {}
    found: dict[str, int] = {}
    for line in trace.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "cmd_name":
            names[event["sid"]] = event["name"]
        elif event["event"] == "data" and event.get("key") == "fsync/hardware-flush":
            name = names[event["sid"]]
            found[name] = found.get(name, 0) + int(event["value"])
    return found


def test_what_is_taken_in_is_on_the_disk(world: World) -> None:
    """A power cut leaves no empty object behind a ref: git waits for the disk, for objects and for refs."""

    async def story() -> None:
        programs, trace = world.folder / "programs", world.folder / "trace"
        programs.mkdir()
        git = shutil.which("git")
        (programs / "git").write_text(f'#!/bin/sh\nGIT_TRACE2_EVENT="{trace}" exec "{git}" "$@"\n')
        (programs / "git").chmod(0o755)
        environment = world.environment | {"PATH": f"{programs}:{world.environment['PATH']}"}
        agent, path = await world.agent()
        world.commit({"a.txt": "mine\n"}, at=path)
        world.write({"b.txt": "not committed\n"}, path)
        world.git = HubGit(world.state, environment=environment, now=lambda: NOW)
        seen = await world.git.look(world.project, agent, "r1")
        await world.git.land(world.project, await world.git.stage(world.project, seen.head, "Land"))
        found = flushes(trace)
        for name in ("unpack-objects", "update-index", "write-tree", "commit-tree", "update-ref", "merge"):
            assert found.get(name), f"{name} did not wait: {found}"

    asyncio.run(story())

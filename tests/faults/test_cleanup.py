"""Clean-up removes only what is saved, and says where; what can't be saved is named, and then nothing is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_stage import Stage, adds, lines, stage

from patience import until

HASTY = "[limits]\nreminders = 0\nretries = 0\n[daemon]\nstop_grace_seconds = 0.2\n"

LEFT = {
    "a nested repository": ("git init -q inner && touch inner/x", "inner/: a nested repository"),
    "an ignored file": ("echo 1 > my.local", "my.local: ignored by git"),
    "an ignored folder": ("mkdir build; echo 1 > build/x.local", "build/: ignored by git"),
    "a file beside ours": ("echo 1 > .windlass/x.local", ".windlass/x.local: ignored by git"),
    "an oversized file": ("truncate -s 51M big.bin", "big.bin: larger than 50 MB"),
}
"""What no snapshot holds, and how it is named."""


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Stage, str]]:
    """An agent that landed, and left one of each in its worktree."""
    with stage(settings=HASTY) as house:
        house.commit({".gitignore": "*.local\n"}, "Ignore")
        view = house.land("Add b", lines(adds("b.txt"), *(f"({how})" for how, _ in LEFT.values())))
        name = view["agent"]["name"]
        house.event("agent.retired", name)
        yield house, name


class TestWhatCannotBeSaved:
    @pytest.mark.parametrize("what", LEFT)
    def test_is_named_and_nothing_is_removed(self, kept: tuple[Stage, str], what: str) -> None:
        """In the event, in the log and on the agent's page; every file is where it was."""
        house, name = kept
        event = house.event("agent.retired", name)
        assert LEFT[what][1] in event["kept"]
        assert event["rescue"] == ""
        assert LEFT[what][1] in house.wl("show", name).out
        assert LEFT[what][1] in (house.state / "daemon.log").read_text()

    def test_stays_where_it_was(self, kept: tuple[Stage, str]) -> None:
        """Nothing of it, and nothing beside it; and the page says where to look."""
        house, name = kept
        [worktree] = house.worktrees()
        assert {"inner", "my.local", "big.bin", "b.txt", "build"} <= {path.name for path in worktree.iterdir()}
        assert str(worktree) in house.wl("show", name).out
        house.wl("doctor", "--check")


class TestRemoval:
    def test_of_a_landed_and_clean_tree_names_the_ref_that_brings_it_back(self, house: Stage) -> None:
        """In the event, in the log and on the agent's page; and the ref does bring it back."""
        name = house.land("Add b", adds("b.txt"))["agent"]["name"]
        ref = house.event("agent.retired", name)["rescue"]
        assert ref == f"refs/windlass/rescue/{name}/1/tree"
        assert house.worktrees() == []
        assert ref in (house.state / "daemon.log").read_text()
        shown = house.wl("show", name).out
        assert ref in shown
        assert f"windlass rescue restore {name}/1" in shown
        house.wl("rescue", "restore", ref, "--branch", "back")
        assert house.git("show", "back:b.txt") == "new"

    def test_of_a_dirty_tree_saves_its_files_stashes_and_other_branches_first(self) -> None:
        """All that was not committed, and what was committed elsewhere, comes back."""
        with stage(settings=HASTY) as house:
            aside = lines("git switch -qc aside", "echo 2 > aside.txt", "git add -A", "git commit -qm aside")
            stash = lines("git switch -q -", "echo 3 > README.md", "git stash -q")
            view = house.land("Add b", lines(adds("b.txt"), aside, stash, "echo left > left.txt"))
            name = view["agent"]["name"]
            ref = house.event("agent.retired", name)["rescue"]
            assert house.worktrees() == []
            saved = house.wl("rescue", "show", ref, "--json").value
            assert saved["files"] == ["left.txt"]
            for number, part in enumerate(saved["also"]):
                house.wl("rescue", "restore", part, "--branch", f"part-{number}")
            parts = [house.git("ls-tree", "-r", "--name-only", f"part-{n}").split() for n in range(len(saved["also"]))]
            assert any("aside.txt" in each for each in parts)
            assert "3" in [house.git("show", f"part-{n}:README.md") for n in range(len(parts))]
            house.wl("doctor", "--check")

    def test_begun_by_a_daemon_that_was_killed_is_told_by_the_next(self) -> None:
        """The tree was saved and renamed away, and nobody had said so: the event has the same ref."""
        with stage(WINDLASS_CRASH_AT="git.remove_worktree.after") as house:
            name = house.work("Add b", adds("b.txt"))
            until(lambda: not alive(house), "the daemon to die")
            assert house.worktrees() == []
            del house.environment["WINDLASS_CRASH_AT"]
            house.wl("list")
            assert house.event("agent.retired", name)["rescue"] == f"refs/windlass/rescue/{name}/1/tree"
            house.wl("doctor", "--check")


class TestLeftovers:
    def test_of_a_killed_daemon_are_swept_and_the_work_goes_on(self) -> None:
        """A half-made clone, and a worktree that was saved and half removed."""
        with stage(WINDLASS_CRASH_AT="git.read-tree.before") as house:
            house.work("Add b", adds("b.txt"))
            [half] = until(lambda: list(house.state.glob("worktrees/*/.new-*")), "a half-made clone")
            until(lambda: not alive(house), "the daemon to die")
            gone = half.with_name(".gone-swift-otter")
            (gone / "deep").mkdir(parents=True)
            (house.state / "hubs/.new-x").mkdir()
            del house.environment["WINDLASS_CRASH_AT"]
            house.wl("list")
            house.event("agent.retired")
            assert list(house.state.glob("worktrees/*/.*")) == []
            assert list((house.state / "hubs").glob(".new-*")) == []


class TestNothingIsRemoved:
    def test_of_a_failed_or_stopped_agent(self) -> None:
        """Its work has not landed: also after `stop`, and after the daemon has come again, all of it is there."""
        with stage(settings=HASTY) as house:
            half = lines(adds("b.txt"), "echo half > half.txt", "windlass agent fail 'Too hard.'")
            name = house.work("Fail", half)
            house.event("task.failed")
            [worktree] = house.worktrees()
            house.wl("stop", name)
            house.event("task.cancelled")
            house.wl("daemon", "stop")
            house.wl("list")
            assert (worktree / "half.txt").read_text() == "half\n"
            assert house.git("show", f"work/{name}:b.txt")
            assert name in house.wl("rescue", "list").out

    def test_while_its_agent_lives(self) -> None:
        """A tree is not touched before the last process of its run has gone, be its change landed or not."""
        with stage(settings=HASTY) as house:
            go = house.flag("go")
            name = house.work("Add b", lines(adds("b.txt"), f"trap '' TERM; {house.waits_for(go)}"))
            house.event("run.started")
            [worktree] = until(house.worktrees, "its worktree")
            until((worktree / "b.txt").exists, "its work")
            house.wl("daemon", "stop")
            house.wl("list")
            assert (worktree / "b.txt").exists()
            go.touch()
            house.event("agent.retired", name)
            assert not worktree.exists()

    def test_of_ones_own_by_an_agent(self, house: Stage) -> None:
        """From inside its run an agent can stop nobody, restore nothing, and its own tree stays until it has ended."""
        tells = 'windlass stop "$WINDLASS_AGENT"; echo $?; windlass stop --all; echo $?; test -e README.md && echo here'
        name = house.work("Try it", lines(f"({tells}) || true", adds("b.txt")))
        house.event("change.landed")
        said = house.wl("logs", name).out.splitlines()
        assert [each for each in said if each in ("5", "here")] == ["5", "5", "here"]


def alive(house: Stage) -> bool:
    """Whether a daemon holds the home's lock."""
    try:
        return Path(f"/proc/{house.daemon}").exists()
    except (FileNotFoundError, ValueError):
        return True

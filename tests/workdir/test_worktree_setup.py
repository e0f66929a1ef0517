"""What a worktree is given from the checkout, and the set-up command, where an agent may have planted anything."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from windlass.core.errors import BadInput
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import PreparedWorktree
from windlass.core.settings.schema import WorktreeSettings
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.shell import CommandShell
from windlass.process.starting.spawner import Spawner
from windlass.workdir.setup import WorktreeSetup


class Place:
    """A checkout with things that git does not know, and a worktree beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "check out é"
        self.worktree = folder / "work tree"
        self.checkout.mkdir()
        self.worktree.mkdir()
        (self.checkout / ".env").write_text("KEY=value\n")
        (self.checkout / ".env").chmod(0o600)
        (self.checkout / "node_modules/left-pad").mkdir(parents=True)
        (self.checkout / "node_modules/left-pad/index.js").write_text("pad\n")

    def prepare(self, *, key: str = "k1", sandbox: Sandbox | None = None, **settings: object) -> PreparedWorktree:
        setup = WorktreeSetup(
            f"home-{os.getpid()}",
            shell=CommandShell(Bubblewrap(), Spawner()),
            environment=os.environ | {"SECRET": "hush"},
        )
        return asyncio.run(
            setup.prepare(
                str(self.worktree),
                str(self.checkout),
                "coder",
                WorktreeSettings(**settings),  # type: ignore[arg-type]  # settings by name, as a file has them
                key=key,
                environment={"WINDLASS_PORT": "20010", "CHECKOUT": str(self.checkout)},
                sandbox=sandbox,
            )
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestBringing:
    def test_files_and_folders_are_copied_or_linked(self, place: Place) -> None:
        """A copy is the agent's own, with the modes of the original; a link leads to the checkout."""
        (place.checkout / "config/local").mkdir(parents=True)
        (place.checkout / "config/local/a.json").write_text("{}")

        assert place.prepare(copy=(".env", "config/local"), link=("node_modules",)) == PreparedWorktree()

        assert (place.worktree / ".env").read_text() == "KEY=value\n"
        assert (place.worktree / ".env").stat().st_mode & 0o777 == 0o600
        assert (place.worktree / "config/local/a.json").read_text() == "{}"
        assert (place.worktree / "node_modules").readlink() == place.checkout / "node_modules"
        assert list((place.worktree / ".windlass/input").iterdir()) == []

    def test_what_is_there_already_stays(self, place: Place) -> None:
        """Be it a file of the repository, or one that the agent has changed since."""
        (place.worktree / ".env").write_text("mine\n")

        place.prepare(copy=(".env",), link=(".env",))

        assert (place.worktree / ".env").read_text() == "mine\n"

    def test_what_is_missing_is_a_note(self, place: Place) -> None:
        """And no reason not to start, nor to leave the others out."""
        prepared = place.prepare(copy=(".env.local", ".env"), link=("vendor",))

        assert prepared.notes == (
            ".env.local was left out: it is not in your checkout",
            "vendor was left out: it is not in your checkout",
        )
        assert (place.worktree / ".env").exists()
        assert not (place.worktree / "vendor").is_symlink()

    def test_nothing_is_taken_from_outside_the_repository(self, place: Place) -> None:
        """A link that leads out is not followed; one inside a copied folder stays a link; `.git` is not for agents."""
        secret = place.folder / "id_rsa"
        secret.write_text("secret")
        (place.checkout / "key").symlink_to(secret)
        (place.checkout / "up").symlink_to(place.folder)
        (place.checkout / ".git").mkdir()
        (place.checkout / "inner").symlink_to(".git")
        (place.checkout / "node_modules/out").symlink_to(secret)

        prepared = place.prepare(copy=("key", "up/id_rsa", "inner", "node_modules"), link=("up",))

        assert [note.partition(": ")[2] for note in prepared.notes] == [
            "it leads out of the repository",
            "it leads out of the repository",
            "it leads into .git",
            "it leads out of the repository",
        ]
        assert (place.worktree / "node_modules/out").is_symlink()
        assert {path.name for path in place.worktree.iterdir()} == {"node_modules", ".windlass"}

    def test_an_agents_links_lead_nowhere(self, place: Place) -> None:
        """A folder that it has replaced by a link is not written through."""
        outside = place.folder / "outside"
        outside.mkdir()
        (place.checkout / "config").mkdir()
        (place.checkout / "config/.env").write_text("x")
        (place.worktree / "config").symlink_to(outside)

        prepared = place.prepare(copy=("config/.env",))

        assert prepared.notes == ("config/.env was left out: config is a symbolic link",)
        assert list(outside.iterdir()) == []

    @pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", ".", ".git/config", ".windlass", "a//b"])
    def test_a_path_that_is_none_is_refused(self, place: Place, name: str) -> None:
        """By the setting's name."""
        with pytest.raises(BadInput, match=r"worktree\.copy names"):
            place.prepare(copy=(name,))


class TestCommand:
    def test_it_runs_once_and_again_when_its_key_changes(self, place: Place) -> None:
        """In the worktree, with what was copied there."""
        command = "cat .env; echo run >> runs"

        outputs = [place.prepare(key=key, copy=(".env",), setup=command).output for key in ("k1", "k1", "k2", "k2")]

        assert outputs == ["KEY=value\n", "", "KEY=value\n", ""]
        assert (place.worktree / "runs").read_text() == "run\nrun\n"

    def test_it_runs_again_in_a_new_worktree(self, place: Place) -> None:
        """What it left went with the old one."""
        place.prepare(setup="true")
        place.worktree.rename(place.folder / "gone")
        place.worktree.mkdir()

        assert place.prepare(setup="echo again").output == "again\n"

    def test_a_failure_is_named_with_its_last_lines_and_tried_again(self, place: Place) -> None:
        """All of the output is kept."""
        command = "for n in 1 2 3 4 5 6 7; do echo line $n; done; echo no such package >&2; exit 3"

        prepared = place.prepare(setup=command)

        assert prepared.failure == "exit code 3: line 4 | line 5 | line 6 | line 7 | no such package"
        assert prepared.output.startswith("line 1\n")
        assert place.prepare(setup="exit 4").failure == "exit code 4, without a word"

    def test_one_that_hangs_is_ended(self, place: Place) -> None:
        """With all that it started."""
        prepared = place.prepare(setup="echo begun; sleep 60", setup_seconds=0.5)

        words = prepared.failure.removesuffix(" | Terminated")  # which some shells say of what they ran
        assert words == "timed out after 0.5 s: begun"

    def test_it_sees_its_ports_and_no_credentials(self, place: Place) -> None:
        """Unless the settings name them."""
        command = 'echo "$WINDLASS_PORT $SECRET."'

        assert place.prepare(setup=command).output == "20010 .\n"
        assert place.prepare(setup=command, key="k2", environment=("SECRET",)).output == "20010 hush.\n"

    @pytest.mark.skipif(bool(Bubblewrap().keeper().problem), reason="bubblewrap does not work here")
    def test_in_a_sandbox_it_reaches_no_more_than_its_agent(self, place: Place, own_home: Path) -> None:
        """It writes to its worktree; the user's home and what is hidden are empty to it."""
        (own_home / "home/secret").write_text("hush")
        command = 'cat ~/secret; cat "$CHECKOUT/.env"; echo made > made; echo done'

        shut = Sandbox(
            own=str(place.folder / "own"), hidden=(str(place.checkout),), writable=(str(place.worktree),), network=False
        )
        prepared = [place.prepare(key=str(n), setup=command, sandbox=each) for n, each in enumerate((None, shut))]

        assert [each.failure for each in prepared] == ["", ""]
        assert "hush" in prepared[0].output and "KEY=value" in prepared[0].output
        assert "hush" not in prepared[1].output and "KEY=value" not in prepared[1].output
        assert prepared[1].output.endswith("done\n")
        assert (place.worktree / "made").read_text() == "made\n"

    def test_an_agent_that_meddles_only_hurts_itself(self, place: Place) -> None:
        """A forged or broken note means at most that the set-up is done once more, or not."""
        (place.worktree / ".windlass/input").mkdir(parents=True)
        note = place.worktree / ".windlass/input/setup.json"
        target = place.folder / "target"
        target.write_text("safe")
        note.symlink_to(target)

        assert place.prepare(setup="echo ran").output == "ran\n"
        assert target.read_text() == "safe"

"""A store that can't be trusted or written: the daemon refuses to start, names the file, and touches nothing."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, adds, stage

import patience
from forked import WINDLASS

pytestmark = pytest.mark.xdist_group("store refused")  # one home is spoilt in many ways

UNAVAILABLE = 6
COMMANDS = (("list",), ("work", "Fix it", "--command", "true"), ("daemon", "start"), ("doctor", "--json"))
"""Whatever would start the daemon."""
OURS = ("windlass.db", "runs", "hubs", "worktrees", "config.toml")


@pytest.fixture(scope="module")
def used() -> Iterator[Stage]:
    """A home in which something has landed, and no daemon."""
    with stage() as house:
        house.land("Add b", adds("b.txt"))
        house.wl("daemon", "stop")
        shutil.copytree(house.state, house.folder / "kept", symlinks=True)
        yield house


@pytest.fixture
def house(used: Stage) -> Iterator[Stage]:
    """The same home, put back after each test."""
    yield used
    shutil.rmtree(used.state)
    shutil.copytree(used.folder / "kept", used.state, symlinks=True)


def contents(home: Path) -> dict[str, object]:
    """Every file of ours, byte for byte; the daemon's log and lock may tell of the attempt."""
    found = [path for path in home.rglob("*") if path.relative_to(home).parts[0].startswith(OURS)]
    return {str(each): each.read_bytes() if each.is_file() else each.lstat().st_mode for each in found}


def refused(house: Stage, words: str, commands: Iterable[tuple[str, ...]] = (("list",),)) -> None:
    """A command that would start a daemon says why there is none, and nothing has changed."""
    before, tip = contents(house.state), house.git("rev-parse", "main")
    for command in commands:
        told = house.wl(*command, code=None)
        assert told.code == (1 if command[0] == "doctor" else UNAVAILABLE), told
        said = told.out + told.err
        assert str(house.state / "windlass.db") in said, said
        assert words in said, said
        assert not (house.state / "daemon.sock").exists()
        assert contents(house.state) == before, command
    assert house.git("rev-parse", "main") == tip


def rubbish(file: Path) -> None:
    file.write_bytes(b"These are not the bytes of a database.\n" * 100)


def torn(file: Path) -> None:
    """Rubbish in the middle, where pages of tables are."""
    content = bytearray(file.read_bytes())
    content[4096 * 2 : 4096 * 4] = os.urandom(4096 * 2)
    file.write_bytes(content)


def foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (a)")


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (torn, "is damaged"),
        (foreign, "is the database of another program"),
        (newer, "was written by a newer windlass (schema 999"),
        (pipe, "is not a regular file"),
    ],
)
def test_a_store_that_is_not_ours_to_write_is_named_and_kept(
    house: Stage, spoil: Callable[[Path], None], words: str
) -> None:
    """No daemon, one clear reason with the file's name, and every byte as it was."""
    spoil(house.state / "windlass.db")
    refused(house, words)


def test_every_command_says_so_and_a_store_that_is_put_back_goes_on(house: Stage) -> None:
    """Whatever would start a daemon is refused in the same words; with the old file all is as it was."""
    good = (house.state / "windlass.db").read_bytes()
    rubbish(house.state / "windlass.db")
    refused(house, "is not a database", COMMANDS)
    (house.state / "windlass.db").write_bytes(good)
    assert [each["state"] for each in house.wl("queue", "--all", "--json").value] == ["landed"]
    house.wl("daemon", "stop")


def test_a_store_that_is_gone_beside_its_log_is_not_made_anew(house: Stage) -> None:
    """What is left of it may be all there is."""
    (house.state / "windlass.db").rename(house.folder / "lost")
    (house.state / "windlass.db-wal").write_bytes(b"frames")
    refused(house, "is missing")
    (house.folder / "lost").unlink()


def test_a_store_deleted_under_a_daemon_comes_back(house: Stage) -> None:
    """The daemon keeps what it knows and leaves, the next one does not begin anew, and the copy is put back."""
    house.wl("list")
    pid = house.wl("daemon", "status", "--json").value["pid"]
    house.wl("doctor", "--restore", code=UNAVAILABLE)
    for file in house.state.glob("windlass.db*"):
        file.unlink()
    patience.until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon to leave")
    refused(house, "shows that there was one", (("list",), ("doctor", "--json")))

    told = house.wl("doctor", "--restore").out

    assert "The store is back as it was" in told
    assert [each["state"] for each in house.wl("queue", "--all", "--json").value] == ["landed"]
    house.wl("daemon", "stop")


def test_a_store_that_cannot_be_written_is_named_and_kept(house: Stage) -> None:
    """Its mode says read only, to one to whom modes mean something."""
    (house.state / "windlass.db").chmod(0o400)
    before = contents(house.state)
    ran = subprocess.run(
        (*WINDLASS, "list"),
        cwd=house.repo,
        env=house.environment,
        preexec_fn=obey_modes,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert ran.returncode == UNAVAILABLE, ran
    assert f"{house.state}/windlass.db" in ran.stderr
    assert "Permission denied" in ran.stderr
    assert "Make the file and its folder writable" in ran.stderr
    assert contents(house.state) == before


def obey_modes() -> None:
    """What root may, another may not: give up the capabilities that overrule the modes of files."""
    if not os.geteuid():
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP

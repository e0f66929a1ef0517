"""`windlass demo`: five stories on the real thing, shown to a stranger, and nothing left of it."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import patience
import windlass

SOURCE = Path(windlass.__file__).parent.parent
WINDLASS = (sys.executable, "-P", "-m", "windlass.cli.main")
TITLES = {
    "Fix cents lost in split()",
    "Set thousands apart",
    "Add discounts",
    "Add a README example",
    "Let split() share a tip",
}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
NARROW = 60

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]  # one worker has the machine for it


class Stage(NamedTuple):
    """A person's surroundings that are as unhelpful as they get."""

    folder: Path
    temporary: Path
    """Where throw-away folders are made; its name has spaces in it."""
    repo: Path
    """The person stands in a repository of their own, and git's variables lead there."""
    environment: dict[str, str]

    def begin(self, *words: str, **streams: Any) -> subprocess.Popen[str]:
        return subprocess.Popen((*WINDLASS, *words), cwd=self.repo, env=self.environment, text=True, **streams)

    def inhabitants(self) -> list[str]:
        """What still runs in a throw-away folder, or for it."""
        return [path.name for path in Path("/proc").iterdir() if path.name.isdigit() and self._is_inside(path)]

    def _is_inside(self, process: Path) -> bool:
        place = f"{self.temporary}/".encode()
        try:
            where = os.fsencode((process / "cwd").readlink())
            return where.startswith(place) or b"WINDLASS_HOME=" + place in (process / "environ").read_bytes()
        except OSError:  # gone, or someone else's
            return False

    def left(self) -> list[str]:
        return [*self.inhabitants(), *map(str, self.temporary.iterdir())]


def a_stage(folder: Path) -> Stage:
    """No git identity, inside a run of another home, with the git variables of a hook, and spaces in the path."""
    temporary, home, repo = (folder / each for each in ("a place é", "empty home", "repo"))
    for place in (temporary, home, repo):
        place.mkdir(parents=True)
    subprocess.run(("git", "init", "-q", str(repo)), check=True)
    foreign = ("GIT_", "WINDLASS_", "COLUMNS", "LINES")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(SOURCE),
        "WINDLASS_HOME": str(folder / "other"),
        "WINDLASS_PROVIDER": "nobody",
        "WINDLASS_RUN": "r1",
        "GIT_DIR": str(repo / ".git"),
        "GIT_INDEX_FILE": str(repo / "index"),
    }
    return Stage(folder, temporary, repo, environment)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = a_stage(tmp_path)
    yield made
    assert not made.left()


class Told(NamedTuple):
    """A demo for programs that has ended."""

    stage: Stage
    ended: subprocess.CompletedProcess[str]
    report: dict[str, Any]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    stage = a_stage(tmp_path_factory.mktemp("told"))
    process = stage.begin("demo", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=patience.seconds(120))
    ended = subprocess.CompletedProcess(process.args, process.returncode, said, complained)
    assert ended.returncode == 0, ended
    return Told(stage, ended, json.loads(said))


class TestForPrograms:
    def test_all_five_stories_end_as_told(self, told: Told) -> None:
        """Five changes land; the one that broke a test and the one that conflicted were sent back with the words."""
        report = told.report
        assert list(report) == ["landed", "returned", "main", "green", "seconds", "kept"]
        assert {each["title"] for each in report["landed"]} == TITLES
        assert sorted(each["reason"] for each in report["returned"]) == [
            "AssertionError: '4.5' != '4.50'",
            "CONFLICT (content): Merge conflict in bill/split.py",
        ]
        by_change = {each["change"]: each for each in report["landed"]}
        sent_back = {by_change[each["change"]]["title"]: each["agent"] for each in report["returned"]}
        assert set(sent_back) == {"Set thousands apart", "Let split() share a tip"}
        assert report["green"] is True
        assert report["kept"] is None
        assert told.ended.stderr == ""

    def test_the_receipts_lead_from_the_first_commit_to_main(self, told: Told) -> None:
        """Each landing begins where the one before ended, and main moved only to trees that the checks passed on."""
        landed = told.report["landed"]
        assert all(one["after"] == next_["before"] for one, next_ in itertools.pairwise(landed))
        assert landed[-1]["after"] == told.report["main"]
        checks = [(each["tested_tree"], check) for each in landed for check in each["checks"]]
        assert {each["tested_tree"] for each in landed} <= {each["tree"] for each in landed}
        assert len(checks) == len(TITLES)
        assert all(check["passed"] and check["tree"] == tree for tree, check in checks)
        assert [each["undo"] for each in landed] == [f"windlass undo {each['change']}" for each in landed]

    def test_the_conflict_comes_after_what_it_conflicts_with(self, told: Told) -> None:
        """Whatever the machine is like, the fix lands first and the change of the same line after it."""
        titles = [each["title"] for each in told.report["landed"]]
        assert titles.index("Fix cents lost in split()") < titles.index("Let split() share a tip")

    def test_nothing_is_left_and_nothing_of_the_person_is_touched(self, told: Told) -> None:
        """No process, no folder, no file in the home, no WINDLASS_HOME made, the repository around as it was."""
        stage = told.stage
        assert not stage.left()
        assert not list(Path(stage.environment["HOME"]).iterdir())
        assert sorted(path.name for path in stage.folder.iterdir()) == ["a place é", "empty home", "repo"]
        assert [path.name for path in stage.repo.iterdir()] == [".git"]


def test_in_a_pipe_it_is_a_line_per_step(stage: Stage) -> None:
    """Plain lines: who begins, what the gate tests, refuses and lands; then the receipts with their undo."""
    process = stage.begin("demo", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=patience.seconds(120))

    assert (process.returncode, complained) == (0, ""), said
    assert "\x1b" not in said
    assert len(re.findall(r"^ *\d+\.\d s  \S+ +begins: ", said, re.MULTILINE)) == len(TITLES)
    assert len(re.findall(r"^ *\d+\.\d s  gate +c\d passed in .* lands[:,] ", said, re.MULTILINE)) == 5
    assert len(re.findall(r"^ *\d+\.\d s  gate +refuses c\d, and tells \S+: ", said, re.MULTILINE)) == 2
    assert len(re.findall(r"  windlass undo c\d$", said, re.MULTILINE)) == 5
    moved = re.search(r"Main moved ([1-5]) time", said)  # those that are ready together land together
    assert moved
    assert said.count("main is now") == int(moved[1])


class Screen(NamedTuple):
    """What a terminal was sent."""

    code: int
    raw: str

    @property
    def lines(self) -> list[str]:
        """What stood in each line last."""
        return [part.rstrip("\r").rpartition("\r")[2] for part in ESCAPES.sub("", self.raw).split("\n")]


def on_a_terminal(stage: Stage, *words: str) -> Screen:
    """Run it on a narrow terminal, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, NARROW, 0, 0))
    stage.environment.update(TERM="xterm", NO_COLOR="1")
    process = stage.begin(*words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return Screen(process.wait(timeout=patience.seconds(60)), said.decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that the other side has gone
        return b""


@pytest.fixture
def typed_windlass(stage: Stage) -> None:
    """A `windlass` that can be typed."""
    programs = stage.folder / "bin"
    programs.mkdir()
    typed = programs / "windlass"
    typed.write_text(f'#!/bin/sh\nexec {" ".join(WINDLASS)} "$@"\n')
    typed.chmod(0o755)
    stage.environment["PATH"] = f"{programs}:{stage.environment['PATH']}"


def sh(stage: Stage, lines: list[str]) -> subprocess.CompletedProcess[str]:
    """What a person gets who types these lines into a shell of their own."""
    foreign = ("GIT_", "WINDLASS_")
    environment = {name: value for name, value in stage.environment.items() if not name.startswith(foreign)}
    script = "set -e\n" + "\n".join(lines)
    return subprocess.run(
        ("sh", "-c", script),
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience.seconds(60),
        check=False,
    )


@pytest.mark.usefixtures("typed_windlass")
def test_what_is_kept_can_be_undone_and_removed_as_it_says(stage: Stage) -> None:
    """A table that moves and fits; then every command that is shown works when it is typed."""
    screen = on_a_terminal(stage, "demo", "--keep")

    assert screen.code == 0, screen.raw
    assert not stage.inhabitants()
    assert screen.raw.count("\x1b[?25l") == screen.raw.count("\x1b[?25h") == 1
    assert not re.search(r"\x1b\[[0-9;]*m", screen.raw)
    shown, going_on, removing = re.split(r"(?:To go on|To remove it):\n", "\n".join(screen.lines))
    assert max(map(len, shown.splitlines()[:-1])) <= NARROW
    assert "running" in shown
    assert "testing" in shown

    gone_on = sh(stage, [line for line in going_on.splitlines() if line.startswith("  ")])
    assert gone_on.returncode == 0, gone_on.stderr
    assert "Tree " in gone_on.stdout
    assert "c6  landed" in gone_on.stdout

    first = next(line for line in going_on.splitlines() if "WINDLASS_HOME" in line)
    undone = [f"windlass undo {each} --wait" for each in re.findall(r"windlass undo (c\d)$", shown, re.MULTILINE)[:-1]]
    assert len(undone) == 4
    assert sh(stage, [first, *undone]).returncode == 0
    assert sh(stage, [first, *removing.splitlines()]).returncode == 0


class TestBreakingOff:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_asked_to_leave_it_cleans_up_first(self, stage: Stage, number: signal.Signals) -> None:
        """When it has ended, its daemon, its agents and its folder are gone."""
        process = self._at_work(stage)
        process.send_signal(number)
        _, complained = process.communicate(timeout=patience.seconds(30))
        assert (process.returncode, complained) == (130, "windlass: interrupted\n")
        assert not stage.left()

    def test_killed_it_is_cleaned_up_soon(self, stage: Stage) -> None:
        """Nobody is left to do it but its guard, which does."""
        process = self._at_work(stage)
        process.kill()
        process.communicate(timeout=patience.seconds(30))
        patience.until(lambda: not stage.left(), "its guard")

    def _at_work(self, stage: Stage) -> subprocess.Popen[str]:
        """A demo whose agents have begun."""
        process = stage.begin("demo", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout
        assert any("begins: " in line for line in process.stdout)
        assert stage.inhabitants()
        return process


def test_without_git_it_says_so(stage: Stage) -> None:
    """One sentence and a hint, and nothing is made."""
    programs = stage.folder / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to(str(shutil.which("sh")))
    stage.environment["PATH"] = str(programs)

    process = stage.begin("demo", stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    said, complained = process.communicate(timeout=patience.seconds(30))
    assert (process.returncode, said) == (6, "")
    assert complained.startswith("windlass: git is not installed.\nInstall git 2.38 or newer")

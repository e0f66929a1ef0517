"""Tests that fail in a run and pass alone are named; few new ones are let through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import seconds
from unsteady import MOST_UNSTEADY, judge, passes_alone, read_list, without_group

TESTS = Path(__file__).parents[1]
DAY = "2026-11-17"


class TestJudging:
    def test_one_that_passes_alone_is_named_and_let_through(self) -> None:
        """Whoever reads the end of the run knows which line to add to the list."""
        verdict = judge(["a", "b"], ["a", "b"], [], DAY)
        assert verdict.good
        assert verdict.lines[0] == "unsteady: a (failed in the run, passed alone)"
        assert verdict.lines[-1] == "to be listed in tests/unsteady.txt: b  # 2026-11-17: CAUSE"

    def test_one_that_fails_alone_is_a_failure(self) -> None:
        """It is not called unsteady, and those beside it save nothing."""
        verdict = judge(["a", "b"], ["a"], [], DAY)
        assert not verdict.good
        assert [line for line in verdict.lines if line.startswith("unsteady: b")] == []

    def test_more_than_two_are_a_failure(self) -> None:
        """A suite that fails by chance in many places is broken."""
        many = [f"t{number}" for number in range(MOST_UNSTEADY + 1)]
        verdict = judge(many, many, [], DAY)
        assert not verdict.good
        assert "3 unsteady tests, more than 2" in verdict.lines

    def test_the_second_time_is_a_failure(self) -> None:
        """A test in the list has been let through once."""
        verdict = judge(["a"], ["a"], ["a"], DAY)
        assert not verdict.good
        assert "unsteady for the second time: a" in verdict.lines[1]


def test_the_list_is_read_without_its_words() -> None:
    """Comments, empty lines, days and causes are for people."""
    assert read_list("# Words\n\na::b[c #1]  # 2026-11-17: a socket\n") == ["a::b[c #1]"]


def test_every_listed_test_has_its_day_and_cause() -> None:
    """A name alone helps nobody to find the cause."""
    lines = (TESTS / "unsteady.txt").read_text().splitlines()
    listed = [line.partition("  # ")[2] for line in lines if line.strip() and not line.startswith("#")]
    assert [words for words in listed if len(words.split()) < 4 or not words[:4].isdigit()] == []


@pytest.mark.parametrize(("told", "name"), [("a::b@house", "a::b"), ("a::b[c@d]", "a::b[c@d]"), ("a::b", "a::b")])
def test_the_group_is_no_part_of_a_name(told: str, name: str) -> None:
    """pytest does not know a test by the name that xdist gives it."""
    assert without_group(told) == name


FLAKY = '''
import subprocess
from pathlib import Path

def test_it(own_home):
    """Fails the first time."""
    mark = Path(__file__).with_name("was-here")
    first = not mark.exists()
    mark.touch()
    assert not first

def test_that_interrupts():
    """A process of a test can be interrupted."""
    assert subprocess.run(["sh", "-c", "kill -INT $$; exit 7"]).returncode == -2
'''


def test_a_run_in_the_background_tries_again_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With workers, as everyone runs it: the one that passes alone is named, and the run is good.

    A shell starts what is in the background with SIGINT ignored; the processes of tests do not inherit that.
    """
    for name in ("WINDLASS_TEST_ROOT", "PYTEST_XDIST_WORKER", "CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    command = (sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "test_flaky.py")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "unsteady: test_flaky.py::test_it (failed in the run, passed alone)" in ran.stdout, ran.stdout
    assert "test_that_interrupts" not in ran.stdout, ran.stdout
    assert ran.returncode == 0, ran.stdout


LEAVING = '''
import subprocess
import time

def test_that_leaves(tmp_path):
    """Passes, and leaves a process that holds its output open."""
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    with open("left", "w") as told:
        told.write(str(left.pid))

def test_that_hangs():
    """Never ends."""
    time.sleep(1000)
'''


def _bare(folder: Path) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_leaving.py").write_text(LEAVING)
    return folder


def test_a_process_that_a_test_left_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It has the output of the test still open; nobody waits for its end."""
    try:
        assert passes_alone("test_leaving.py::test_that_leaves", _bare(tmp_path))
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def test_a_test_that_hangs_alone_has_failed(tmp_path: Path) -> None:
    """After its time it is ended, and the others get their turn."""
    assert not passes_alone("test_leaving.py::test_that_hangs", _bare(tmp_path), longest=seconds(3))

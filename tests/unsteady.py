"""Tests that fail in a run and pass alone: named at the end, and refused when they are many or known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

LISTED = Path(__file__).with_name("unsteady.txt")
MOST_UNSTEADY = 2
"""Unsteady tests that a run may have."""
MOST_FAILED = 12
"""With more failed tests than this, it is not chance: none is run again."""
LONGEST = 600.0
"""Seconds after which a test that runs again has failed again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What people are told about the tests that failed, and whether the run is good all the same."""

    lines: tuple[str, ...]
    good: bool


def judge(failed: Sequence[str], passed_alone: Iterable[str], listed: Iterable[str], day: str) -> Verdict:
    """Name the unsteady ones. Only few of them, and only such that nobody has met before, leave a run good."""
    unsteady = [test for test in failed if test in set(passed_alone)]
    known = [test for test in unsteady if test in set(listed)]
    lines = [f"unsteady: {test} (failed in the run, passed alone)" for test in unsteady]
    lines += [f"unsteady for the second time: {test}: find its cause, see tests/{LISTED.name}" for test in known]
    if len(unsteady) > MOST_UNSTEADY:
        lines.append(f"{len(unsteady)} unsteady tests, more than {MOST_UNSTEADY}")
    lines += [f"to be listed in tests/{LISTED.name}: {test}  # {day}: CAUSE" for test in unsteady if test not in known]
    good = len(unsteady) == len(failed) and len(unsteady) <= MOST_UNSTEADY and not known
    return Verdict(tuple(lines), good)


def read_list(text: str) -> list[str]:
    """The tests in a list: one a line, then two spaces, `#`, the day and the cause."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [line.partition("  #")[0].strip() for line in lines]


def without_group(test: str) -> str:
    """A test's id as pytest takes it: xdist adds `@` and the group of tests that share a worker."""
    name, mark, group = test.rpartition("@")
    return name if mark and "]" not in group else test


@dataclass(eq=False)  # pytest keeps its plugins in a set
class SecondTry:
    """Collects the tests that fail, and runs each once more after the last one."""

    failed: dict[str, None] = field(default_factory=dict)
    passed: bool = False
    """Whether any test passed: one that was alone anyway is not run again."""
    told: list[str] = field(default_factory=list)
    """How each failed: told before they run again, so that whoever cuts the run short has seen it."""
    lines: tuple[str, ...] = ()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed |= report.passed and report.when == "call"
        if report.failed:
            self.failed[without_group(report.nodeid)] = None
            self.told.append(f"{report.nodeid}\n{report.longreprtext}")

    def finish(self, session: pytest.Session, day: str) -> None:
        """Run the failed tests again, unless the run was cut short or too many failed; pass if they are unsteady."""
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not 0 < len(self.failed) <= MOST_FAILED:
            return
        if session.shouldfail or session.config.getoption("usepdb") or not self.passed:
            return
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.write_line("\n" + "\n\n".join(self.told))
        reporter.write_line(f"\nRunning {len(self.failed)} failed tests again, each alone.")
        passed = []
        for test in self.failed:
            passed += [test] if passes_alone(test, session.config.rootpath) else []
            reporter.write_line(f"{test}: {'passed' if test in passed else 'failed again'}")
        verdict = judge(list(self.failed), passed, read_list(LISTED.read_text()), day)
        self.lines = verdict.lines
        if verdict.good:
            session.exitstatus = pytest.ExitCode.OK


def passes_alone(test: str, root: Path, longest: float = LONGEST) -> bool:
    """Run one test in a process of its own. What it leaves behind may live on, and may not keep us waiting."""
    command = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test)
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(command, cwd=root, stdout=output, stderr=output, start_new_session=True)
        try:
            return running.wait(longest) == 0
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            return False

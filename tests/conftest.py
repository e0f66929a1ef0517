"""Every test in a world of its own: home, git settings and Windlass home are temporary, and nothing stays behind."""

from __future__ import annotations

import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import patience
import sample
from forked import FORK
from repositories import PERSON, new_repository
from unsteady import SecondTry

ROOT = "WINDLASS_TEST_ROOT"
"""Names the suite's folder to the processes of the suite (xdist's workers, and what tests start)."""
SANDBOX = "WINDLASS_TEST_SANDBOX"
"""Whether agents in tests are kept in a sandbox where a test does not say so: `off`, unless whoever runs them does."""
ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")
LONGEST_ID = 60
"""Characters of a case that stand in its test's name."""
LEAVING_SECONDS = 10.0
"""Seconds in which a quiet machine ends the processes of a test."""
STRAY = ("WINDLASS_", "GIT_", "XDG_", "CLICOLOR", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
"""Variables of the person who runs the tests that would change what is tested."""
MEANT = ("WINDLASS_TEST_AGENTS", "WINDLASS_SIMULATION_", patience.SLOWNESS, sample.DAY, sample.LONG, FORK)
"""Those that are meant for the tests themselves."""

Git = Callable[..., str]


# ── how it is run ────────────────────────────────────────────────────────────────────────────────────────────


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="play every case of the long matrices, not a day's sample")


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many workers as cores: tests with real processes wait half of the time."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value's name is its beginning: ids of megabytes go from every worker to the suite and into variables."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    return f"{val[:LONGEST_ID]!r} and {len(val) - LONGEST_ID} more"


def pytest_report_header() -> str:
    """Which sample is played, how patient tests are, and whether commands are forked."""
    forks = f"commands and daemons: {'programs of their own' if os.environ.get(FORK) == 'no' else 'forked'} ({FORK})"
    return f"{sample.described()}\npatience: {patience.slowness():.1f} times that of a quiet machine\n{forks}"


# ── a world of its own ───────────────────────────────────────────────────────────────────────────────────────


def pytest_configure(config: pytest.Config) -> None:
    """Cut the suite off from the person's home before anything is imported or started."""
    _take_signals_back()
    if ROOT not in os.environ:
        config.pluginmanager.register(second_try := SecondTry())
        config.pluginmanager.register(Closing(Path.home(), Path(tempfile.mkdtemp(prefix="wl-")), second_try))
        os.environ.setdefault(patience.SLOWNESS, f"{patience.measure():.1f}")
        os.environ[sample.LONG] = "yes" if config.getoption("--long") else ""
        os.environ.setdefault(FORK, "no" if config.getoption("--long") else "yes")
        sample.today()
    os.environ.update(_world(Path(os.environ[ROOT]) / "session"))


def _take_signals_back() -> None:
    """A suite in the background ignores Ctrl-C, and so would every process of its tests: it hears it, and goes on."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def _leave_home(root: Path) -> None:
    """Forget the person's settings; keep the Python that runs this, also where it is a version manager's shim."""
    pyenv, sandbox = Path.home() / ".pyenv", os.environ.get(SANDBOX, "off")
    for name in [each for each in os.environ if each.startswith(STRAY) and not each.startswith(MEANT)]:
        del os.environ[name]
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC", GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0")
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    if pyenv.is_dir():
        os.environ.setdefault("PYENV_ROOT", str(pyenv))
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # `tmp_path` stays where it is looked for
    os.environ.update({ROOT: str(root), SANDBOX: sandbox, "TMPDIR": str(root / "tmp")})
    root.chmod(0o711)  # a test may go on as another user
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    tempfile.tempdir = None  # read TMPDIR anew


def _world(folder: Path) -> dict[str, str]:
    """Make a home; return the variables that lead there."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    settings = home / ".gitconfig"
    if not settings.exists():
        settings.write_text(PERSON)
    return {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(settings),
        "WINDLASS_HOME": str(folder / "wl"),
        "WINDLASS_SANDBOX": os.environ.get(SANDBOX, "off"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
    }


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short folder of the test's own, with HOME and WINDLASS_HOME in it. Gone after the test, with all in it."""
    folder = Path(tempfile.mkdtemp(dir=os.environ[ROOT], prefix=""))
    for name, value in _world(folder).items():
        monkeypatch.setenv(name, value)
    yield folder
    left = _leavers(folder) if (folder / "wl").exists() else []
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"left running: {left}"


@pytest.fixture
def git() -> Git:
    """`git("log", "--oneline", cwd=repo)`: run git as a person would, and return what it prints."""

    def run(*arguments: str, cwd: str | Path) -> str:
        done = subprocess.run(("git", *arguments), cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    return run


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A person's repository: on `main`, one commit, clean."""
    return new_repository(tmp_path / "repo")


# ── nothing stays behind ─────────────────────────────────────────────────────────────────────────────────────


def _leavers(*folders: Path) -> list[str]:
    """Processes that live in these folders and do not leave in time; they are ended: the machine stays clean."""
    deadline = patience.Deadline(LEAVING_SECONDS)
    while (found := _inhabitants(folders)) and not deadline.passed():
        time.sleep(0.05)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return [f"{pid}: {words}" for pid, words in found.items()]


def _inhabitants(folders: tuple[Path, ...]) -> dict[int, str]:
    """Our own processes that work in one of these folders, or have a WINDLASS_ variable that leads there."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _lives_in(entry, folders):
            found[int(entry.name)] = _words(entry)
    return found


def _lives_in(process: Path, folders: tuple[Path, ...]) -> bool:
    try:
        where = (process / "cwd").readlink()
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, a zombie, or someone else's
        return False
    places = [variable.partition(b"=")[2] for variable in variables if variable.startswith(b"WINDLASS_")]
    inside = any(place.startswith(os.fsencode(folder) + b"/") for place in places for folder in folders)
    return inside or any(where.is_relative_to(folder) for folder in folders)


def _words(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone by now"


# ── at the end ───────────────────────────────────────────────────────────────────────────────────────────────


class Closing:
    """Looks, after the last test, for what was left behind or skipped; not in xdist's workers, but where they began."""

    def __init__(self, home: Path, root: Path, second_try: SecondTry) -> None:
        self.root = root
        self.second_try = second_try
        self.default_home = home / ".windlass"
        self.had_home = self.default_home.exists()
        self.skipped: list[tuple[str, str]] = []
        self.troubles: list[str] = []
        _leave_home(root)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:  # failed as expected counts as well
            self.skipped.append((report.nodeid, _why(report)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:  # a whole file
            self.skipped.append((report.nodeid, _why(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After xdist's workers have gone."""
        self.second_try.finish(session, sample.today().isoformat())
        self.troubles += [f"left running: {leaver}" for leaver in _leavers(self.root, *_basetemp(session.config))]
        patience.until(lambda: not self._left(), "files to be removed", within=LEAVING_SECONDS, fails=False)
        self.troubles += [f"left behind: {path}" for path in self._left()]
        if self.default_home.exists() and not self.had_home:
            self.troubles.append(f"made in the person's own home: {self.default_home}")
        if os.environ.get("CI"):
            self.troubles += _unexplained(self.skipped)
        if self.troubles and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _left(self) -> list[Path]:
        return list((self.root / "tmp").iterdir())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in (*self.second_try.lines, *self.troubles):
            terminalreporter.write_line(line, red=True)

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail) or "expected to fail"
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


def _unexplained(skipped: list[tuple[str, str]]) -> list[str]:
    """Skips that the list of allowed ones does not name."""
    lines = [line for line in ALLOWED_SKIPS.read_text().splitlines() if line.strip() and not line.startswith("#")]
    allowed = [line.partition("  #")[0].strip() for line in lines]
    return [
        f"skipped without leave: {name} ({why}); see {ALLOWED_SKIPS.name}"
        for name, why in skipped
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
    ]


def _basetemp(config: pytest.Config) -> list[Path]:
    """Where `tmp_path` folders are made."""
    factory = getattr(config, "_tmp_path_factory", None)
    return [factory.getbasetemp()] if factory else []

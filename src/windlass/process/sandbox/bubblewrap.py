"""Keep a run in a sandbox of bubblewrap.

The machine can be read. The home, our own folder and those for temporary files are hidden, except for the parts that
the run needs. It sees no process but its own, holds no capability, and its processes end with it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from posixpath import basename, dirname, isdir, realpath

from windlass.core.errors import Unavailable
from windlass.core.runs.sandbox import Sandbox, SandboxKeeper
from windlass.process.environment import TRUSTED
from windlass.process.sandbox import programs
from windlass.process.sandbox.home import SandboxHome, there
from windlass.process.sandbox.mounts import Mounts

NAME = "bubblewrap"
_PROGRAM = "bwrap"
_HOST = "windlass"
"""The machine's name in a sandbox; it also tells our sandboxes from those that agents make."""
_INSTALL = (
    "Install bubblewrap (apt, dnf, pacman, apk or zypper install bubblewrap), "
    "or go without: `windlass work … --sandbox off`."
)
_PROBE_SECONDS = 20.0

# root's processes could write to these without any capability, and change the machine outside
_KERNEL = [Path("/proc", part) for part in "sys sysrq-trigger irq bus fs acpi asound mtrr scsi".split()]
_MACHINE = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *(word for path in _KERNEL if path.exists() for word in ("--ro-bind", str(path), str(path))),
)
_APART = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", _HOST),
    *("--cap-drop", "ALL", "--new-session", "--die-with-parent"),
)
_TEMPORARY = ("/tmp", "/var/tmp")
_SOCKETS = ("/run", "/var/run")
"""Folders with the sockets of services, some of which would do what the sandbox forbids."""
_MOVED = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Variables that lead to the user's own folders, where those are not at their usual places."""


class Bubblewrap:
    """Makes sandboxes, where the machine lets us."""

    def __init__(self) -> None:
        self._program = ""

    def keeper(self) -> SandboxKeeper:
        """Whether it works here; asked anew as long as it does not."""
        if not self._program:
            program = shutil.which(_PROGRAM)
            problem = _probe(program) if program else "bubblewrap (bwrap) is not installed."
            if problem:
                return SandboxKeeper(NAME, problem, _INSTALL)
            self._program = program or ""
        return SandboxKeeper(NAME)

    def wrapped(
        self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], sandbox: Sandbox
    ) -> tuple[list[str], dict[str, str]]:
        """The command and the environment of a program in its sandbox. Makes the folder that stands for the home."""
        keeper = self.keeper()
        if keeper.problem:
            raise Unavailable(f"There is no sandbox: {keeper.problem}", hint=keeper.hint)
        try:
            mounts = _mounts(argv[0], environment, sandbox)
        except OSError as error:
            raise Unavailable(
                f"The sandbox could not be made: {error.strerror or error} ({error.filename})."
            ) from error
        network = () if sandbox.network else ("--unshare-net",)
        words = [self._program, *_MACHINE, *mounts.words(), *_APART, *network, "--chdir", cwd, "--", *argv]
        return words, _inside(environment)


def is_bubblewrap(words: Sequence[str]) -> bool:
    """Whether a process with these words is bubblewrap, as we start it."""
    return Path(words[0]).name == _PROGRAM and "--" in words and _HOST in words[: words.index("--")]


def _probe(program: str) -> str:
    """Why bubblewrap does not work; nothing if it does."""
    words = [program, *_MACHINE, "--tmpfs", _TEMPORARY[0], *_APART, "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be run: {error}."
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return "" if done.returncode == 0 else f"bubblewrap does not work here ({''.join(said) or done.returncode})."


def _mounts(program: str, environment: Mapping[str, str], sandbox: Sandbox) -> Mounts:
    """Everything that is put into its place; what is said later counts more."""
    mounts = Mounts()
    own = _stand_ins(mounts, environment, sandbox)
    # checks do not get these variables, and are to find as little there
    moved = (environment.get(name) or os.environ.get(name) or "/" for name in _MOVED)
    for folder in (*_TEMPORARY, *moved):
        mounts.empty(folder)
    for socket in _SOCKETS:
        mounts.empty(socket, closed=True)
    _follow(mounts, environment, sandbox)
    certificates = [path for name in TRUSTED if (path := environment.get(name, "")).startswith("/")]
    for path in (*programs.ours(), dirname(realpath("/etc/resolv.conf")), *certificates):
        mounts.show(path)
    for path in programs.needed(environment.get("PATH", ""), program, mounts.is_hidden):
        mounts.show(path)
    _protect(mounts, own, _paths(sandbox.protected, environment))
    for name, leads in sandbox.links:
        mounts.link(f"{realpath(dirname(name))}/{basename(name)}", leads)
    for place, stand_in in own.items():
        stand_in.make_room(mounts.directly_in(place), place)
    if home := own.get(_home(environment)):
        for name, text in sandbox.files:
            home.write(Path(name), text.encode("utf-8", "surrogateescape"))
    return mounts


def _stand_ins(mounts: Mounts, environment: Mapping[str, str], sandbox: Sandbox) -> dict[str, SandboxHome]:
    """Folders of the agent's in the place of the user's: the home, and what variables of its provider's name."""
    parts = (path.partition("/") for path in (*sandbox.writable, *sandbox.protected))
    named = sorted({first[1:] for first, slash, _ in parts if first.startswith("$") and slash})
    places = {"home": _home(environment)} | {name: realpath(environment.get(name) or "/") for name in named}
    own = {}
    for name, place in places.items():
        if place != "/" and isdir(place) and not mounts.is_hidden(place):
            own[place] = SandboxHome(Path(sandbox.own, name))
            own[place].path.mkdir(mode=0o700, parents=True, exist_ok=True)
            mounts.instead(place, str(own[place].path))
    return own


def _follow(mounts: Mounts, environment: Mapping[str, str], sandbox: Sandbox) -> None:
    """Mount the sandbox's paths. A hidden one may be in a writable one, and a writable one in a hidden one."""
    writable = _paths(sandbox.writable, environment)
    for path in writable:
        mounts.open(path)
    for path in sandbox.hidden:
        mounts.clear(path, closed=True)
    for path in _paths(sandbox.readable, environment):
        if not _leads_out(path, sandbox.hidden):
            mounts.show(path)
    for path in writable:
        mounts.open(path)


def _leads_out(path: str, hidden: Sequence[str]) -> bool:
    """Whether a path in a hidden folder leads out of it by a link, which someone else may have put there."""
    return any(path.startswith(f"{top}/") and not realpath(path).startswith(f"{realpath(top)}/") for top in hidden)


def _protect(mounts: Mounts, own: Mapping[str, SandboxHome], paths: Sequence[str]) -> None:
    """Folders are shown. Files are copied, so that a program can write its own; in what is shared nobody can."""
    for path in paths:
        real = f"{realpath(dirname(path))}/{basename(path)}"
        place = next((folder for folder in own if real.startswith(f"{folder}/")), None)
        if mounts.is_open(real):
            mounts.show(there(real))
        elif isdir(real):
            mounts.show(real)
        elif place:
            own[place].copy(Path(real), Path(real).relative_to(place))


def _inside(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what leads to places that are hidden."""
    home = _home(environment)
    kept = {name: value for name, value in environment.items() if name not in _MOVED}
    return kept | {"HOME": _TEMPORARY[0] if home == "/" else home, "TMPDIR": _TEMPORARY[0]}


def _home(environment: Mapping[str, str]) -> str:
    return realpath(environment.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def _paths(named: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """`~/x`, `$NAME/x`, `x` and `/x` as paths; what a missing variable leads to is left out."""
    return [path for path in (_expanded(name, environment) for name in named) if path.startswith("/")]


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    first, slash, rest = path.partition("/")
    if first.startswith("$"):
        value = environment.get(first[1:], "")
        return value and value + slash + rest
    return path if first == "" else f"{_home(environment)}/{rest if first == '~' else path}".rstrip("/")

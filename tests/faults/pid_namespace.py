"""A pid namespace of a test's own, in which it says which pid is the next."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
REASON = "needs root, and a pid namespace in which pids can be chosen"


def can_choose_pids() -> bool:
    """Whether we may have a pid namespace of our own, and say there which pid is the next."""
    words = (*APART, "sh", "-c", f"echo 4000 > {LAST_PID} && [ $(sh -c 'echo $$; :') = 4001 ]")
    return bool(shutil.which("unshare")) and not subprocess.run(words, capture_output=True, check=False).returncode


def choose_next(pid: int) -> None:
    """Say which pid the next process gets, if nobody else is faster."""
    LAST_PID.write_text(str(pid - 1))


def play_apart(code: str, *words: str, within: float) -> str:
    """Run Python code with these words in a pid namespace of its own, and return what it prints."""
    paths = os.pathsep.join(each for each in (str(Path(__file__).parent), *sys.path) if each)
    told = subprocess.run(
        (*APART, "sh", "-c", '"$@"; exit "$?"', "sh", sys.executable, "-c", code, *words),  # the shell buries orphans
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout

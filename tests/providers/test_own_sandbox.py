"""An agent whose program keeps it in a sandbox of its own, where no socket can be reached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import patience

WINDLASS = (sys.executable, "-c", "from windlass.cli.main import run; run()")
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root may enter every folder, unless it is told that it may not."""

as_anyone = pytest.mark.skipif(
    os.getuid() == 0 and shutil.which("setpriv") is None, reason="root needs setpriv to be kept out of a folder"
)


def complete(own_home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`windlass agent complete` where the daemon's folder is closed."""
    home = own_home / "wl"
    home.mkdir(mode=0o000)
    words = (*(WITHOUT_RIGHTS if os.getuid() == 0 else ()), *WINDLASS, "agent", "complete", "All of it.")
    variables = {**os.environ, **variables}
    try:
        return subprocess.run(
            words, env=variables, capture_output=True, text=True, timeout=patience.seconds(30), check=False
        )
    finally:
        home.chmod(0o700)


@as_anyone
def test_a_signal_is_left_in_its_file(own_home: Path) -> None:
    """Who can't reach the daemon leaves the signal in the file that is looked at anyway."""
    file = own_home / "output" / "signal.json"
    done = complete(own_home, WINDLASS_SIGNAL=str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "can't be reached from here" in done.stdout
    assert json.loads(file.read_text()) == {"status": "done", "result": "All of it."}


@as_anyone
def test_outside_a_run_it_is_refused(own_home: Path) -> None:
    """Without a run there is no such file, so the refusal says why."""
    done = complete(own_home)
    assert done.returncode == 5
    assert "can't be reached from here" in done.stderr

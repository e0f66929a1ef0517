"""A command that asks the daemon, beside a bare Python that says one line over the same socket."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measure import Result, interleaved
from outside import outside

FLOOR = """
import argparse, json, os, socket
argparse.ArgumentParser().parse_args()
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["WINDLASS_HOME"] + "/daemon.sock")
line.sendall(b"GET /agents HTTP/1.1\\r\\nHost: windlass\\r\\nConnection: close\\r\\n\\r\\n")
answer = b""
while part := line.recv(65536):
    answer += part
json.loads(answer.partition(b"\\r\\n\\r\\n")[2])
"""


def cli_command(*, quick: bool) -> Sequence[Result]:
    """`windlass list` with a daemon that runs already."""
    with tempfile.TemporaryDirectory(prefix="wl") as folder, outside(Path(folder) / "home") as asked:
        ours, floor = interleaved(lambda: asked.windlass("list"), lambda: _floor(asked.home), rounds=9 if quick else 21)
    what = "a command that asks the daemon / bare Python on the socket"
    return [Result(name="cli", what=what, unit="ms", ours=ours, floor=floor, goal=2.0)]


def _floor(home: Path) -> float:
    environment = os.environ | {"WINDLASS_HOME": str(home)}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", FLOOR], env=environment, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000

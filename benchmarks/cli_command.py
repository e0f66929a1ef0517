"""A command that asks the daemon, beside a bare Python that says one line over the same socket."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from measure import Result, interleaved

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
    with tempfile.TemporaryDirectory(prefix="wl") as home:
        environment = os.environ | {"WINDLASS_HOME": home}
        windlass = [sys.executable, "-c", "from windlass.cli.main import run; run()"]
        _timed([*windlass, "daemon", "start"], environment)
        try:
            ours, floor = interleaved(
                lambda: _timed([*windlass, "list"], environment),
                lambda: _timed([sys.executable, "-I", "-c", FLOOR], environment),
                rounds=9 if quick else 21,
            )
        finally:
            _timed([*windlass, "daemon", "stop"], environment)
    what = "a command that asks the daemon / bare Python on the socket"
    return [Result(name="cli", what=what, unit="ms", ours=ours, floor=floor, goal=2.0)]


def _timed(argv: Sequence[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, env=environment, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000

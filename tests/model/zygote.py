"""Starts the process under test without its seconds of imports: a child of one that has the library already.

Each line of standard input is an order: words, environment, the folder to work in and one with the standard files. The
answer is the child's pid; how it ended is written beside its output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pydantic_ai.models.anthropic
import pydantic_ai.models.openai

import windlass.model.run
from windlass.model.__main__ import main

LIBRARY = (pydantic_ai.models.anthropic, pydantic_ai.models.openai, windlass.model.run)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def serve() -> None:
    """Begin whatever is ordered, until nobody orders anything."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the keepers ended
    for line in sys.stdin:
        order = json.loads(line)
        if os.fork() == 0:
            _keep(order)


def _keep(order: dict[str, Any]) -> None:
    """Tell the pid of a grandchild, and stay until it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        _play(order)
    sys.stdout.write(f"{child}\n")
    sys.stdout.flush()
    _, status = os.waitpid(child, 0)
    code = Path(order["folder"], "code")
    code.with_suffix(".new").write_text(str(os.waitstatus_to_exitcode(status)))
    code.with_suffix(".new").rename(code)
    os._exit(0)


def _play(order: dict[str, Any]) -> None:
    """Be the program, with its own places and standard files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["tree"])
    folder = order["folder"]
    for number, (name, flags) in enumerate((("prompt", os.O_RDONLY), ("out", _NEW), ("errors", _NEW))):
        os.dup2(os.open(f"{folder}/{name}", flags, 0o600), number)
    sys.stdin = os.fdopen(0)
    code = 1
    try:
        code = main(order["words"])
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()

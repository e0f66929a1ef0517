"""Which tool of which CLI does what a script wants done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from .script import Asked, Call, Tool

Arguments = dict[str, Any] | str


def _bash(call: Call, _folder: str) -> Arguments:
    return {"command": call.command, "description": "A step of the script"}


def _exec_command(call: Call, _folder: str) -> Arguments:
    return {"cmd": call.command, "yield_time_ms": 30_000}


def _write(call: Call, folder: str) -> Arguments:
    return {"file_path": str(PurePosixPath(folder, call.path)), "content": call.content}


def _apply_patch(call: Call, _folder: str) -> Arguments:
    added = "".join(f"+{line}\n" for line in call.content.splitlines())
    return f"*** Begin Patch\n*** Add File: {call.path}\n{added}*** End Patch\n"


def _shell(call: Call, _folder: str) -> Arguments:
    return {"command": call.command, "seconds": 60}


def _write_file(call: Call, _folder: str) -> Arguments:
    return {"path": call.path, "content": call.content}


TOOLS: Mapping[Tool, Mapping[str, Callable[[Call, str], Arguments]]] = {
    Tool.SHELL: {"Bash": _bash, "exec_command": _exec_command, "shell": _shell},
    Tool.WRITE: {"Write": _write, "apply_patch": _apply_patch, "write_file": _write_file},
}
"""Each tool under the name that a CLI gives it. Those that take a text are not called with JSON, but with that text."""


SERVER = "mcp__windlass__"
"""What CLIs put before the names of our own tools; our own process puts nothing there."""


def named(call: Call, asked: Asked) -> tuple[str, Arguments]:
    """The name and arguments of a call, for the CLI that asked."""
    for name in (f"{SERVER}{call.name}", call.name) if call.tool is Tool.OURS else ():
        if name in asked.tools:
            return name, dict(call.given)
    for name, arguments in TOOLS.get(call.tool, {}).items():
        if name in asked.tools:
            return name, arguments(call, asked.folder)
    raise LookupError(f"None of these tools can do {call.tool}: {', '.join(sorted(asked.tools))}")

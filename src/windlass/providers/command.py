"""Any executable: run by `sh -c` in its worktree, with the prompt on standard input and in `$WINDLASS_PROMPT`."""

from __future__ import annotations

from collections.abc import Mapping

from windlass.core.errors import BadInput
from windlass.core.runs.provider import DoneSign, Provider, StartRequest


def argv(start: StartRequest) -> tuple[str, ...]:
    return ("sh", "-c", start.options["command"])


def check(options: Mapping[str, str]) -> None:
    """Raise BadInput if no shell could run the command."""
    command = options.get("command", "")
    if not command.strip():
        raise BadInput(
            "The command is empty.", hint="Say what to run: --command 'my-agent --file \"$WINDLASS_PROMPT\"'."
        )
    if "\0" in command:
        raise BadInput("The command has a NUL character in it, which no program can be given.")


provider = Provider(
    name="command",
    summary="any executable: run by sh -c in its worktree, done when it exits with 0 and has committed something",
    argv=argv,
    check=check,
    options=("command",),
    claim=DoneSign.EXIT,
    program="sh",
)

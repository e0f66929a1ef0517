"""Which tools a caller sees. Talking is everyone's; what ends a run is only a run's."""

from __future__ import annotations

from collections.abc import Iterable

from windlass.core.messages.members import Speaker
from windlass.mcp.tools import Tool


def granted(speaker: Speaker, tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools of a caller, by name. One that may only read may talk all the same; a person has no run to end."""
    return {tool.name: tool for tool in tools if speaker.run or not tool.of_runs}

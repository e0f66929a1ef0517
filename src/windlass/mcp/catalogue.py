"""Every tool in one table: its function says what clients are told about it, and what it takes."""

from __future__ import annotations

from windlass.core.messages.members import Speaker
from windlass.mcp import tools
from windlass.mcp.tools import Tool

TOOLS = (
    Tool(tools.channel_send, repeatable=True),
    Tool(tools.channel_read),
    Tool(tools.channel_peek, looks=True),
    Tool(tools.channel_wait, looks=True),
    Tool(tools.inbox_read, looks=True),
    Tool(tools.inbox_ack, repeatable=True),
    Tool(tools.ask, repeatable=True),
    Tool(tools.answer, repeatable=True),
    Tool(tools.document_list, looks=True),
    Tool(tools.document_read, looks=True),
    Tool(tools.document_write),
    Tool(tools.document_append),
    Tool(tools.agents_list, looks=True),
    Tool(tools.complete, of_runs=True, repeatable=True),
)


def granted(speaker: Speaker) -> dict[str, Tool]:
    """The tools that a caller may use, by name. Only a run can use those that end a run."""
    return {tool.name: tool for tool in TOOLS if speaker.run or not tool.of_runs}

"""One run from its beginning to its end, whichever that is."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path

from pydantic_ai.messages import ModelMessage

from windlass.core.errors import WindlassError
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.run import TroubleKind
from windlass.model import mcp_client, model_lookup, toolbox
from windlass.model.commands import Commands
from windlass.model.conversation import ModelConversation, remembered
from windlass.model.errors import told
from windlass.model.files import AllowedPaths, Files
from windlass.model.history import Session
from windlass.model.report_lines import ReportLines

OUTPUT = ".windlass/output"
"""Where an agent that may only read writes its report."""
HOW = (
    "You work in the folder {folder}; the paths of your files count from there, and none leads out of it. "
    "Read before you change, look at what your commands print, and go on until your task is done. "
    "When you call no tool, your turn is over."
)


class ConversationLost(Exception):
    """The conversation is not there any more."""


async def until_the_end(given: argparse.Namespace, session: Session, prompt: str, before: bytes) -> int:
    """Run, and end at once and in order when asked to."""
    running = asyncio.current_task()
    assert running is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    lines = ReportLines()
    try:
        lines.result(await _converse(given, session, prompt, before))
        return 0
    except asyncio.CancelledError:
        lines.stopped()
        return 128 + signal.SIGTERM
    except ConversationLost as error:
        lines.error(TroubleKind.LOST, str(error))
    except WindlassError as error:
        lines.error(TroubleKind.ERROR, f"{error} {error.hint}".strip())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told in a line that can be read
        lines.error(*told(error))
    return 1


async def _converse(given: argparse.Namespace, session: Session, prompt: str, before: bytes) -> str:
    history = _history(before)
    model = model_lookup.build(given.model, base_url=given.base_url, protocol=given.protocol, key=given.key)
    environment = {name: value for name, value in os.environ.items() if name not in given.forget}
    places = AllowedPaths(given.folder, output=OUTPUT if given.permissions is Permissions.READ else "")
    tools = toolbox.local(Files(places), Commands(places, environment), given.permissions, given.tools)
    async with mcp_client.connected(environment) as connection:
        tools += toolbox.ours(connection, await connection.greet())
        conversation = ModelConversation(model, tools, session=session, system=_system(given))
        return await conversation.go(prompt, history)


def _history(kept: bytes) -> list[ModelMessage]:
    """The messages of a kept session. Raises ConversationLost if the library can't read them any more."""
    try:
        return remembered(kept)
    except ValueError as error:
        raise ConversationLost("The session can't be read any more.") from error


def _system(given: argparse.Namespace) -> str:
    who = Path(given.system).read_text("utf-8") if given.system else ""
    return f"{HOW.format(folder=given.folder[0])}\n\n{who}".strip()

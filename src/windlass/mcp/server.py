"""The MCP server: tools and the inbox over streamable HTTP, for clients of both eras of the protocol.

A client of the older era opens a session with a handshake, and is told of news on a stream of its own. In the newer era
each request stands alone, and news come as the answer to `subscriptions/listen`. The official SDK speaks both; this
module gives it the tools. The HTTP entrance says who calls, anew for each request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from windlass import __version__
from windlass.core import requests
from windlass.core.agents.grants import Grant
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import WindlassError
from windlass.engine import Engine
from windlass.mcp import tools
from windlass.mcp.caller import SPEAKER, Context, McpCaller, McpCallers
from windlass.mcp.sessions import Sessions
from windlass.mcp.subscriptions import INBOX, Subscriptions, must_be_inbox

IDLE_SECONDS = 6 * 3600.0
"""An idle session is forgotten after this time; its client begins a new one."""
INSTRUCTIONS = (
    "Talk to the other agents of this project and to people (channel_send, channel_read, inbox_read, ask, answer), "
    "share documents (document_read, document_write), and end your run (complete)."
)
"""Some clients show only this before a model has searched for tools."""


class ToolServer:
    """Answers at `/mcp` for as long as the daemon lives."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.callers = McpCallers(engine)
        self.subscriptions = Subscriptions(engine, self.callers)
        self._manager = StreamableHTTPSessionManager(
            self._built(), session_idle_timeout=IDLE_SECONDS, max_sessions=None
        )
        self.sessions = Sessions(self._manager, self.subscriptions.notifier, self.subscriptions.forget)
        self._leaving = asyncio.Event()
        self._open = asyncio.Event()
        self._living: asyncio.Task[None] | None = None
        logging.getLogger("mcp").setLevel(logging.ERROR)  # clients are told their own mistakes

    def _built(self) -> Server[Any]:
        server = Server[Any](
            "windlass",
            version=__version__,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda _tool: None,  # no argument travels in a header of its own
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self.subscriptions.subscribe,
            on_unsubscribe_resource=self.subscriptions.unsubscribe,
            on_subscriptions_listen=self.subscriptions.listen,
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self.subscriptions.greet)
        server.middleware.clear()  # nobody here collects its traces
        return server

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Begin. The sessions live in a task of their own, whoever opens them."""
        self._living = asyncio.create_task(self._live())
        await self._open.wait()

    async def _live(self) -> None:
        async with self._manager.run():
            self._open.set()
            await self._leaving.wait()

    def leave(self) -> None:
        """End every session and stream."""
        self._leaving.set()

    async def close(self) -> None:
        """Leave, and wait until all have ended."""
        self.leave()
        await self.subscriptions.close()
        await self.sessions.close()
        if self._living is not None:
            await self._living

    async def serve(self, run: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a run or, with an empty `run`, of a person."""
        speaker = await self.engine.callers.admit(run, Grant.PROJECT)
        await self.sessions.serve(speaker, {**scope, SPEAKER: speaker}, receive, send)

    # ── what clients ask for ─────────────────────────────────────────────────────────────────────────────────

    async def _list_tools(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = self.callers.caller(ctx)
        return types.ListToolsResult(tools=[_shown(tool) for tool in tools.granted(caller.speaker).values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            caller = self.callers.caller(ctx)
            tool = _known(params.name, tools.granted(caller.speaker))
            found = await self._called(tool, caller, params.arguments or {})
            return types.CallToolResult(content=[types.TextContent(text=_json(found))], structured_content=found)
        except WindlassError as error:
            return _problem(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the caller gets a sentence, the log the rest
            self.engine.troubles.report("mcp", error)
            return _problem(WindlassError("Something went wrong.", hint="See `windlass daemon logs`."))

    async def _called(self, tool: tools.Tool, caller: McpCaller, given: Mapping[str, Any]) -> dict[str, Any]:
        checked = requests.read(tool.arguments, given, noun=f"an argument of {tool.name}")
        subject = getattr(checked, tool.subject) if tool.grant.names else ""
        await self.engine.callers.admit(caller.speaker.run, tool.grant, subject)  # its run may have been stopped
        named = await self.callers.identify(caller, getattr(checked, "sender", ""))
        return await tool.call(tools.ToolCall(engine=self.engine, caller=named, key=caller.key), checked)

    async def _list_resources(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        about = "What is for you and not acknowledged yet; subscribe to it to hear of something new."
        return types.ListResourcesResult(
            resources=[types.Resource(uri=INBOX, name="inbox", description=about, mime_type="application/json")]
        )

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        must_be_inbox(str(params.uri))
        caller = self.callers.caller(ctx)
        found = await tools.unread(self.engine, caller.speaker)
        content = types.TextResourceContents(uri=INBOX, mime_type="application/json", text=_json(found))
        return types.ReadResourceResult(contents=[content])


def _known(name: str, allowed: Mapping[str, tools.Tool]) -> tools.Tool:
    if name not in allowed:
        hint = near_miss(name[:80], allowed)
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {name[:80]!r}. {hint}".strip())
    return allowed[name]


def _shown(tool: tools.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=requests.describe(tool.arguments),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.looks,
            destructive_hint=False,
            idempotent_hint=tool.looks or tool.repeatable,
            open_world_hint=False,
        ),
    )


def _problem(error: WindlassError) -> types.CallToolResult:
    """An error as its caller reads it: the sentence and the hint."""
    return types.CallToolResult(content=[types.TextContent(text=f"{error} {error.hint}".strip())], is_error=True)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)

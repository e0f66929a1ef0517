"""The conversation: ask the model, run the tools it calls, report and keep each step, until it calls none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRequest, Tool, UsageLimits
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelResponse,
    PartEndEvent,
    TextPart,
)
from pydantic_ai.models import Model
from pydantic_ai.result import AgentStream
from pydantic_ai.run import AgentRun
from pydantic_ai.settings import ModelSettings

from windlass.model.history import Session
from windlass.model.report_lines import ReportLines

RETRIES = 2
"""How often a request is sent again that failed on the other side."""
SLIPS = 20
"""How often a tool may be called wrongly."""
_TELLING = ("command", "path", "pattern", "words", "message", "result")
"""The arguments of a call that people are shown."""


class ModelConversation:
    """One run's part of a conversation."""

    def __init__(self, model: Model, tools: Sequence[Tool[None]], *, session: Session, system: str) -> None:
        self.agent = Agent(
            model,
            instructions=system,
            tools=tools,
            retries=SLIPS,
            model_settings=ModelSettings(cache=True, max_retries=RETRIES),
        )
        self.session = session
        self.lines = ReportLines()

    async def go(self, prompt: str, before: Sequence[ModelMessage]) -> str:
        """Go on until the model calls no more tools. Returns its last text."""
        self._keep([*before, ModelRequest.user_text_prompt(prompt)])
        async with self.agent.iter(prompt, message_history=before, usage_limits=UsageLimits(request_limit=None)) as run:
            try:
                async for node in run:
                    await self._follow(run, node)
                    self._keep(run.all_messages(), at_least=len(before) + 1)
            except (asyncio.CancelledError, Exception):
                self._keep(run.all_messages(), at_least=len(before) + 1)
                raise
            assert run.result is not None
            return str(run.result.output)

    async def _follow(self, run: AgentRun[None, Any], node: Any) -> None:
        """Tell what happens in one step."""
        if Agent.is_model_request_node(node):
            answer: AgentStream[Any, Any]
            async with node.stream(run.ctx) as answer:
                async for event in answer:
                    self._heard(event)
            self._used(answer.response)
        elif Agent.is_call_tools_node(node):
            async with node.stream(run.ctx) as events:
                async for event in events:
                    self._done(event)

    def _heard(self, event: object) -> None:
        match event:
            case PartEndEvent(part=TextPart(content=text)):
                self.lines.said(text)
            case _:
                self.lines.beat()

    def _done(self, event: object) -> None:
        match event:
            case FunctionToolCallEvent(part=part):
                self.lines.called(part.tool_name, _what(part.args))
            case FunctionToolResultEvent(part=part):
                failed = getattr(part, "outcome", "success") != "success"
                self.lines.answered(part.tool_name or "", str(part.content), failed=failed)

    def _used(self, response: ModelResponse) -> None:
        usage, cost = response.usage, Decimal(0)
        with suppress(LookupError, ValueError, AssertionError):  # a model whose price nobody knows
            cost = response.cost().total_price
        self.lines.used(
            read=usage.input_tokens, cached=usage.cache_read_tokens, written=usage.output_tokens, cost=float(cost)
        )

    def _keep(self, messages: Sequence[ModelMessage], *, at_least: int = 0) -> None:
        """Keep the conversation; never fewer messages than are kept already."""
        if len(messages) >= at_least:
            self.session.keep(ModelMessagesTypeAdapter.dump_json(list(messages)))


def remembered(content: bytes) -> list[ModelMessage]:
    """A conversation that was kept."""
    return ModelMessagesTypeAdapter.validate_json(content)


def _what(args: object) -> str:
    """What a tool is called with, in a few words."""
    given = args
    if isinstance(args, str):
        with suppress(ValueError):
            given = json.loads(args)
    if not isinstance(given, dict):
        return ""
    found = next((given[each] for each in _TELLING if given.get(each)), "")
    return " ".join(map(str, found)) if isinstance(found, list) else str(found)

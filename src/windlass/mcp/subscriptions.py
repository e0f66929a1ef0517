"""Hearing of news: `inbox://me` is updated. In the older era a session hears it, in the newer an open request."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Literal, cast

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    EmptyResult,
    Notification,
    NotificationParams,
    ServerNotification,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from starlette.requests import Request

from windlass.core.nouns.message import Message
from windlass.engine import Engine
from windlass.mcp.caller import Context, McpCallers, request_of
from windlass.mcp.notifier import Listener, Notifier
from windlass.mcp.tools import entry

INBOX = "inbox://me"
SESSION_HEADER = "mcp-session-id"
MOST_EARS = 1000
"""Sessions that hear of news at the same time; of those that never said goodbye, the oldest is forgotten first."""


class Mention(Notification[dict[str, Any], Literal["notifications/mention"]]):
    """What clients of the older era may hear besides; the newer has no notifications but its own."""

    method: Literal["notifications/mention"] = "notifications/mention"
    params: dict[str, Any]


class Ear:
    """A session of the older era."""

    def __init__(self, session: ServerSession, reader: str) -> None:
        self.session = session
        self.reader = reader
        self.subscribed = False

    async def tell(self, message: Message) -> None:
        mention = Mention(params=entry(message) | {"target": self.reader})
        await self.session.send_notification(cast(ServerNotification, mention))
        if self.subscribed:
            await self.session.send_resource_updated(INBOX)


class Subscriptions:
    """Who hears of news, and how."""

    def __init__(self, engine: Engine, visitors: McpCallers) -> None:
        self.visitors = visitors
        self.news = Notifier(engine)
        self._ears: dict[str, tuple[Ear, Listener]] = {}
        """By session."""

    async def greet(self, ctx: Context, _params: NotificationParams) -> None:
        """A session has begun."""
        await self._ear(ctx)

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        _must_be_inbox(str(params.uri))
        (await self._ear(ctx)).subscribed = True
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        _must_be_inbox(str(params.uri))
        (await self._ear(ctx)).subscribed = False
        return EmptyResult()

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """A request of the newer era that is answered by news, until its caller hangs up."""
        visit = await self.visitors.visit(ctx)
        bus = InMemorySubscriptionBus()

        async def tell(_message: Message) -> None:
            await bus.publish(ResourceUpdated(uri=INBOX))

        handler = ListenHandler(bus)
        listener = Listener(reader=visit.speaker.address, run=visit.speaker.run, tell=tell, end=handler.close)
        await self.news.add(listener)
        try:
            return await handler(ctx, params)
        finally:
            self.news.drop(listener)

    def forget(self, request: Request) -> None:
        """A session ends."""
        self._drop(request.headers.get(SESSION_HEADER, ""))

    def _drop(self, session: str) -> None:
        if found := self._ears.pop(session, None):
            self.news.drop(found[1])

    @property
    def sessions(self) -> Collection[str]:
        """Those who hear of news, the oldest first."""
        return self._ears.keys()

    async def close(self) -> None:
        self._ears.clear()
        await self.news.close()

    async def _ear(self, ctx: Context) -> Ear:
        session = request_of(ctx).headers.get(SESSION_HEADER, "")
        known = self._ears.get(session)
        if known is not None and self.news.has(known[1]):
            return known[0]
        visit = await self.visitors.visit(ctx)
        ear = Ear(ctx.session, visit.speaker.address)
        end = partial(self._drop, session)
        listener = Listener(reader=visit.speaker.address, run=visit.speaker.run, tell=ear.tell, end=end)
        while len(self.sessions) >= MOST_EARS:
            self._drop(next(iter(self.sessions)))
        self._ears[session] = (ear, listener)
        await self.news.add(listener)
        return ear


def _must_be_inbox(uri: str) -> None:
    if uri != INBOX:
        raise MCPError(INVALID_PARAMS, f"There is no resource {uri[:80]!r}; there is {INBOX}.")

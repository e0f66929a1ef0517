"""Telling clients that `inbox://me` has changed: a session in the older era, an open request in the newer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, cast

from mcp import types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from windlass.core.nouns.message import Message
from windlass.engine import Engine
from windlass.mcp.caller import Context, McpCallers, request_of
from windlass.mcp.notifier import Listener, Notifier
from windlass.mcp.sessions import SESSION_HEADER
from windlass.mcp.tools import entry

INBOX = "inbox://me"
FIRST_VERSION = "2024-11-05"
"""Its clients end at a notification that they do not know."""


class Mention(types.Notification[dict[str, Any], Literal["notifications/mention"]]):
    """A notification of ours for clients of the older era; the newer era allows only its own."""

    method: Literal["notifications/mention"] = "notifications/mention"
    params: dict[str, Any]


class OlderSession:
    """A client of the older era that is told of news."""

    def __init__(self, session: ServerSession, reader: str) -> None:
        self.session = session
        self.reader = reader
        self.subscribed = False

    async def tell(self, message: Message) -> None:
        if self.session.protocol_version != FIRST_VERSION:
            mention = Mention(params=entry(message) | {"target": self.reader})
            await self.session.send_notification(cast(types.ServerNotification, mention))
        if self.subscribed:
            await self.session.send_resource_updated(INBOX)


class Subscriptions:
    """Knows who is told of news, and how."""

    def __init__(self, engine: Engine, callers: McpCallers) -> None:
        self.callers = callers
        self.notifier = Notifier(engine)
        self._subscribed: dict[str, tuple[OlderSession, Listener]] = {}
        """By session."""

    async def greet(self, ctx: Context, _params: types.NotificationParams) -> None:
        """A session has begun."""
        await self._session(ctx)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        must_be_inbox(str(params.uri))
        (await self._session(ctx)).subscribed = True
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        must_be_inbox(str(params.uri))
        (await self._session(ctx)).subscribed = False
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer a request of the newer era with news, until its caller hangs up."""
        caller = self.callers.caller(ctx)
        bus = InMemorySubscriptionBus()

        async def tell(_message: Message) -> None:
            await bus.publish(ResourceUpdated(uri=INBOX))

        handler = ListenHandler(bus)
        listener = Listener(reader=caller.speaker.address, run=caller.speaker.run, tell=tell, end=handler.close)
        await self.notifier.add(listener)
        try:
            return await handler(ctx, params)
        finally:
            self.notifier.drop(listener)

    def forget(self, session: str) -> None:
        """A session has ended."""
        if found := self._subscribed.pop(session, None):
            self.notifier.drop(found[1])

    async def close(self) -> None:
        self._subscribed.clear()
        await self.notifier.close()

    async def _session(self, ctx: Context) -> OlderSession:
        session = request_of(ctx).headers.get(SESSION_HEADER, "")
        known = self._subscribed.get(session)
        if known is not None and self.notifier.has(known[1]):
            return known[0]
        caller = self.callers.caller(ctx)
        subscribed = OlderSession(ctx.session, caller.speaker.address)
        end = partial(self.forget, session)
        listener = Listener(reader=caller.speaker.address, run=caller.speaker.run, tell=subscribed.tell, end=end)
        self._subscribed[session] = (subscribed, listener)
        await self.notifier.add(listener)
        return subscribed


def must_be_inbox(uri: str) -> None:
    """Refuse any other resource."""
    if uri != INBOX:
        raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri[:80]!r}; there is {INBOX}.")

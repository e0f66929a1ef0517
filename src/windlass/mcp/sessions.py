"""The sessions of clients of the older era: each caller has a share of them, and a run's end with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from windlass.core.messages.members import Speaker
from windlass.core.nouns import message as said
from windlass.mcp.notifier import Listener, Notifier

MOST_OF_A_RUN = 32
MOST_OF_PEOPLE = 256
"""Sessions that a caller has at once. Of more, the one that was used longest ago is ended; its client begins anew."""
SESSION_HEADER = "mcp-session-id"


class Sessions:
    """Knows whose each session is, and ends those that are too many or whose run is over."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, notifier: Notifier, forget: Callable[[str], None]
    ) -> None:
        self.manager = manager
        self.notifier = notifier
        self.forget = forget
        """Called with each session that has ended."""
        self._of: dict[str, dict[str, None]] = {}
        """Sessions by run, the one first that was used longest ago. People have an empty run."""
        self._ending: set[asyncio.Task[None]] = set()

    def of(self, run: str) -> Sequence[str]:
        return [*self._of.get(run, ())]

    async def serve(self, speaker: Speaker, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. A session serves only who began it."""
        run, known = speaker.run, speaker.run in self._of

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] != "DELETE":
                self._note(run, Headers(raw=message["headers"]).get(SESSION_HEADER, ""))
            await send(message)

        await self.manager.handle_request({**scope, "user": _user(run)}, receive, noted)
        if scope["method"] == "DELETE":
            self._drop(run, Headers(scope=scope).get(SESSION_HEADER, ""))
        if run in self._of and not known:
            over = Listener(reader=speaker.address, run=run, tell=_nothing, end=partial(self._over, run))
            await self.notifier.add(over)
        while len(self.of(run)) > (MOST_OF_A_RUN if run else MOST_OF_PEOPLE):
            await self._end(run, self.of(run)[0])

    async def close(self) -> None:
        """Wait for what is being ended."""
        await asyncio.gather(*self._ending)

    def _note(self, run: str, session: str) -> None:
        """A session was used."""
        if session:
            own = self._of.setdefault(run, {})
            own.pop(session, None)
            own[session] = None

    def _drop(self, run: str, session: str) -> None:
        if session in self.of(run):
            del self._of[run][session]
            self.forget(session)

    def _over(self, run: str) -> None:
        task = asyncio.create_task(self._end_all(run))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end_all(self, run: str) -> None:
        for session in self.of(run):
            await self._end(run, session)
        self._of.pop(run, None)

    async def _end(self, run: str, session: str) -> None:
        """End a session as its own client would."""
        self._drop(run, session)
        headers = [(SESSION_HEADER.encode(), session.encode())]
        asked = {"type": "http", "method": "DELETE", "path": "/mcp", "query_string": b"", "headers": headers}
        await self.manager.handle_request({**asked, "user": _user(run)}, _no_body, _unread)


def _user(run: str) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=run or "human", scopes=[]))


async def _nothing(_message: said.Message) -> None:
    """It listens only for the end of its run."""


async def _no_body() -> Message:
    return {"type": "http.request", "body": b""}


async def _unread(_message: Message) -> None:
    """Nobody waits for this answer."""

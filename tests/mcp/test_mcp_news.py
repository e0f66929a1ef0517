"""Hearing of mail: `inbox://me` is updated for whoever subscribed, and for nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from e2e_stage import WITHIN
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.types import ResourceUpdatedNotification
from mcp_stage import NEWER, OLDER, TRANSPORTS, Place, Way, Worker, call, place
from pydantic import BaseModel, ConfigDict

pytestmark = [
    pytest.mark.xdist_group("mcp"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

INBOX = "inbox://me"


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.fixture(scope="module")
def workers(here: Place) -> tuple[Worker, Worker]:
    return here.worker("Listen"), here.worker("Be deaf")


class Ears:
    """What a client of the older era hears."""

    def __init__(self) -> None:
        self.updates: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await self.updates.put(str(message.params.uri))


class Said(BaseModel):
    """What a mention carries; any more is welcome."""

    model_config = ConfigDict(extra="allow")


class Mentions(ClientExtension):
    """Takes `notifications/mention`, as a client may that was written for it."""

    identifier = "example.com/mentions"

    def __init__(self) -> None:
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        return [NotificationBinding(method="notifications/mention", params_type=Said, handler=self._hear)]

    async def _hear(self, said: Said) -> None:
        await self.heard.put(said.model_dump())


async def soon(queue: asyncio.Queue[Any]) -> Any:
    return await asyncio.wait_for(queue.get(), WITHIN)


@pytest.mark.parametrize("transport", TRANSPORTS)
class TestOlderEra:
    def test_a_session_that_subscribed_hears_of_its_own_mail(
        self, here: Place, workers: tuple[Worker, Worker], transport: str
    ) -> None:
        """Not of another's, and no more once it has unsubscribed."""
        worker, other = workers

        async def story() -> None:
            ears, mentions, way = Ears(), Mentions(), Way(transport, OLDER)
            heard = {"message_handler": ears, "extensions": [mentions]}
            async with worker.client(way, **heard) as agent, here.person() as person:
                await agent.subscribe_resource(INBOX)
                await call(person, "channel_send", message=f"@{other.name} not for you")
                await call(person, "channel_send", message=f"@{worker.name} for you")
                assert await soon(ears.updates) == INBOX
                assert (await call(agent, "channel_read"))["entries"][-1]["message"] == f"@{worker.name} for you"
                await agent.unsubscribe_resource(INBOX)
                for words in ("unheard", "over"):
                    await call(person, "channel_send", message=f"@{worker.name} {words}")
                while not (await soon(mentions.heard))["message"].endswith("over"):
                    pass
                assert ears.updates.empty()

        asyncio.run(story())

    def test_a_client_that_takes_mentions_gets_them_whole(
        self, here: Place, workers: tuple[Worker, Worker], transport: str
    ) -> None:
        """Who said what to whom."""
        worker, _ = workers

        async def story() -> None:
            mentions = Mentions()
            way = Way(transport, OLDER)
            async with worker.client(way, extensions=[mentions]) as agent, here.person() as person:
                await agent.list_tools()
                sent = await call(person, "channel_send", message=f"@{worker.name} look here")
                heard = await soon(mentions.heard)
                assert {key: heard[key] for key in ("id", "from", "target", "message")} == {
                    "id": sent["id"],
                    "from": "human",
                    "target": worker.name,
                    "message": f"@{worker.name} look here",
                }

        asyncio.run(story())


@pytest.mark.parametrize("transport", TRANSPORTS)
class TestNewerEra:
    def test_a_request_to_listen_is_answered_by_news(
        self, here: Place, workers: tuple[Worker, Worker], transport: str
    ) -> None:
        """While it is open, other calls go on."""
        worker, other = workers

        async def story() -> None:
            async with worker.client(Way(transport, NEWER)) as agent, here.person() as person:
                async with agent.listen(resource_subscriptions=[INBOX]) as news:
                    hearing = asyncio.ensure_future(anext(aiter(news)))
                    for number in range(5):
                        await call(person, "channel_send", message=f"@{other.name} not for you {number}")
                        await call(agent, "channel_peek", limit=1)
                    assert not hearing.done()
                    await call(person, "channel_send", message=f"@{worker.name} for you")
                    assert getattr(await asyncio.wait_for(hearing, WITHIN), "uri", "") == INBOX
                    assert (await call(agent, "channel_read"))["entries"][-1]["message"] == f"@{worker.name} for you"
                assert (await call(agent, "inbox_read"))["entries"] == []

        asyncio.run(story())

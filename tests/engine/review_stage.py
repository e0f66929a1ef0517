"""A change under review, for stories: who proposed it, who looks at it, and what was said."""

from __future__ import annotations

import json

from stage import Stage

from windlass.core.gate.reviews import Comment
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Message
from windlass.engine.gate.reviews import Look

LOOK = Look(provider="command", options={"command": "reviewer-like"})
BLOCKS = Comment(body="This loses the lock.", file="a.txt", line=1, blocking=True)


async def proposed(stage: Stage, title: str = "One", file: str = "a.txt") -> tuple[str, str]:
    """An agent's change that waits in a paused line; returns the agent and the change."""
    if not (await stage.engine.projects.at(str(stage.repo))).paused:
        await stage.engine.queue.pause(str(stage.repo), "")
    name = await stage.order(title)
    await stage.move()
    await stage.finish(name, file, f"{title}\n")
    await stage.move()
    return name, (await stage.change_of(name)).id


async def reviewed(stage: Stage, key: str) -> str:
    """A reviewer at work on a change; returns its name."""
    _, agent = await stage.engine.reviews.start(key, LOOK)
    await stage.engine.queue.resume(str(stage.repo))
    await stage.move()
    return agent.id


async def done(stage: Stage, name: str, result: str = "I have looked.") -> None:
    await stage.signal(name, json.dumps({"status": "done", "result": result}))
    await stage.exit(name)
    await stage.move()


async def now(stage: Stage, key: str) -> Change:
    return await stage.engine.changes.get(key)


async def said(stage: Stage, key: str) -> list[Message]:
    return await stage.engine.reviews.said(await now(stage, key))


async def says(stage: Stage, name: str, key: str, given: Comment = BLOCKS) -> Message:
    """An agent comments from inside its run."""
    return await stage.engine.reviews.comment((await stage.run_of(name)).id, key, given)

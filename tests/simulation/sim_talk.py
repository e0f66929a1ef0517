"""What people and agents say to one another: straight, to all, by a mention, as a question; and how it is heard."""

from __future__ import annotations

from sim_acts import RULES
from sim_draws import Rule, _agents, _has_agents, _has_past, _ignore, _is_up, _pick
from sim_stands import KEEPER, REPOSITORY
from sim_world import World

from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.run import Run
from windlass.engine import Engine


def _names(world: World) -> list[str]:
    return [KEEPER, *(agent.id for agent in _agents(world))]


def _said(world: World, which: int, how: int, words: str) -> NewMessage | None:
    project = world.now.project_at(REPOSITORY)
    name = _pick(_names(world), which)
    if project is None or name is None:
        return None
    key = f"k{how // 10}" if how % 10 == 9 else ""
    if how % 5 == 0:
        return NewMessage(body=words, project=project.id, everyone=True, key=key)
    if how % 5 == 1:
        return NewMessage(body=f"Look, @{name}: {words}", project=project.id, key=key)
    if how % 5 == 2:
        return NewMessage(body=f"@human see what @{name} did. {words}", project=project.id, key=key)
    kind = Kind.ASK if how % 2 else Kind.SAY
    return NewMessage(body=words, project=project.id, to=(name,), kind=kind, key=key)


def _note(world: World, message: Message) -> None:
    """It was accepted: from now on it may not be lost."""
    world.witness.spoken[message.id] = message


def tell(world: World, which: int, how: int) -> None:
    """A person says something to an agent, at work or not, also to one that is only defined."""
    post = _said(world, which, how, f"Word {world.number()}.")
    if post is not None:

        async def act(engine: Engine) -> Message:
            return await engine.talk.send(await engine.talk.speaker(""), post)

        world.call("tell", act, lambda message: _note(world, message))


def _run(world: World, which: int) -> Run | None:
    process = _pick(world.living(), which)
    return world.now.find(Run, process.launch.run) if process else None


def chat(world: World, which: int, how: int) -> None:
    """An agent says something to another one, or asks it."""
    run, post = _run(world, how), _said(world, which, how, f"Agent's word {world.number()}.")
    if run is not None and post is not None:

        async def act(engine: Engine) -> Message:
            return await engine.talk.send(await engine.talk.speaker(run.id), post)

        world.call("chat", act, lambda message: _note(world, message))


def hear(world: World, which: int, how: int) -> None:
    """An agent reads what is there for it, in its run."""
    if run := _run(world, which):

        async def act(engine: Engine) -> None:
            for item in await engine.talk.read(await engine.talk.speaker(run.id), limit=how % 3):
                world.witness.heard.append((item.message.id, item.delivery.reader))

        world.call("hear", act, _ignore)


def settle(world: World, which: int, how: int) -> None:
    """An agent, or the person, answers a question that was put to someone."""
    run = _run(world, which) if how % 4 else None
    reader = run.agent if run else "human"
    ask = _pick([each for each in world.now.asks_to(reader) if each.sender != "system"], how)
    if ask is not None:

        async def act(engine: Engine) -> Message:
            speaker = await engine.talk.speaker(run.id if run else "")
            return await engine.talk.settle(speaker, ask.id, f"Answered {world.number()}.")

        world.call("settle", act, lambda message: _note(world, message))


def acknowledge(world: World, which: int, how: int) -> None:
    """The person has dealt with something."""

    async def act(engine: Engine) -> None:
        speaker = await engine.talk.speaker("")
        item = _pick(await engine.talk.inbox("human"), which)
        if item is not None:
            await engine.talk.ack(speaker, item.message.id)

    world.call("acknowledge", act, _ignore)


TALKED: dict[str, Rule] = RULES | {
    "tell": Rule(tell, 14, _is_up),
    "chat": Rule(chat, 14, _has_agents),
    "hear": Rule(hear, 8, _has_agents),
    "settle": Rule(settle, 5, _has_past),
    "acknowledge": Rule(acknowledge, 2, _has_past),
}
"""All acts, with those of people and agents who talk."""

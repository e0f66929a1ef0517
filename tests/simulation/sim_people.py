"""What people and reviewers do to the line: enter, arrange, halt, comment, settle and review."""

from __future__ import annotations

from sim_acts import RULES
from sim_draws import NAMES, TEXTS, Rule, _has_agents, _has_past, _ignore, _is_up, _pick
from sim_losses import BY_HAND
from sim_stands import REPOSITORY
from sim_world import World

from windlass.core.gate import reviews
from windlass.core.nouns.message import Message
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.engine import Engine
from windlass.engine.gate.comments import said_about
from windlass.engine.gate.reviews import Look

VERBS = ("hold", "release", "retry", "first", "drop", "release", "hold")
REASONED = ("hold", "drop")


def enter(world: World, which: int, how: int) -> None:
    """Put a branch of one's own into the line, perhaps again."""
    repository, branch = world.repositories[0], f"by-hand-{which % 2}"
    repository.branches.setdefault(branch, repository.branches["main"])
    repository.commit({NAMES[how % len(NAMES)]: f"{TEXTS[which % 4]} on a branch {world.number()}\n"}, branch)
    world.call("add", lambda engine: engine.queue.add(REPOSITORY, branch), _ignore)


def arrange(world: World, which: int, how: int) -> None:
    """Hold, release, retry, drop, or put first."""
    verb = VERBS[how % len(VERBS)]
    words = (BY_HAND,) if verb in REASONED else ()
    if change := _pick(world.now.changes(), which):
        world.call(verb, lambda engine: getattr(engine.queue, verb)(change.id, *words), _ignore)


def halt(world: World, which: int, how: int) -> None:
    """Pause the line, or let it go on."""
    project = world.now.project_at(REPOSITORY)
    if project is None:
        return
    if project.paused:
        world.call("resume", lambda engine: engine.queue.resume(REPOSITORY), _ignore)
    else:
        world.call("pause", lambda engine: engine.queue.pause(REPOSITORY, ""), _ignore)


def remark(world: World, which: int, how: int) -> None:
    """A person comments, or settles what is open."""
    change = _pick(world.now.changes(), which)
    if change is None:
        return
    open_ones = reviews.open_blocking(said_about(world.now, change.id))
    if open_ones and how % 2:
        world.call("resolve", lambda engine: engine.reviews.resolve("", change.id, open_ones[0].id), _ignore)
    else:
        given = reviews.Comment(body=f"Remark {world.number()}.", blocking=how % 3 > 0)
        world.call("comment", lambda engine: engine.reviews.comment("", change.id, given), _ignore)


def review(world: World, which: int, how: int) -> None:
    """Let an agent review a change."""
    if change := _pick(world.now.changes(), which):
        look = Look(provider=("plain", "talker")[how % 2])
        world.call("review", lambda engine: engine.reviews.start(change.id, look), _ignore)


def judge(world: World, which: int, how: int) -> None:
    """An agent comments on a change, or settles a comment, from inside its run: as reviewer, author or stranger."""
    process, change = _pick(world.living(), which), _pick(world.now.changes(), how)
    run = world.now.find(Run, process.launch.run) if process else None
    task = world.now.find(Task, run.task) if run else None
    if run is None or task is None or change is None:
        return
    key, run_id, open_ones = task.reviews or change.id, run.id, reviews.open_blocking(said_about(world.now, change.id))

    async def act(engine: Engine) -> Message:
        if open_ones and how % 2:
            return await engine.reviews.resolve(run_id, key, open_ones[0].id)
        return await engine.reviews.comment(run_id, key, reviews.Comment(body="I object.", blocking=how % 3 > 0))

    world.call("judge", act, _ignore)


ARRANGED: dict[str, Rule] = RULES | {
    "enter": Rule(enter, 6, _is_up),
    "arrange": Rule(arrange, 12, _has_past),
    "halt": Rule(halt, 3, _has_past),
    "remark": Rule(remark, 7, _has_past),
    "review": Rule(review, 6, _has_past),
    "judge": Rule(judge, 6, _has_agents),
}
"""All acts, with those of people who arrange the line and of those who review."""

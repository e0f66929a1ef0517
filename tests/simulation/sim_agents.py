"""What agents may do in their worktrees and runs, each as one act with two drawn numbers: on whom, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim_draws import DONE, NAMES, SIGNALS, TEXTS, WORDS, _ignore, _pick
from sim_world import Place, World

from fakes import FakeProcess
from windlass.core.nouns.agent import Agent


def _process(world: World, which: int) -> FakeProcess | None:
    return _pick(world.living(), which)


def _place(world: World, which: int, how: int) -> Place | None:
    """A worktree that somebody works in."""
    process = _process(world, which)
    return _pick(world.places(process), how // 7) if process else None


def say(world: World, which: int, how: int) -> None:
    if process := _process(world, which):
        world.processes.say(process.launch.run, WORDS[how % len(WORDS)])


def stumble(world: World, which: int, how: int) -> None:
    """Say that something outside got in the way, and perhaps leave."""
    if process := _process(world, which):
        trouble = ("quota", "auth", "error", "context", "lost")[how % 5]
        until = f" {world.clock.now() + 20}" if trouble == "quota" else ""
        world.processes.say(process.launch.run, f"trouble {trouble}{until}\n".encode())
        if how % 2:
            world.processes.exit(process.launch.run, 1)


def edit(world: World, which: int, how: int) -> None:
    """Change a file, or add one, and do not commit it."""
    if place := _place(world, which, how):
        place.tree.write({(*NAMES, "new")[how % 5]: f"draft {world.number()}\n"})


def commit(world: World, which: int, how: int) -> None:
    if place := _place(world, which, how):
        name, word = NAMES[how % len(NAMES)], TEXTS[(how // 4) % len(TEXTS)]
        place.tree.commit({name: None if how % 11 == 0 else f"{word} {world.number()}\n"})


def merge_main(world: World, which: int, how: int) -> None:
    """Take main in, with one's own side where both changed something."""
    if place := _place(world, which, how):
        objects, tree, main = world.git.objects, place.tree, place.repository.branches["main"]
        if not objects.contains(tree.branches[tree.branch], main):
            merged = objects.merge(main, tree.branches[tree.branch])
            gone = {name: None for name in tree.files if name not in merged.files}
            tree.commit({**gone, **merged.files}, merging=main)


def wander(world: World, which: int, how: int) -> None:
    """Go to another branch, or come back."""
    process, place = _process(world, which), _place(world, which, how)
    if process and place:
        place.tree.switch("side" if how % 2 else own_branch(world, process))


def own_branch(world: World, process: FakeProcess) -> str:
    agent = world.now.find(Agent, world.run_of(process).agent)
    assert agent is not None
    return agent.branch


def nest(world: World, which: int, how: int) -> None:
    """Put something into the worktree that no snapshot covers."""
    if place := _place(world, which, how):
        (place.tree.nested if how % 2 else place.tree.ignored).add("vendor")


def lose_worktree(world: World, which: int, how: int) -> None:
    """Remove a worktree under its agent."""
    if place := _place(world, which, how):
        del world.git.worktrees[place.path]


def signal(world: World, which: int, how: int) -> None:
    """Write a signal, good or bad."""
    process = _process(world, which)
    if process and world.places(process):
        world.workdirs.give(process.launch.cwd, SIGNALS[how % len(SIGNALS)])


def complete(world: World, which: int, how: int) -> None:
    """Give the signal by command."""
    values: Sequence[dict[str, Any]] = (
        {"status": "done", "result": "By command."},
        {"status": "questions", "questions": ["May I?"]},
        {"status": "nothing"},
    )
    run = _pick(list(world.processes.started), which)
    if run:
        world.call("complete", lambda engine: engine.runs.signal(run, values[how % 3]), _ignore)


def leave(world: World, which: int, how: int) -> None:
    """End with 0, with something else, or without a word."""
    if process := _process(world, which):
        run = process.launch.run
        if how % 4 == 0:
            world.processes.say(run, b"last words")
        match how % 3:
            case 0:
                world.processes.exit(run, 0)
            case 1:
                world.processes.exit(run, 3)
            case _:
                world.processes.vanish(run)


def finish(world: World, which: int, how: int) -> None:
    """Commit, say done and leave, as a good agent does."""
    if process := _process(world, which):
        places = world.places(process)
        for place in places[: 1 + how % 2]:
            word = TEXTS[(how // 4) % len(TEXTS)]
            place.tree.commit({NAMES[how % len(NAMES)]: f"{word} {world.number()}\n"})
        if places:
            world.workdirs.give(process.launch.cwd, DONE)
        world.processes.exit(process.launch.run, 0)


def ask(world: World, which: int, how: int) -> None:
    """Ask and leave."""
    if process := _process(world, which):
        if world.places(process):
            world.workdirs.give(process.launch.cwd, SIGNALS[1])
        world.processes.exit(process.launch.run, 0)

"""What people and fate may do, and the rules for all acts: each as one act with two drawn numbers: on whom, and how."""

from __future__ import annotations

from sim_agents import (
    ask,
    commit,
    complete,
    edit,
    finish,
    leave,
    lose_worktree,
    merge_main,
    nest,
    say,
    signal,
    stumble,
    wander,
)
from sim_draws import (
    NAMES,
    TEXTS,
    Act,
    Rule,
    _agents,
    _has_agents,
    _has_landed,
    _has_past,
    _ignore,
    _is_down,
    _is_up,
    _pick,
)
from sim_life import CAN_FAIL, TARGETS
from sim_stands import CHECK, KEEPER, REPOSITORY
from sim_world import World

from fakes import FakeRepository
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task
from windlass.core.ports.store import Writing
from windlass.engine import Engine
from windlass.engine.projects.tasks import Order

# ── a person asks ──


def work(world: World, which: int, how: int) -> None:
    """Order something."""
    title = f"Task {world.number()}"
    if which % 6 == 0:
        order = Order(path=REPOSITORY, title=title, agent=KEEPER)
    else:
        order = Order(path=REPOSITORY, title=title, provider=("plain", "talker")[how % 2])

    def then(given: tuple[Task, Agent]) -> None:
        world.witness.accepted.append(given[0].id)

    world.call("work", lambda engine: engine.tasks.add(order), then)


def work_after(world: World, which: int, how: int) -> None:
    """Order something that needs something else, as a plan will."""
    tasks = list(world.now._all(Task))
    project = world.now.project_at(REPOSITORY)
    if not tasks or project is None or len(tasks) > 5:
        return
    needs = tuple(dict.fromkeys(tasks[each % len(tasks)].id for each in (which, how)))
    world.turn_with(_plan(world, project, needs))


async def _plan(world: World, project: Project, needs: tuple[str, ...]) -> None:
    agent = Agent(name=f"planned-{world.number()}", project=project.id, provider="plain", created_at=world.clock.now())

    def step(store: Writing) -> None:
        task = Task(id=store.next_id(Task), project=project.id, title="Planned", agent=agent.id, needs=needs)
        store.record("task.added", task.id, task, agent)

    await world.store.write(step)
    if world.engine is not None:
        world.engine.bell.ring()


def answer(world: World, which: int, how: int) -> None:
    """Answer an agent, whether it has asked or not."""
    waiting = [each.sender for each in world.now.open_asks() if each.sender != "system"] if how % 3 else []
    name = _pick(waiting or [agent.id for agent in _agents(world)], which) or ""

    def then(message: Message) -> None:
        world.witness.answers[message.id] = name

    if name:
        world.call("answer", lambda engine: engine.talk.answer(name, [f"Answer {world.number()}."]), then)


def stop(world: World, which: int, how: int) -> None:
    """Stop an agent, or give up its change."""

    async def ask(engine: Engine, name: str) -> bool:
        return await engine.runs.stop(name, "stopped by hand") or await engine.changes.withdraw(name, "stopped by hand")

    if agent := _pick(_agents(world), which):
        world.call("stop", lambda engine: ask(engine, agent.id), _ignore)


def undo(world: World, which: int, how: int) -> None:
    """Take a landed change back."""
    landed = [each for each in world.now.changes(ended=True) if each.state is ChangeState.LANDED]
    if change := _pick(landed, which):
        world.call("undo", lambda engine: engine.changes.undo(change.id), _ignore)


def look(world: World, which: int, how: int) -> None:
    """Look at everyone, at one of them, and at what is saved."""

    async def ask(engine: Engine) -> None:
        await engine.status.every(retired=True)
        if agent := _pick(_agents(world), which):
            await engine.status.page(agent.id)
            await engine.diffs.of(agent.id)
        await engine.rescue.every()

    world.call("look", ask, _ignore)


def set_checks(world: World, which: int, how: int) -> None:
    """Have no check command, or have one again."""
    world.settings.check_with("" if how % 3 == 0 else CHECK)


def set_limit(world: World, which: int, how: int) -> None:
    world.settings.limit(1 + how % 4)


def set_setup(world: World, which: int, how: int) -> None:
    """Have worktrees made ready by a command, which may fail; or not."""
    world.settings.prepare_with("make" if how % 2 else "")
    world.setups.failures += how % 4 == 3


def set_repositories(world: World, which: int, how: int) -> None:
    """Have agents change another repository, too; or only this one."""
    world.settings.work_in(*(("../other",) if how % 2 else ()))


# ── a person at the repository ──


def _repository(world: World, which: int) -> FakeRepository:
    return world.repositories[which % 4 == 3]


def commit_main(world: World, which: int, how: int) -> None:
    """Commit to main, wherever the queue is."""
    word = TEXTS[how % 3]
    _repository(world, which).commit({NAMES[how % len(NAMES)]: f"{word} by hand {world.number()}\n"})


def rewrite_main(world: World, which: int, how: int) -> None:
    """Throw the newest commits of main away."""
    repository = _repository(world, which)
    tip = repository.branches["main"]
    for _ in range(1 + how % 2):
        tip = next(iter(world.git.objects.commits[tip].parents), tip)
    repository.reset("main", tip)


def merge_by_hand(world: World, which: int, how: int) -> None:
    """Merge an agent's branch into main without asking anyone."""
    repository = _repository(world, which)
    branches = sorted(each for each in repository.branches if each.startswith("work/"))
    branch = _pick(branches, how)
    if branch and not world.git.objects.merge(repository.branches["main"], repository.branches[branch]).conflicts:
        repository.merge("main", branch)


def edit_checkout(world: World, which: int, how: int) -> None:
    """Leave something in the way."""
    _repository(world, which).write({NAMES[how % len(NAMES)]: f"mine {world.number()}\n"})


def clean_checkout(world: World, which: int, how: int) -> None:
    """Have main checked out and clean, or not checked out at all."""
    _repository(world, which).switch("" if how % 3 == 0 else "main")


# ── fate ──


def refuse(world: World, which: int, how: int) -> None:
    """Let something outside fail, once or a few times, before or after it has done its work."""
    name = list(CAN_FAIL)[which % len(CAN_FAIL)]
    after = CAN_FAIL[name][how % len(CAN_FAIL[name])]
    world.strain.refusals[name, after] += 1 + how % 4


def flake(world: World, which: int, how: int) -> None:
    world.checks.flakes += 1 + how % 3


def jump(world: World, which: int, how: int) -> None:
    """Set the clock, by hand or by summer time."""
    world.clock.skew += (-7200.0, -30.0, 30.0, 4000.0)[how % 4]


def linger(world: World, which: int, how: int) -> None:
    """Let some seconds pass."""
    world.wait((0.2, 0.5, 1.0, 2.5, 6.0, 11.0)[how % 6])


def crash(world: World, which: int, how: int) -> None:
    """Let the daemon die at one of the next awaited points, or when it comes to a certain one."""
    if how % 2:
        world.strain.target = TARGETS[which % len(TARGETS)]
    elif world.strain.fuse is None:
        world.strain.fuse = which % 40


def kill(world: World, which: int, how: int) -> None:
    """Let the daemon die now, or leave in good order."""
    if world.life is not None:
        world.kill() if how % 2 else world.leave()


def reboot(world: World, which: int, how: int) -> None:
    """Let the whole machine go down: no process is left, and none could say how it ended."""
    for process in world.living():
        world.processes.vanish(process.launch.run)
    world.kill()


def boot(world: World, which: int, how: int) -> None:
    """Start the daemon again."""
    if world.life is None:
        world.boot()


# ── all of them ──


RULES: dict[str, Rule] = {
    "work": Rule(work, 9, _is_up),
    "work_after": Rule(work_after, 2, _has_past),
    "answer": Rule(answer, 6, _has_past),
    "stop": Rule(stop, 4, _has_past),
    "undo": Rule(undo, 4, _has_landed),
    "look": Rule(look, 2, _has_past),
    "set_checks": Rule(set_checks, 2),
    "set_limit": Rule(set_limit, 2),
    "set_setup": Rule(set_setup, 1),
    "set_repositories": Rule(set_repositories, 2),
    "commit_main": Rule(commit_main, 4),
    "rewrite_main": Rule(rewrite_main, 1),
    "merge_by_hand": Rule(merge_by_hand, 2),
    "edit_checkout": Rule(edit_checkout, 2),
    "clean_checkout": Rule(clean_checkout, 2),
    "finish": Rule(finish, 16, _has_agents),
    "ask": Rule(ask, 5, _has_agents),
    "leave": Rule(leave, 6, _has_agents),
    "say": Rule(say, 5, _has_agents),
    "stumble": Rule(stumble, 3, _has_agents),
    "edit": Rule(edit, 3, _has_agents),
    "commit": Rule(commit, 4, _has_agents),
    "merge_main": Rule(merge_main, 2, _has_agents),
    "wander": Rule(wander, 2, _has_agents),
    "nest": Rule(nest, 1, _has_agents),
    "lose_worktree": Rule(lose_worktree, 1, _has_agents),
    "signal": Rule(signal, 5, _has_agents),
    "complete": Rule(complete, 3, _has_past),
    "refuse": Rule(refuse, 4),
    "flake": Rule(flake, 3),
    "jump": Rule(jump, 1),
    "linger": Rule(linger, 6),
    "crash": Rule(crash, 8, _is_up),
    "kill": Rule(kill, 2, _is_up),
    "reboot": Rule(reboot, 1, _is_up),
    "boot": Rule(boot, 40, _is_down),
}

MEDDLING: tuple[Act, ...] = (commit_main, say, leave, finish, signal, commit, edit_checkout)
"""What may happen in the middle of something: nothing of it waits for the daemon."""

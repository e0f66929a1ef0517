"""The tasks of a workflow: what needs what, without circles; and the form that tasks had in version 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from windlass.core.address import check_name
from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput
from windlass.core.files.section import Section
from windlass.core.files.template import Template, take_template
from windlass.core.files.tree import Items, Keys, Leaf, Node
from windlass.core.nouns.task import SHORT_TITLE
from windlass.core.workflows.workflow import WorkflowTask

KEYS = ("title", "brief", "agent", "needs")

Check = Callable[[Section, str, Template], None]
"""Notes unknown names in a template."""


def is_first_version(tasks: Node | None) -> bool:
    """Whether this is how version 1 wrote what is to be done: a list of steps."""
    return isinstance(tasks, Items) and bool(tasks.items)


def read_tasks(section: Section, agents: Sequence[str], check: Check) -> tuple[WorkflowTask, ...]:
    """All tasks of the file, also those with problems; each after those that it needs."""
    if is_first_version(section.node("tasks")):
        _explain_first_version(section)
        return ()
    found = section.sections("tasks")
    for name, _ in found:
        try:
            check_name(name)
        except BadInput as error:
            tasks = section.section("tasks")
            tasks.refuse(name, str(error), error.hint, tasks.key_place(name))
    sections = dict(found)
    made = {name: _task(name, below, [*sections], agents, check) for name, below in found}
    for circle in _circles({name: task.needs for name, task in made.items()}):
        words = f"these tasks wait for one another: {' → '.join((*circle, circle[0]))}."
        sections[circle[0]].refuse("needs", words, "Remove one of the needs.")
    return tuple(_ordered(made))


def _task(name: str, section: Section, names: list[str], agents: Sequence[str], check: Check) -> WorkflowTask:
    section.only(KEYS, {"shell": "Commands are listed under setup.", "send": "Did you mean brief?"})
    brief = take_template(section, "brief", required="Say what is to be done.")
    check(section, "brief", brief)
    return WorkflowTask(
        name=name,
        title=section.line("title", SHORT_TITLE),
        brief=brief,
        agent=_worker(section, agents),
        needs=_needs(section, name, names),
    )


def _worker(section: Section, agents: Sequence[str]) -> str:
    if "agent" not in section and len(agents) == 1:
        return agents[0]
    agent = section.text("agent", required="Say who does it.")
    if agent and agent not in agents:
        section.refuse("agent", f"{agent} is no agent of this workflow.", near_miss(agent, agents))
    return agent


def _needs(section: Section, name: str, names: list[str]) -> tuple[str, ...]:
    known = []
    for need in section.texts("needs"):
        if need.text == name:
            section.refuse("needs", f"{name} needs itself.", "Leave it out.", need.at)
        elif need.text in names:
            known.append(need.text)
        elif not section.notes.full:
            section.refuse("needs", f"there is no task {need.text}.", near_miss(need.text, names), need.at)
    return tuple(dict.fromkeys(known))


def _circles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Each circle once, from where it is first met."""
    circles: list[list[str]] = []
    done: set[str] = set()
    for start in needs:
        way = {} if start in done else {start: iter(needs[start])}
        while way:
            here, left = next(reversed(way.items()))
            following = next(left, None)
            if following is None:
                done.add(here)
                del way[here]
            elif following in way:
                names = list(way)
                circles.append(names[names.index(following) :])
            elif following not in done:
                way[following] = iter(needs[following])
    return circles


def _ordered(tasks: Mapping[str, WorkflowTask]) -> list[WorkflowTask]:
    """In the order of the file, but each after what it needs; those in a circle are left out."""
    ordered: dict[str, WorkflowTask] = {}
    waiting = dict(tasks)
    while ready := [task for task in waiting.values() if all(need in ordered for need in task.needs)]:
        for task in ready:
            ordered[task.name] = waiting.pop(task.name)
    return list(ordered.values())


def _explain_first_version(section: Section) -> None:
    value = section.node("tasks")
    steps = value.items if isinstance(value, Items) else ()
    counted = {kind: sum(kind in _keys(step) for step in steps) for kind in ("shell", "send", "wait_mention")}
    shown = ", ".join(f"{number} {kind}" for kind, number in counted.items() if number) or "none that is known"
    words = f"this is the form of version 1, a list of steps ({shown})."
    convert = f"`windlass migrate {section.notes.file}` converts it."
    section.refuse("tasks", words, f"Now setup runs commands, and kickoff says who begins; {convert}")


def _keys(node: Node) -> list[str]:
    if isinstance(node, Keys):
        return [key.text for key, _ in node.entries]
    return [node.text] if isinstance(node, Leaf) else []

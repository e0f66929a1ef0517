"""The questions that every store answers, in order and by page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from store_builders import (
    AnyStore,
    a_change,
    a_delivery,
    a_message,
    a_project,
    a_run,
    a_task,
    an_agent,
    an_instance,
    putting,
)

from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import ChangeState
from windlass.core.nouns.document import Document
from windlass.core.nouns.message import Delivery
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cost, Outcome, Usage
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.store import Noun, Reading
from windlass.core.workflows.instance import Instance, InstanceEnding


class TestQuestions:
    def test_find_knows_every_noun_by_its_id(self, store: AnyStore) -> None:
        """Agents are found by address, deliveries by message and reader, documents by project and name."""

        async def story() -> None:
            document = Document(project="p", name="notes", body="…", author="human")
            nouns: list[Noun] = [a_project(), an_agent(instance="pr-7"), a_task(), a_run(), a_change()]
            nouns += [a_message(), a_delivery(), document]
            await store.write(putting(*nouns))

            assert await store.read(lambda reading: reading.find(Agent, "coder@pr-7")) == nouns[1]
            assert await store.read(lambda reading: reading.find(Delivery, "m1/coder")) == a_delivery()
            assert await store.read(lambda reading: reading.find(Document, "p/notes")) == document
            assert await store.read(lambda reading: reading.find(Project, "p")) == a_project()
            assert await store.read(lambda reading: reading.find(Agent, "coder")) is None
            assert await store.read(lambda reading: reading.find(Task, "r1")) is None

        asyncio.run(story())

    def test_a_project_is_asked_for_its_own(self, store: AnyStore) -> None:
        """Agents, tasks, live runs and changes of one project; without a project, those of all."""

        async def story() -> None:
            other = {"project": "q"}
            await store.write(putting(an_agent("a"), an_agent("b", **other), an_agent("c", retired_at=1.0, **other)))
            await store.write(
                putting(a_task("t1", agent="a"), a_task("t2", agent="b", **other), a_task("t3", agent="b"))
            )
            await store.write(putting(a_run("r1", "a"), a_run("r2", "b"), a_run("r3", "gone")))
            await store.write(putting(a_change("c1"), a_change("c2", **other)))
            await store.write(putting(a_change("c3", state=ChangeState.LANDED, **other)))

            def of(project: str) -> Callable[[Reading], list[list[str]]]:
                def question(reading: Reading) -> list[list[str]]:
                    asked: list[Sequence[Noun]] = [
                        reading.agents(project=project),
                        reading.agents(project=project, retired=True),
                        reading.unfinished_tasks(project=project),
                        reading.live_runs(project=project),
                        reading.changes(project=project),
                        reading.changes(project=project, ended=True),
                    ]
                    return [sorted(noun.id for noun in nouns) for nouns in asked]

                return question

            assert await store.read(of("p")) == [["a"], [], ["t1", "t3"], ["r1"], ["c1"], []]
            assert await store.read(of("q")) == [["b"], ["c"], ["t2"], ["r2"], ["c2"], ["c3"]]
            every = [["a", "b"], ["c"], ["t1", "t2", "t3"], ["r1", "r2", "r3"], ["c1", "c2"], ["c3"]]
            assert await store.read(of("")) == every

        asyncio.run(story())

    def test_an_agent_is_asked_for_its_unfinished_tasks(self, store: AnyStore) -> None:
        """Only its own, oldest first, and none that has ended; in one project, if that is asked."""

        async def story() -> None:
            tasks = [a_task("t1", agent="b"), a_task("t2", agent="a"), a_task("t3", agent="a", project="q")]
            await store.write(putting(*tasks, a_task("t4", agent="a", state=TaskState.DONE)))

            assert await store.read(lambda reading: reading.unfinished_tasks(agent="a")) == tasks[1:]
            assert await store.read(lambda reading: reading.unfinished_tasks(agent="a", project="q")) == tasks[2:]

        asyncio.run(story())

    def test_instances_are_those_of_a_project_or_those_that_live(self, store: AnyStore) -> None:
        """Oldest first; a start under the same name takes the place of the one before."""

        async def story() -> None:
            over = an_instance("a", ended_at=5.0, ending=InstanceEnding.DONE)
            whole = an_instance(
                "b", project="q", files={"channel": "c.md"}, triggers={"coder@b": ("fix", "mend")}, deadline=1.5
            )
            begun = an_instance(
                "c", stays=True, gate=False, limits={"runs": 2}, heads={"coder": "abc"}, landing=("t1",)
            )
            await store.write(putting(an_instance("a"), whole, begun, over))

            assert await store.read(lambda reading: reading.instances()) == [over, whole, begun]
            assert await store.read(lambda reading: reading.instances(live=True)) == [whole, begun]
            assert await store.read(lambda reading: reading.instances(project="p")) == [over, begun]
            assert await store.read(lambda reading: reading.instances(project="p", live=True)) == [begun]
            assert await store.read(lambda reading: reading.find(Instance, "q/b")) == whole
            assert await store.verify() == ""

        asyncio.run(story())

    def test_who_wrote_since_a_message(self, store: AnyStore) -> None:
        """Those who wrote before it are not named."""

        async def story() -> None:
            said = [a_message("m1"), a_message("m2", sender="tester")]
            await store.write(putting(*said, a_delivery("m1"), a_delivery("m2")))

            both = ["human", "tester"]
            assert await store.read(lambda reading: reading.wrote_to("coder", both)) == {*both}
            assert await store.read(lambda reading: reading.wrote_to("coder", both, after=1)) == {"tester"}

        asyncio.run(story())

    def test_all_nouns_of_a_kind_are_read_by_pages_in_order_of_arrival(self, store: AnyStore) -> None:
        """Each page goes on after the place where the last one ended; then there is nothing more."""

        async def story() -> None:
            tasks = [a_task(f"t{number}") for number in (3, 1, 2)]
            await store.write(putting(*tasks, a_run()))

            first = await store.read(lambda reading: reading.page(Task, after=0, limit=2))
            after = first[-1][0]
            second = await store.read(lambda reading: reading.page(Task, after=after, limit=2))
            assert [noun for _, noun in (*first, *second)] == tasks
            last = second[-1][0]
            assert await store.read(lambda reading: reading.page(Task, after=last, limit=2)) == []

        asyncio.run(story())

    def test_writing_again_replaces_and_keeps_the_place(self, store: AnyStore) -> None:
        """A noun that is recorded again is changed where it stands, not doubled."""

        async def story() -> None:
            await store.write(putting(a_task("t1"), a_task("t2"), a_task("t1", title="new", state=TaskState.ACTIVE)))

            tasks = await store.read(lambda reading: reading.unfinished_tasks())
            assert [(task.id, task.title) for task in tasks] == [("t1", "new"), ("t2", "Task t2")]

        asyncio.run(story())

    def test_projects_in_order_and_by_path(self, store: AnyStore) -> None:
        """Projects are listed as they were added, and found by their folder."""

        async def story() -> None:
            await store.write(putting(a_project("zeta"), a_project("alpha")))

            projects = await store.read(lambda reading: reading.projects())
            assert [project.id for project in projects] == ["zeta", "alpha"]
            assert await store.read(lambda reading: reading.project_at("/code/alpha")) == a_project("alpha")
            assert await store.read(lambda reading: reading.project_at("/code")) is None

        asyncio.run(story())

    def test_a_forgotten_project_is_listed_only_where_it_is_asked_for(self, store: AnyStore) -> None:
        """Its folder is free for another one; by its id it is still known."""

        async def story() -> None:
            old = a_project("old", path="/code/shop", forgotten_at=5.0, hub_deleted_at=6.0)
            await store.write(putting(old, a_project("other")))
            assert await store.read(lambda reading: reading.project_at("/code/shop")) is None
            assert [each.id for each in await store.read(lambda reading: reading.projects())] == ["other"]
            await store.write(putting(a_project("new", path="/code/shop")))
            every = await store.read(lambda reading: reading.projects(forgotten=True))
            assert [each.id for each in every] == ["old", "other", "new"]
            assert await store.read(lambda reading: reading.find(Project, "old")) == old
            found = await store.read(lambda reading: reading.project_at("/code/shop"))
            assert found and found.id == "new"

        asyncio.run(story())

    def test_agents_over_have_ended_their_latest_task_and_do_not_run(self, store: AnyStore) -> None:
        """Done or cancelled, newest first; not who failed, has begun another, has none, still runs or is retired."""

        async def story() -> None:
            states = {"done": TaskState.DONE, "given-up": TaskState.CANCELLED, "failed": TaskState.FAILED}
            states |= {"again": TaskState.DONE, "runs": TaskState.DONE, "gone": TaskState.DONE, "ran": TaskState.DONE}
            agents = [an_agent(each, created_at=float(number)) for number, each in enumerate([*states, "new"])]
            agents = [replace(each, retired_at=9.0) if each.name == "gone" else each for each in agents]
            tasks = [a_task(f"t-{name}", agent=name, state=state) for name, state in states.items()]
            runs = [a_run("r1", "runs"), a_run("r2", "ran", outcome=Outcome.DONE)]
            await store.write(putting(*agents, *tasks, a_task("t-more", agent="again"), a_task("t-nobody"), *runs))

            async def names(**how: Any) -> list[str]:
                return [agent.name for agent in await store.read(lambda reading: reading.agents_over(**how))]

            assert await names() == ["ran", "given-up", "done"]
            assert await names(limit=2) == ["ran", "given-up"]
            assert await names(limit=-1) == []

        asyncio.run(story())

    def test_live_runs_are_counted_by_project(self, store: AnyStore) -> None:
        """Those that have ended do not count, nor does one whose agent is not there."""

        async def story() -> None:
            agents = [an_agent("a"), an_agent("b"), an_agent("c", project="q"), an_agent("d", project="r")]
            over = a_run("r4", "d", outcome=Outcome.DONE)
            live = [a_run(f"r{number}", agent) for number, agent in enumerate(["a", "b", "c"], start=1)]
            await store.write(putting(*agents, *live, over, a_run("r5", "nobody")))

            assert await store.read(lambda reading: reading.live_by_project()) == {"p": 2, "q": 1}

        asyncio.run(story())

    def test_agents_are_newest_first_and_retired_ones_come_by_page(self, store: AnyStore) -> None:
        """Those at work and the retired are two lists; each begins with the newest created before a time."""

        async def story() -> None:
            working = [an_agent(f"w{each}", created_at=float(each)) for each in (3, 1, 2)]
            gone = [an_agent(f"g{each}", created_at=float(each), retired_at=50.0) for each in range(6)]
            await store.write(putting(*working, *gone, an_agent("w2b", created_at=2.0)))

            async def names(**how: Any) -> list[str]:
                return [agent.name for agent in await store.read(lambda reading: reading.agents(**how))]

            assert await names() == ["w3", "w2b", "w2", "w1"]
            assert await names(before=3.0, limit=2) == ["w2b", "w2"]
            assert await names(retired=True, limit=2) == ["g5", "g4"]
            assert await names(retired=True, before=4.0, limit=3) == ["g3", "g2", "g1"]
            assert await names(limit=0) == await names(limit=-1) == []

        asyncio.run(story())

    def test_agents_are_found_by_their_names(self, store: AnyStore) -> None:
        """In every instance, at work or retired; of one project, if it is named."""

        async def story() -> None:
            known = [an_agent("a"), an_agent("a", instance="i", retired_at=9.0), an_agent("b", project="q")]
            await store.write(putting(*known, an_agent("c")))

            async def ids(*names: str, **how: Any) -> list[str]:
                return sorted(
                    agent.id for agent in await store.read(lambda reading: reading.agents_named(names, **how))
                )

            assert await ids("a", "b", "a", "nobody") == ["a", "a@i", "b"]
            assert await ids("a", "b", project="q") == ["b"]
            assert await ids() == []

        asyncio.run(story())

    def test_a_task_is_ready_when_all_its_needs_are_done(self, store: AnyStore) -> None:
        """Open tasks wait for their needs, also for those that are not there yet or are taken up again."""

        async def story() -> None:
            done = a_task("t1", state=TaskState.DONE)
            tasks = [done, a_task("t2"), a_task("t3", needs=("t1",)), a_task("t4", needs=("t1", "t2"))]
            tasks += [a_task("t5", needs=("t9", "t9")), a_task("t6", needs=("t2",), state=TaskState.ACTIVE)]
            await store.write(putting(*tasks))

            async def ready(limit: int = 100) -> list[str]:
                return [task.id for task in await store.read(lambda reading: reading.ready_tasks(limit=limit))]

            assert await ready() == ["t2", "t3"]
            await store.write(putting(a_task("t2", state=TaskState.DONE)))
            assert await ready() == ["t3", "t4"]
            await store.write(putting(a_task("t9", state=TaskState.DONE)))
            assert await ready() == ["t3", "t4", "t5"]
            await store.write(putting(a_task("t2", state=TaskState.FAILED)))
            assert await ready() == ["t3", "t5"]
            await store.write(putting(a_task("t4", needs=("t1",)), a_task("t3", needs=("t2",))))
            assert await ready() == ["t4", "t5"]
            assert await ready(1) == ["t4"]
            unfinished = await store.read(lambda reading: reading.unfinished_tasks())
            assert [task.id for task in unfinished] == ["t3", "t4", "t5", "t6"]

        asyncio.run(story())

    def test_an_agent_s_task_is_the_newest_it_was_given(self, store: AnyStore) -> None:
        """An agent with several tasks has the last one; tasks of nobody are nobody's."""

        async def story() -> None:
            tasks = [a_task("t1", agent="ann"), a_task("t10", agent="ann"), a_task("t2", agent="bob"), a_task("t3")]
            await store.write(putting(*tasks, a_task("t1", agent="ann", title="changed")))

            assert await store.read(lambda reading: reading.task_of("ann")) == tasks[1]
            assert await store.read(lambda reading: reading.task_of("carl")) is None
            assert await store.read(lambda reading: reading.task_of("")) is None

        asyncio.run(story())

    def test_runs_live_of_an_agent_and_latest(self, store: AnyStore) -> None:
        """A run is live until it has an outcome; an agent's newest is the one with the highest number."""

        async def story() -> None:
            ended = a_run("r1", "ann", outcome=Outcome.CRASHED)
            runs = [ended, a_run("r2", "bob"), a_run("r10", "ann", number=3), a_run("r3", "ann", number=2)]
            await store.write(putting(*runs))

            assert [run.id for run in await store.read(lambda reading: reading.live_runs())] == ["r2", "r10", "r3"]
            assert [run.id for run in await store.read(lambda reading: reading.runs_of("ann"))] == ["r1", "r3", "r10"]
            assert await store.read(lambda reading: reading.runs_of("carl")) == []
            asked = ["ann", "bob", "carl", "ann", *(f"nobody-{each}" for each in range(300_000))]
            latest = await store.read(lambda reading: reading.latest_runs(asked))
            assert {agent: run.id for agent, run in latest.items()} == {"ann": "r10", "bob": "r2"}
            assert await store.read(lambda reading: reading.latest_runs([])) == {}

        asyncio.run(story())

    def test_costs_are_summed_over_all_runs_of_an_agent(self, store: AnyStore) -> None:
        """What an agent has cost is the sum over its runs; one without a run has no cost."""

        async def story() -> None:
            runs = [a_run(f"r{each}", agent="ann", usage=Usage(cost_usd=0.25)) for each in (1, 2, 3)]
            await store.write(putting(*runs, a_run("r4", agent="bob")))

            costs = await store.read(lambda reading: reading.costs(["ann", "bob", "carl", "ann"]))
            assert costs == {"ann": Cost(0.75), "bob": Cost(0.0)}

        asyncio.run(story())

    def test_runs_without_a_price_are_counted_beside_what_is_known(self, store: AnyStore) -> None:
        """Tokens or model calls without a price; a run that asked no model has cost nothing."""

        async def story() -> None:
            unpriced = [Usage(input_tokens=1), Usage(output_tokens=1), Usage(calls=1)]
            used = [Usage(cost_usd=0.5, calls=1), *unpriced, Usage()]
            await store.write(putting(*(a_run(f"r{at}", agent="ann", usage=each) for at, each in enumerate(used))))

            assert await store.read(lambda reading: reading.costs(["ann"])) == {"ann": Cost(0.5, unpriced=3)}

        asyncio.run(story())

    def test_the_queue_is_oldest_first_and_what_ended_newest_first(self, store: AnyStore) -> None:
        """Landed and closed changes are history; every other waits in the queue."""

        async def story() -> None:
            states = dict(zip(["c1", "c2", "c3", "c4", "c5", "c10"], ChangeState, strict=True))
            await store.write(putting(*(a_change(key, state=state, task="t1") for key, state in states.items())))
            await store.write(putting(a_change("c11", task="t2"), a_change("c12")))

            async def ids(**how: Any) -> list[str]:
                return [change.id for change in await store.read(lambda reading: reading.changes(**how))]

            queue = [key for key, state in states.items() if state not in (ChangeState.LANDED, ChangeState.CLOSED)]
            assert await ids() == [*queue, "c11", "c12"]
            assert await ids(limit=2) == queue[:2]
            assert await ids(ended=True) == ["c10", "c3"]
            assert await ids(ended=True, limit=1) == ["c10"]

    def test_a_task_s_change_is_the_one_that_is_not_over(self, store: AnyStore) -> None:
        """What waits says more than what has landed; of several, or where all is over, the newest."""

        async def story() -> None:
            landed, queued = ChangeState.LANDED, ChangeState.QUEUED
            await store.write(putting(a_change("c1", state=landed, task="t1"), a_change("c2", state=landed, task="t1")))
            assert await told("t1") == ("c2", ["c1", "c2"])
            await store.write(putting(a_change("c3", state=queued, task="t1"), a_change("c4", state=queued, task="t1")))
            await store.write(putting(a_change("c5", state=landed, task="t1"), a_change("c6")))
            assert await told("t1") == ("c4", ["c1", "c2", "c3", "c4", "c5"])
            assert await told("t3") == await told("") == ("", [])

        async def told(task: str) -> tuple[str, list[str]]:
            change = await store.read(lambda reading: reading.change_of_task(task))
            every = await store.read(lambda reading: reading.changes_of_task(task))
            return change.id if change else "", [each.id for each in every]

        asyncio.run(story())

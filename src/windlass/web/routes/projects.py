"""Projects: registering a repository, and the checks it has or could have."""

from __future__ import annotations

from windlass.core import codec
from windlass.core.requests import Request
from windlass.web import views
from windlass.web.request import Answer, Call, Folder, PlaceQuery


class ProjectRequest(Request):
    path: Folder
    main: str = ""
    write: bool = False
    name: str = ""
    checks_command: str = ""
    checks_setup: str = ""


async def add(call: Call, given: ProjectRequest) -> Answer:
    """Make a repository a project, with settings of its own."""
    project = await call.engine.projects.at(given.path, main=given.main)
    config = ""
    if given.write:
        name, checks = given.name or project.name, {"command": given.checks_command, "setup": given.checks_setup}
        config = call.context.editor.write_project(project, name=name, main=given.main, **checks)
        project = await call.engine.projects.at(project.path)
        call.engine.bell.ring()
    return {**codec.plain(project), "config": config}


class ForgetRequest(Request):
    project: str = ""
    path: str = ""
    sure: bool = False
    delete_hub: bool = False


class ProjectsQuery(Request):
    all: bool = False


async def every(call: Call, given: ProjectsQuery) -> Answer:
    """The projects, and how each stands; with `all` the forgotten ones, too."""
    absent, found = await call.engine.absences.all(), await call.engine.forgetting.listing(forgotten=given.all)
    return call.listing([views.project(each, absent.get(each.id), counts) for each, counts in found])


async def forget(call: Call, given: ForgetRequest) -> Answer:
    """Save what a project's agents have not landed, and show the project no more."""
    key = given.project or await call.engine.projects.locate(given.path)
    project = await call.engine.forgetting.find(key)
    done = await call.engine.forgetting.forget(project, sure=given.sure, delete_hub=given.delete_hub)
    lost = project.id if given.delete_hub else ""
    refs = [(each.agent.id, ref) for each in done.cleared for where, ref in each.refs.items() if where != lost]
    return {
        "project": {key: getattr(done.project, key) for key in ("id", "name", "path")},
        "changes": list(done.changes),
        "rescued": [{"agent": agent, "ref": ref} for agent, ref in refs],
        "kept": [{"agent": each.agent.id, "why": each.kept} for each in done.cleared if each.kept],
        "hub_deleted": done.project.hub_deleted_at is not None,
    }


async def definitions(call: Call, given: PlaceQuery) -> Answer:
    """The agents that the repository at a path defines, and what is wrong with its files."""
    roster = await call.engine.definitions.at(await call.place(given.path))
    problems = [problem._asdict() for problem in roster.problems]
    return {"agents": [views.definition(each) for each in roster.definitions], "problems": problems}


async def checks(call: Call, given: PlaceQuery) -> Answer:
    """What must pass before a change lands, as set or as it seems."""
    top = await call.engine.projects.locate(await call.place(given.path))
    known = call.engine.ports.settings.at(top).checks
    return {"command": known.command, "setup": known.setup, "guess": call.context.editor.guess_checks(top)}

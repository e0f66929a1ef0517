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

"""Projects: registering a repository, and the checks it has or could have."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core import codec
from windlass.web import http_io, views
from windlass.web.request import Call


async def add(call: Call) -> Response:
    """Make a repository a project, with settings of its own."""
    values = await http_io.body(call.request)
    main = http_io.text(values, "main", "")
    project = await call.engine.projects.at(http_io.text(values, "path"), main=main)
    config = ""
    if values.get("write"):
        config = call.house.desk.write_project(
            project,
            name=http_io.text(values, "name", "") or project.name,
            main=main,
            command=http_io.text(values, "checks_command", ""),
            setup=http_io.text(values, "checks_setup", ""),
        )
        project = await call.engine.projects.at(project.path)
        call.engine.bell.ring()
    return http_io.answer(codec.plain(project) | {"config": config}, status=201)


async def definitions(call: Call) -> Response:
    """The agents that the repository at a path defines, and what is wrong with its files."""
    roster = await call.engine.definitions.at(call.path)
    answer = {
        "agents": [views.definition(definition) for definition in roster.definitions],
        "problems": [problem._asdict() for problem in roster.problems],
    }
    return http_io.answer(answer)


async def checks(call: Call) -> Response:
    """What must pass before a change lands, as set or as it seems."""
    top = await call.engine.projects.locate(call.path)
    known = call.engine.ports.settings.at(top).checks
    guess = call.house.desk.guess_checks(top)
    return http_io.answer({"command": known.command, "setup": known.setup, "guess": guess})

"""Projects: registering a repository, and the checks it has or could have."""

from __future__ import annotations

from starlette.responses import Response

from windlass.core import codec
from windlass.web import shapes, wire
from windlass.web.call import Call


async def add(call: Call) -> Response:
    """Make a repository a project, with settings of its own."""
    values = await wire.body(call.request)
    main = wire.text(values, "main", "")
    project = await call.engine.projects.at(wire.text(values, "path"), main=main)
    config = ""
    if values.get("write"):
        config = call.house.desk.write_project(
            project,
            name=wire.text(values, "name", "") or project.name,
            main=main,
            command=wire.text(values, "checks_command", ""),
            setup=wire.text(values, "checks_setup", ""),
        )
        project = await call.engine.projects.at(project.path)
        call.engine.bell.ring()
    return wire.answer(codec.plain(project) | {"config": config}, status=201)


async def definitions(call: Call) -> Response:
    """The agents that the repository at a path defines, and what is wrong with its files."""
    roster = await call.engine.definitions.at(call.path)
    answer = {
        "agents": [shapes.definition(each) for each in roster.definitions],
        "problems": [codec.plain(each) for each in roster.problems],
    }
    return wire.answer(answer)


async def checks(call: Call) -> Response:
    """What must pass before a change lands, as set or as it seems."""
    top = await call.engine.projects.locate(call.path)
    known = call.engine.ports.settings.at(top).checks
    guess = call.house.desk.guess_checks(top)
    return wire.answer({"command": known.command, "setup": known.setup, "guess": guess})

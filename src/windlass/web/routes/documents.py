"""Documents: texts that agents share, each write a revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call


async def every(call: Call) -> Response:
    """Which documents there are."""
    project, instance = await _place(call)
    found = await call.engine.documents.every(project, instance=instance)
    return http_io.listing([message_views.title(page, now=call.now) for page in found], now=call.now)


async def show(call: Call) -> Response:
    """A document as it is, or as it was at a revision."""
    project, instance = await _place(call)
    wanted = http_io.number(call.request, "revision", 0)
    found = await call.engine.documents.read(project, _name(call), instance=instance, revision=wanted)
    return http_io.answer(message_views.document(found, now=call.now))


async def history(call: Call) -> Response:
    """Who wrote which revision of a document, and when."""
    project, instance = await _place(call)
    found = await call.engine.documents.history(project, _name(call), instance=instance)
    return http_io.listing([message_views.title(page, now=call.now) for page in found], now=call.now)


async def write(call: Call) -> Response:
    """Write a document anew, if it still is at the revision that was given; or add to its end."""
    given = await http_io.json_object(call.request)
    caller = await caller_context.sender(call, http_io.text(given, "path", ""), "", ())
    who, project = caller.speaker, caller.project.id
    body, documents = http_io.text(given, "body"), call.engine.documents
    where = {"name": _name(call), "instance": await documents.instance(who, http_io.text(given, "instance", ""))}
    if http_io.truth(given, "append"):
        written = await documents.append(who, project, body, **where)
    else:
        written = await documents.write(who, project, body, **where, revision=_revision(given))
    return http_io.answer(message_views.document(written, now=call.now))


async def _place(call: Call) -> tuple[str, str]:
    """The project and the instance whose documents are asked for."""
    caller = await caller_context.in_project(call)
    wanted = call.request.query_params.get("instance", "")
    return caller.project.id, await call.engine.documents.instance(caller.speaker, wanted)


def _name(call: Call) -> str:
    return str(call.request.path_params["name"])


def _revision(given: Mapping[str, Any]) -> int | None:
    revision = given.get("revision")
    if revision is not None and type(revision) is not int:
        raise BadInput("revision must be a whole number.")
    return revision

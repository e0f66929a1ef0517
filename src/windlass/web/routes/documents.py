"""Documents: texts that agents share, each write a revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from windlass.core.did_you_mean import near_miss
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.engine.records.lookup import project_here
from windlass.web import caller_context, http_io, message_views
from windlass.web.request import Call


async def every(call: Call) -> Response:
    """Which documents there are."""
    project, instance = await _place(call)
    found = await call.engine.documents.every(project, instance=instance)
    return http_io.listing([message_views.title(each, now=call.now) for each in found], now=call.now)


async def show(call: Call) -> Response:
    """A document as it is, or as it was at a revision."""
    project, instance = await _place(call)
    name, wanted = _name(call), http_io.number(call.request, "revision", 0)
    if not wanted:
        found = await call.engine.documents.read(project, name, instance=instance)
        return http_io.answer(message_views.document(found, now=call.now))
    for each in await call.engine.documents.history(project, name, instance=instance):
        if each.revision == wanted:
            return http_io.answer(message_views.document(each, now=call.now))
    raise NotFound(f"{name} has no revision {wanted}.", hint="See `windlass context document history`.")


async def history(call: Call) -> Response:
    """Who wrote which revision of a document, and when."""
    project, instance = await _place(call)
    found = await call.engine.documents.history(project, _name(call), instance=instance)
    return http_io.listing([message_views.title(each, now=call.now) for each in found], now=call.now)


async def write(call: Call) -> Response:
    """Write a document anew, if it still is at the revision that was given; or add to its end."""
    given = await http_io.json_object(call.request)
    who = await caller_context.speaker(call)
    project = await caller_context.placed(call, who, http_io.text(given, "path", ""), new=True)
    body, documents = http_io.text(given, "body"), call.engine.documents
    where = {"name": _name(call), "instance": await documents.instance(who, http_io.text(given, "instance", ""))}
    if http_io.truth(given, "append"):
        written = await documents.append(who, project, body, **where)
    else:
        revision = _revision(given)
        if revision:
            await _check_there(call, project, where)
        written = await documents.write(who, project, body, **where, revision=revision)
    return http_io.answer(message_views.document(written, now=call.now))


async def _check_there(call: Call, project: str, where: Mapping[str, str]) -> None:
    """Whoever has read a revision means a document that is there."""
    there = [
        message_views.title(each, now=0.0)["name"]
        for each in await call.engine.documents.every(project, instance=where["instance"])
    ]
    if where["name"] not in there:
        raise Conflict(
            f"There is no document {where['name']} yet, so it has no revision that could be replaced.",
            hint=f"{near_miss(where['name'], there)} To begin it, write it with revision 0, or without one.".strip(),
        )


async def _place(call: Call) -> tuple[str, str]:
    """The project and the instance whose documents are asked for."""
    who = await caller_context.speaker(call)
    wanted = call.request.query_params.get("instance", "")
    project = await caller_context.placed(call, who, call.path)
    await call.engine.ports.store.read(lambda store: project_here(store, project))
    return project, await call.engine.documents.instance(who, wanted)


def _name(call: Call) -> str:
    return str(call.request.path_params["name"])


def _revision(given: Mapping[str, Any]) -> int | None:
    revision = given.get("revision")
    if revision is not None and type(revision) is not int:
        raise BadInput("revision must be a whole number.")
    return revision

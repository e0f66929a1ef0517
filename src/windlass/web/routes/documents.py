"""Documents: texts that agents share, each write a revision."""

from __future__ import annotations

from windlass.core.requests import Request
from windlass.web import message_views
from windlass.web.message_views import DocumentView, ListView, TitleView
from windlass.web.request import Call, Folder, PlaceQuery, Whole


class InstanceQuery(PlaceQuery):
    instance: str = ""


class DocumentQuery(InstanceQuery):
    revision: Whole = 0


class DocumentRequest(Request):
    body: str
    path: Folder = ""
    instance: str = ""
    revision: int | None = None
    append: bool = False


async def every(call: Call, given: InstanceQuery) -> ListView[TitleView]:
    """Which documents there are."""
    project, instance = await _place(call, given)
    found = await call.engine.documents.every(project, instance=instance)
    return ListView(call.now, [message_views.title(document, now=call.now) for document in found])


async def show(call: Call, given: DocumentQuery) -> DocumentView:
    """A document as it is, or as it was at a revision."""
    project, instance = await _place(call, given)
    found = await call.engine.documents.read(project, _name(call), instance=instance, revision=given.revision)
    return message_views.document(found, now=call.now)


async def history(call: Call, given: InstanceQuery) -> ListView[TitleView]:
    """Who wrote which revision of a document, and when."""
    project, instance = await _place(call, given)
    found = await call.engine.documents.history(project, _name(call), instance=instance)
    return ListView(call.now, [message_views.title(document, now=call.now) for document in found])


async def write(call: Call, given: DocumentRequest) -> DocumentView:
    """Write a document anew, if it still is at the revision that was given; or add to its end."""
    caller = await call.sender(given.path, "", ())
    who, project, documents = caller.speaker, caller.project.id, call.engine.documents
    where = {"name": _name(call), "instance": await documents.instance(who, given.instance)}
    if given.append:
        written = await documents.append(who, project, given.body, **where)
    else:
        written = await documents.write(who, project, given.body, **where, revision=given.revision)
    return message_views.document(written, now=call.now)


async def _place(call: Call, given: InstanceQuery) -> tuple[str, str]:
    """The project and the instance whose documents are asked for."""
    caller = await call.in_project(given.path)
    return caller.project.id, await call.engine.documents.instance(caller.speaker, given.instance)


def _name(call: Call) -> str:
    return str(call.request.path_params["name"])

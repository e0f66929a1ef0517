"""Rescue: work that was saved, shown and brought back."""

from __future__ import annotations

import base64
import posixpath

from windlass.core.errors import BadInput
from windlass.core.requests import Request
from windlass.web import views
from windlass.web.request import Answer, Call, ListQuery


class SavedQuery(Request):
    ref: str = ""
    exact: bool = False


class RestoreRequest(Request):
    ref: str
    branch: str = ""
    to: str = ""


async def every(call: Call, given: ListQuery) -> Answer:
    """Work that was saved before something was removed."""
    found = await call.engine.rescue.every(project=await call.project(given.path), landed=given.all)
    items = [views.rescue(item, contents) for item, contents in found.items]
    return call.listing(items) | {"left_out": found.left_out}


async def show(call: Call, given: SavedQuery) -> Answer:
    """The difference is there twice: as text to be read, and as the very bytes."""
    item, contents, diff = await call.engine.rescue.show(given.ref, exact=given.exact, project=call.caller.project)
    raw = base64.b64encode(diff).decode("ascii")
    return views.rescue(item, contents) | {"diff": diff.decode("utf-8", "replace"), "raw": raw}


async def restore(call: Call, given: RestoreRequest) -> Answer:
    """Bring saved work back, as a branch or as files."""
    if given.branch and given.to:
        raise BadInput("Choose a branch or a folder: it goes to one or the other.")
    if not given.to:
        item, branch = await call.engine.rescue.to_branch(given.ref, given.branch)
        return {"ref": item.saved.ref, "commit": item.saved.commit, "branch": branch}
    if not posixpath.isabs(given.to) or "\0" in given.to:
        raise BadInput(f"{given.to[:200]!r} is not the absolute path of a folder.")
    item = await call.engine.rescue.to_folder(given.ref, given.to)
    return {"ref": item.saved.ref, "commit": item.saved.commit, "folder": given.to}

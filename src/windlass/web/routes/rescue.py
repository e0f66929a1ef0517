"""Rescue: work that was saved, shown and brought back."""

from __future__ import annotations

import base64
import posixpath
from typing import Annotated

from msgspec import Meta

from windlass.core.errors import BadInput
from windlass.core.requests import Request
from windlass.engine.views.rescue import MOST
from windlass.web import views
from windlass.web.request import Answer, Call, ListQuery, PageQuery, Whole

FEW_FILES = slice(10)
"""The files that a list names of each saved worktree."""


class SavedListQuery(ListQuery):
    since: Whole = 0
    limit: Annotated[int, Meta(ge=1, le=MOST)] = MOST


class SavedQuery(PageQuery):
    ref: str = ""
    exact: bool = False


class RestoreRequest(Request):
    ref: str
    branch: str = ""
    to: str = ""


async def every(call: Call, given: SavedListQuery) -> Answer:
    """Work that was saved before something was removed, the newest first; `since` is the number to go on with."""
    project = await call.project(given.path)
    found = await call.engine.rescue.every(project=project, landed=given.all, since=given.since, limit=given.limit)
    items = [views.rescue(item, contents, FEW_FILES) for item, contents in found.items]
    return call.listing(items) | {"left_out": found.left_out, "since": found.since}


async def show(call: Call, given: SavedQuery) -> Answer:
    """One of them, with a part of its files.

    With the first part is the difference: a text to be read as `diff`, or if `exact` the very bytes as `raw`."""
    item, contents = await call.engine.rescue.show(given.ref, project=call.caller.project)
    diff = b"" if given.since else await call.engine.rescue.difference(item, exact=given.exact)
    text, raw = ("", base64.b64encode(diff).decode("ascii")) if given.exact else (diff.decode("utf-8", "replace"), "")
    return views.rescue(item, contents, given.part) | {"diff": text, "raw": raw}


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

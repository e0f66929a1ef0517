"""Rescue: work that was saved, shown and brought back."""

from __future__ import annotations

import base64
import posixpath

from starlette.responses import Response

from windlass.core.errors import BadInput
from windlass.web import http_io, views
from windlass.web.request import Call


async def every(call: Call) -> Response:
    """Work that was saved before something was removed."""
    found = await call.engine.rescue.every(project=await call.project(), landed=http_io.flag(call.request, "all"))
    items = [views.rescue(item, contents) for item, contents in found.items]
    return http_io.answer({"as_of": call.now, "items": items, "left_out": found.left_out})


async def show(call: Call) -> Response:
    """The difference is there twice: as text to be read, and as the very bytes."""
    key = call.request.query_params.get("ref", "")
    item, contents, diff = await call.engine.rescue.show(key, exact=http_io.flag(call.request, "exact"))
    raw = base64.b64encode(diff).decode("ascii")
    return http_io.answer(views.rescue(item, contents) | {"diff": diff.decode("utf-8", "replace"), "raw": raw})


async def restore(call: Call) -> Response:
    """Bring saved work back, as a branch or as files."""
    values = await http_io.body(call.request)
    key, branch, folder = (
        http_io.text(values, "ref"),
        http_io.text(values, "branch", ""),
        http_io.text(values, "to", ""),
    )
    if branch and folder:
        raise BadInput("Choose a branch or a folder: it goes to one or the other.")
    if not folder:
        item, made = await call.engine.rescue.to_branch(key, branch)
        return http_io.answer({"ref": item.saved.ref, "commit": item.saved.commit, "branch": made}, status=201)
    if not posixpath.isabs(folder) or "\0" in folder:
        raise BadInput(f"{folder[:200]!r} is not the absolute path of a folder.")
    item = await call.engine.rescue.to_folder(key, folder)
    return http_io.answer({"ref": item.saved.ref, "commit": item.saved.commit, "folder": folder}, status=201)

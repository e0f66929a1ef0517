"""The refs of a hub, read as files: it is our own, and keeps them so (see `Hubs`). Only git writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_OBJECT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PLAIN = re.compile(r"refs(?:/[^/\s~^:?*\[\\@{]+)+")


class HubRefs:
    """Answers at once. A file of its own goes before the packed refs: git removes it only when the ref is in those."""

    def __init__(self) -> None:
        self._packed: dict[Path, tuple[tuple[int, ...], bytes]] = {}

    def find(self, hub: Path, ref: str) -> str | None:
        """The object of a ref, or nothing; None if only git can tell."""
        if not _PLAIN.fullmatch(ref):
            return None
        try:
            found = _OBJECT.fullmatch((hub / ref).read_bytes().strip())
            return found[0].decode() if found else None
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return next((commit for name, commit in self._lines(hub, f"{ref}\n") if name == ref), "")
        except OSError:
            return None

    def below(self, hub: Path, folder: str) -> dict[str, str]:
        """The refs below a folder such as `refs/windlass/lost/`, with their objects."""
        loose = [
            str(Path(place, name).relative_to(hub))
            for place, _, names in os.walk(hub / folder)
            for name in names
            if not name.endswith(".lock")
        ]
        found = dict(self._lines(hub, folder))
        return found | {ref: commit for ref in loose if (commit := self.find(hub, ref))}

    def _lines(self, hub: Path, start: str) -> Iterator[tuple[str, str]]:
        """The packed refs that begin so, with their objects."""
        content, wanted = self._content(hub), b" " + start.encode()
        place = content.find(wanted)
        while place >= 0:
            begin, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place)
            yield content[place + 1 : end].decode("utf-8", "replace"), content[begin:place].decode()
            place = content.find(wanted, end - 1)

    def _content(self, hub: Path) -> bytes:
        file = hub / "packed-refs"
        try:
            facts = file.stat()
        except FileNotFoundError:
            return b""
        now = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if self._packed.get(hub, ((), b""))[0] != now:
            self._packed[hub] = now, file.read_bytes()
        return self._packed[hub][1]

"""The names of a file where some files and folders of a commit are links to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from windlass.core.gate.command_words import as_path

_MOST_NAMES = 64
"""Of one file: a link to a folder above itself gives it as many as one likes."""


class Links:
    """All links of a commit, each with the text that says where it leads."""

    def __init__(self, links: Mapping[str, str]) -> None:
        self._leading: dict[str, list[str]] = {}
        for link, text in links.items():
            if not text.startswith("/"):
                self._leading.setdefault(as_path(f"{link.rpartition('/')[0]}/{text}"), []).append(link)

    def names(self, file: str) -> Iterable[str]:
        """A file's own name, and those that it has through links."""
        found = [file]
        for name in found:
            if len(found) < _MOST_NAMES:
                found.extend(other for other in self._through(name) if other not in found)
        return found

    def _through(self, name: str) -> Iterator[str]:
        target, rest = name, ""
        while self._leading:
            yield from (f"{link}/{rest}" if rest else link for link in self._leading.get(target, ()))
            if not target:
                return
            target = target.rpartition("/")[0]
            rest = name[len(target) :].lstrip("/")

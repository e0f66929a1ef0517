"""Reading some files of a commit, and making a tree of two commits: most files of one, some of the other."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from windlass.core.nouns.change import Candidate
from windlass.core.nouns.project import Project
from windlass.git.files import make_folder
from windlass.git.hub import Hubs
from windlass.git.program import GitProgram

_LONGEST = 16 << 20
"""Bytes of all texts together; those that do not fit are not read."""
_LINK = b"120000 "


class MixedTrees:
    """Looks into commits of the hub, and mixes them."""

    def __init__(self, git: GitProgram, hubs: Hubs) -> None:
        self._git = git
        self._hubs = hubs
        self._links: dict[str, tuple[str, Mapping[str, str]]] = {}
        """Of each project: the last commit that was asked about, and its links."""

    async def texts(self, project: Project, commit: str, files: Sequence[str], /) -> Mapping[str, str | None]:
        hub = await self._hubs.open(project)
        asked = [file for file in files if "\n" not in file]
        stdin = "".join(f"{commit}:{file}\n" for file in asked).encode("utf-8", "surrogateescape")
        said = await self._git.ours(hub, "cat-file", "--batch", stdin=stdin, limit=_LONGEST, cut=True)
        told = dict(zip(asked, _answers(said.out), strict=False))
        return {file: told.get(file) for file in files if file not in told or told[file] is not None}

    async def links(self, project: Project, commit: str, /) -> Mapping[str, str]:
        if self._links.get(project.id, ("",))[0] != commit:
            self._links[project.id] = commit, await self._read_links(project, commit)
        return self._links[project.id][1]

    async def _read_links(self, project: Project, commit: str) -> Mapping[str, str]:
        hub = await self._hubs.open(project)
        listed = (await self._git.ours(hub, "ls-tree", "-r", "-z", "--full-tree", commit)).out
        if _LINK not in listed:
            return {}
        names = [entry.partition(b"\t")[2] for entry in listed.split(b"\0") if entry.startswith(_LINK)]
        texts = await self.texts(project, commit, [name.decode("utf-8", "surrogateescape") for name in names])
        return {name: text for name, text in texts.items() if text is not None}

    async def mixed(self, project: Project, candidate: Candidate, other: str, files: Sequence[str], /) -> Candidate:
        hub = await self._hubs.open(project)
        make_folder(hub / "windlass")
        with tempfile.TemporaryDirectory(dir=hub / "windlass", prefix="tmp-") as folder:
            extra = {"GIT_INDEX_FILE": f"{folder}/index", "GIT_WORK_TREE": folder}
            tree = await self._tree(hub, candidate.commit, other, files, extra)
        author = {f"GIT_{who}_{what}": "windlass" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        how = ("commit-tree", tree, "-p", candidate.commit, "-m", "Test with the judges of main")
        commit = (await self._git.ours(hub, *how, extra=author)).text
        await self._git.ours(hub, "update-ref", f"refs/windlass/candidates/{commit}", commit)
        return replace(candidate, commit=commit, tree=tree)

    async def _tree(self, hub: Path, one: str, other: str, files: Sequence[str], extra: Mapping[str, str]) -> str:
        """In an index of its own, these files are removed and then put back as the other commit has them."""
        await self._git.ours(hub, "read-tree", one, extra=extra)
        names = "".join(f"{file}\0" for file in files).encode("utf-8", "surrogateescape")
        await self._git.ours(hub, "update-index", "--force-remove", "-z", "--stdin", stdin=names, extra=extra)
        kept = (await self._git.ours(hub, "ls-tree", "-z", "--full-tree", other, "--", *files)).out
        await self._git.ours(hub, "update-index", "--replace", "-z", "--index-info", stdin=kept, extra=extra)
        return (await self._git.ours(hub, "write-tree", extra=extra)).text


def _answers(said: bytes) -> Iterator[str | None]:
    """The texts that `cat-file --batch` tells, as far as they are whole; None for what is not there, or is no file."""
    while said:
        head, _, said = said.partition(b"\n")
        facts = head.rsplit(b" ", 2)
        if len(facts) < 3 or not facts[2].isdigit():
            yield None
            continue
        size = int(facts[2])
        if len(said) <= size:
            return
        yield said[:size].decode("utf-8", "replace") if facts[1] == b"blob" else None
        said = said[size + 1 :]

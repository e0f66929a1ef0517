"""What a repository brings along for its agents: their files, and what it adds to their prompts."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

from windlass.core.agents.definition import FileProblem, Folder, Found, Gravity, Roster, define, gather
from windlass.core.did_you_mean import near_miss
from windlass.core.display import harmless
from windlass.core.errors import BadInput
from windlass.core.runs.prompt import BLOCKS, PARTS, PROJECT
from windlass.core.workflows.workflow import Workflow
from windlass.library import frontmatter, safe_files, workflows
from windlass.library.safe_files import Unreadable

LARGEST = 200_000
"""Bytes of one file."""
MOST = 500
"""Files of one folder."""
ENDING = ".md"
PROMPTS = (".windlass", "prompts")
WORKER = "WORKER.md"


class RepositoryLibrary:
    """Reads the user's own checkout, which is trusted as far as the repository is; never an agent's worktree."""

    def __init__(self, blocks: Mapping[str, str]) -> None:
        self._blocks = blocks
        self._folders = _folders()

    async def roster(self, checkout: str, /) -> Roster:
        """The agents that are defined there, and what is wrong with its files. One bad file spoils no other."""
        return await asyncio.to_thread(self._roster, checkout)

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        """The blocks of prompts, each with what the project adds to it. Raises BadInput for what can't be read."""
        return await asyncio.to_thread(self._added, checkout)

    async def workflow(self, file: str, /) -> Workflow:
        """What a workflow's file says. Raises BadInput with all that is wrong with it."""
        loaded = await asyncio.to_thread(workflows.load, Path(file))
        if loaded.workflow is None:
            raise BadInput("\n".join(map(str, loaded.problems)), hint="`windlass validate` shows the same.")
        return loaded.workflow

    @property
    def guarded(self) -> tuple[str, ...]:
        """Files and folders of a repository that say what agents are and may do, and what is run before them."""
        folders = (*(folder.path for folder in self._folders), "/".join(PROMPTS), "/".join(workflows.FOLDER))
        return (*(f"{folder}/" for folder in folders), f".windlass/{WORKER}")

    def _roster(self, checkout: str) -> Roster:
        found = [each for folder in self._folders for each in _in_folder(checkout, folder)]
        roster = gather(found)
        return Roster(roster.definitions, (*roster.problems, *_strange_blocks(checkout, self._blocks)))

    def _added(self, checkout: str) -> dict[str, str]:
        blocks = dict(self._blocks)
        for name, (where, file) in _additions().items():
            try:
                with safe_files.folder(checkout, where) as handle:
                    own = safe_files.text(handle, file, LARGEST).strip()
            except FileNotFoundError:
                continue
            except Unreadable as error:
                shown = "/".join((*where, file))
                raise BadInput(f"{shown}:{error.line}: {error}", hint="See `windlass agents`.") from error
            blocks[name] = f"{blocks.get(name, '').rstrip()}\n\n{own}".strip()
        return blocks


def _additions() -> dict[str, tuple[tuple[str, ...], str]]:
    """By block, the file that adds to it."""
    return {name: (PROMPTS, f"{name}{ENDING}") for name in (*BLOCKS, *PARTS)} | {PROJECT: (PROMPTS[:1], WORKER)}


def _folders() -> tuple[Folder, ...]:
    listed = tomllib.loads((resources.files(__package__) / "agent_folders.toml").read_text("utf-8"))["folder"]
    return tuple(
        Folder(
            path=each["path"],
            provider=each.get("provider", ""),
            means=each.get("means", {}),
            unheeded=tuple(each.get("unheeded", ())),
            unset=tuple(each.get("unset", ())),
        )
        for each in listed
    )


def _in_folder(checkout: str, folder: Folder) -> Iterator[Found]:
    try:
        with safe_files.folder(checkout, folder.path.split("/")) as where:
            listed = [name for name in safe_files.names(where, ENDING, MOST + 1) if name.lower() != "readme.md"]
            yield from (_in_file(where, each, folder) for each in listed[:MOST])
    except FileNotFoundError:
        return
    except Unreadable as error:
        yield None, [FileProblem(file=folder.path, line=1, words=str(error))]
        return
    if len(listed) > MOST:
        words = f"there are more than {MOST} files; the others are not read."
        yield None, [FileProblem(file=folder.path, line=1, words=words)]


def _in_file(where: int, name: str, folder: Folder) -> Found:
    shown = f"{folder.path}/{harmless(os.fsencode(name).decode('utf-8', 'replace'))}"
    try:
        entries, body = frontmatter.split(safe_files.text(where, name, LARGEST))
    except (FileNotFoundError, Unreadable) as error:
        line = error.line if isinstance(error, Unreadable) else 1
        words = str(error) if isinstance(error, Unreadable) else "it has just vanished."
        return None, [FileProblem(file=shown, line=line, words=words)]
    return define(shown, folder, entries, body)


def _strange_blocks(checkout: str, known: Mapping[str, str]) -> list[FileProblem]:
    """Files that add to a block which is not there."""
    place = "/".join(PROMPTS)
    try:
        with safe_files.folder(checkout, PROMPTS) as where:
            listed = [name.removesuffix(ENDING) for name in safe_files.names(where, ENDING, MOST)]
    except FileNotFoundError:
        return []
    except Unreadable as error:
        return [FileProblem(file=place, line=1, words=str(error))]
    return [
        FileProblem(
            file=f"{place}/{harmless(each)}{ENDING}",
            line=1,
            words=f"no prompt has a block {harmless(each)}, so it is not used. {near_miss(each, known)}".strip(),
            gravity=Gravity.WARNING,
        )
        for each in listed
        if each not in (*BLOCKS, *PARTS) and each.lower() != "readme"
    ]

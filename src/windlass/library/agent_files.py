"""Reads the agent files, prompt blocks and workflows of a repository."""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from windlass.core import codec
from windlass.core.agents.definition import Folder, Found, Roster, define, gather
from windlass.core.did_you_mean import near_miss
from windlass.core.display import harmless
from windlass.core.errors import BadInput
from windlass.core.files.problems import FileProblem, Gravity, Notes
from windlass.core.files.section import kind_of
from windlass.core.files.tree import TOP, Keys
from windlass.core.runs.prompt import BLOCKS, PARTS, PROJECT
from windlass.core.workflows.workflow import Workflow
from windlass.library import safe_files, workflows
from windlass.library.safe_files import Unreadable
from windlass.system.strict_yaml import read_yaml

LARGEST = 200_000
"""Bytes of one file."""
MOST = 500
"""Files of one folder."""
ENDING = ".md"
PROMPTS = (".windlass", "prompts")
WORKER = "WORKER.md"
LARGEST_HEAD = 32_000
"""Characters of a head."""
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)


class RepositoryLibrary:
    """Reads the user's own checkout, never an agent's worktree."""

    def __init__(self, blocks: Mapping[str, str]) -> None:
        self._blocks = blocks
        listed = (Path(__file__).parent / "agent_folders.toml").read_text("utf-8")
        self._folders = codec.revive(tuple[Folder, ...], tomllib.loads(listed)["folder"])

    async def roster(self, checkout: str, /) -> Roster:
        return await asyncio.to_thread(self._roster, checkout)

    async def blocks(self, checkout: str, /) -> Mapping[str, str]:
        return await asyncio.to_thread(self._added, checkout)

    async def workflow(self, file: str, /) -> Workflow:
        loaded = await asyncio.to_thread(workflows.load, Path(file))
        if loaded.workflow is None:
            raise BadInput("\n".join(map(str, loaded.problems)), hint="`windlass validate` shows the same.")
        return loaded.workflow

    @property
    def guarded(self) -> tuple[str, ...]:
        folders = (*(folder.path for folder in self._folders), "/".join(PROMPTS), "/".join(workflows.FOLDER))
        return (*(f"{folder}/" for folder in folders), f".windlass/{WORKER}")

    def _roster(self, checkout: str) -> Roster:
        roster = gather(found for folder in self._folders for found in _in_folder(checkout, folder))
        return Roster(roster.definitions, (*roster.problems, *_strange_blocks(checkout, self._blocks)))

    def _added(self, checkout: str) -> dict[str, str]:
        blocks = dict(self._blocks)
        files = {name: (*PROMPTS, f"{name}{ENDING}") for name in (*BLOCKS, *PARTS)} | {PROJECT: (PROMPTS[0], WORKER)}
        for name, (*folder, file) in files.items():
            try:
                with safe_files.folder(checkout, folder) as where:
                    own = safe_files.text(where, file, LARGEST).strip()
            except FileNotFoundError:
                continue
            except Unreadable as error:
                shown = "/".join((*folder, file))
                raise BadInput(f"{shown}:{error.line}: {error}", hint="See `windlass agents`.") from error
            blocks[name] = f"{blocks.get(name, '').rstrip()}\n\n{own}".strip()
        return blocks


def _in_folder(checkout: str, folder: Folder) -> Iterator[Found]:
    try:
        with safe_files.folder(checkout, folder.path.split("/")) as where:
            listed = [name for name in safe_files.names(where, ENDING, MOST + 1) if name.lower() != "readme.md"]
            yield from (_in_file(where, name, folder) for name in listed[:MOST])
    except FileNotFoundError:
        return
    except Unreadable as error:
        yield None, [FileProblem(file=folder.path, line=1, words=str(error))]
        return
    if len(listed) > MOST:
        words = f"there are more than {MOST} files; the others are not read."
        yield None, [FileProblem(file=folder.path, line=1, words=words)]


def _in_file(where: int, name: str, folder: Folder) -> Found:
    notes = Notes(f"{folder.path}/{harmless(os.fsencode(name).decode('utf-8', 'replace'))}")
    try:
        head, body = _split(safe_files.text(where, name, LARGEST), notes)
    except FileNotFoundError:
        notes.refuse(TOP, "", "it has just vanished.")
    except Unreadable as error:
        notes.refuse((error.line, 1), "", str(error))
    return (None, notes.problems) if notes.errors else define(folder, head, body, notes)


def _split(text: str, notes: Notes) -> tuple[Keys, str]:
    """The keys of the head, which is YAML between two lines of dashes, and the body. Every problem is noted."""
    first, _, _ = text.partition("\n")
    if first.rstrip() != "---":
        words = "it must begin with a line of three dashes, the agent's settings, and three dashes again."
        notes.refuse(TOP, "", words)
        return Keys(), text
    end = _END.search(text, len(first) + 1)
    if end is None:
        notes.refuse(TOP, "", "the settings that begin here never end: a line of three dashes is missing.")
        return Keys(), ""
    with_dashes = text[: end.start()]  # so that its lines are the file's
    head = read_yaml(with_dashes, notes, largest=LARGEST_HEAD)
    if head is not None and not isinstance(head, Keys) and kind_of(head) != "nothing":
        notes.refuse(head.at, "", "the settings must be keys with values, such as `name: coder`.")
    return head if isinstance(head, Keys) else Keys(), text[end.end() :].removeprefix("\n")


def _strange_blocks(checkout: str, known: Mapping[str, str]) -> list[FileProblem]:
    """Warnings of files that add to a block that does not exist."""
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
            file=f"{place}/{harmless(block)}{ENDING}",
            line=1,
            words=f"no prompt has a block {harmless(block)}, so it is not used. {near_miss(block, known)}".strip(),
            gravity=Gravity.WARNING,
        )
        for block in listed
        if block not in (*BLOCKS, *PARTS) and block.lower() != "readme"
    ]

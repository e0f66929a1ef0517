"""Finds and reads workflow files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from windlass.core.did_you_mean import near_miss
from windlass.core.display import harmless
from windlass.core.errors import BadInput, NotFound
from windlass.core.files.problems import FileProblem, Notes
from windlass.core.workflows.file import Surroundings, read
from windlass.core.workflows.workflow import Workflow
from windlass.library import safe_files
from windlass.library.safe_files import Unreadable
from windlass.system.files import write_whole
from windlass.system.strict_yaml import read_yaml

LARGEST = 200_000
"""Bytes of a workflow's file."""
LARGEST_PROMPT = 200_000
ENDINGS = (".yaml", ".yml")
FOLDER = (".windlass", "workflows")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that was read."""

    workflow: Workflow | None
    """None: the file has an error."""
    problems: tuple[FileProblem, ...]


def shipped() -> dict[str, Path]:
    """The workflows that come with Windlass, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "workflows").glob("*.yaml"))}


def own(here: Path) -> dict[str, Path]:
    """The workflows in this folder and those above it, up to the repository's top, by name: the nearest wins."""
    found: dict[str, Path] = {}
    folders = (here, *here.parents)
    top = next((number for number, folder in enumerate(folders) if safe_files.is_top(folder)), 0)
    for above in folders[: top + 1]:
        folder = above.joinpath(*FOLDER)
        found = {file.stem: file for file in _listed(folder) if file.suffix in ENDINGS} | found
    return found


def find(given: str, here: Path) -> Path:
    """The file that is meant: a path, or a name in `.windlass/workflows` or of a shipped one. Raises NotFound."""
    path = here / given
    if "/" not in given and not given.endswith(ENDINGS):
        known = {**shipped(), **own(here)}
        if given in known:
            return known[given]
        remedy = near_miss(given, known) or f"There are {', '.join(sorted(known))}; a path has a / or ends in .yaml."
        raise NotFound(f"No workflow is called {given!r}.", hint=remedy)
    if path.exists():
        return path
    near = near_miss(path.name, [file.name for file in _listed(path.parent)])
    named = "" if near or Path(given).stem not in own(here) else f"Leave out the ending: {Path(given).stem}."
    raise NotFound(f"There is no file {given}.", hint=near or named or "A bare name such as review is found by itself.")


def load(
    path: Path,
    *,
    shown: str = "",
    text: str | None = None,
    providers: Collection[str] = (),
    environment: Collection[str] | None = None,
) -> Loaded:
    """The workflow in a file, or in `text` instead of the file's own; and every problem."""
    name = harmless(shown or str(path))
    notes = Notes(name)
    text = text_of(path, notes) if text is None else text
    if text is None:
        return Loaded(None, tuple(notes.problems))
    around = Surroundings(prompt=_prompts(path), providers=providers, environment=environment)
    tree = read_yaml(text, notes, largest=LARGEST, aliases=True)
    return Loaded(read(name, tree, path.stem, around, notes), notes.in_order())


def text_of(path: Path, notes: Notes) -> str | None:
    """The text of a file; None, and a note, if it can't be read."""
    whole = path.resolve()
    try:
        with safe_files.folder(str(whole.parent), ()) as where:
            return safe_files.text(where, whole.name, LARGEST)
    except FileNotFoundError:
        notes.refuse((1, 1), "", "there is no such file.")
    except Unreadable as error:
        remedy = "Save it as UTF-8." if "UTF-8" in str(error) else ""
        notes.refuse((error.line, 1), "", str(error), remedy)
    return None


def replace_text(path: Path, text: str) -> None:
    """Write a file anew: all of it, or nothing. Its permissions stay."""
    whole = path.resolve()
    mode = stat.S_IMODE(whole.stat().st_mode)
    write_whole(whole, text.encode(), mode=mode)
    whole.chmod(mode)  # the umask may have taken some away


def _prompts(workflow: Path) -> Callable[[str], str]:
    """A reader of the prompt files that a workflow names: beside its file, and within its repository."""
    beside = workflow.resolve().parent
    top = next((parent for parent in (beside, *beside.parents) if safe_files.is_top(parent)), beside)

    def prompt(name: str) -> str:
        path = Path(os.path.normpath(beside / name))
        if not path.is_relative_to(top):
            raise BadInput(f"the file {name} is outside of the repository.", hint="Copy it beside the workflow's file.")
        try:
            with safe_files.folder(str(top), path.parent.relative_to(top).parts) as where:
                text = safe_files.text(where, path.name, LARGEST_PROMPT)
        except FileNotFoundError as error:
            near = near_miss(path.name, [file.name for file in _listed(path.parent)])
            words = f"there is no file {name} beside the workflow's."
            raise BadInput(words, hint=near or "One word that ends in .md or .txt names a file.") from error
        except Unreadable as error:
            raise BadInput(f"the file {name}: {error}") from error
        if not text.strip():
            raise BadInput(f"the file {name} is empty.")
        return text

    return prompt


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []

"""Workflow files: where they are found, and what they say."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from windlass.core.did_you_mean import near_miss
from windlass.core.display import harmless
from windlass.core.errors import BadInput, NotFound
from windlass.core.files.problems import FileProblem, Notes
from windlass.core.workflows.file import Surroundings, read
from windlass.core.workflows.workflow import Workflow
from windlass.library import safe_files
from windlass.library.safe_files import Unreadable
from windlass.system.strict_yaml import read_yaml

LARGEST = 200_000
"""Bytes of a workflow's file."""
LARGEST_PROMPT = 200_000
ENDINGS = (".yaml", ".yml")
FOLDER = (".windlass", "workflows")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file came to."""

    workflow: Workflow | None
    """None: it has an error."""
    problems: tuple[FileProblem, ...]


def shipped() -> dict[str, Path]:
    """The workflows that come with Windlass, by name."""
    folder = Path(str(resources.files(__package__))) / "workflows"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def own(here: Path) -> dict[str, Path]:
    """The workflows of the project around a folder, by name: the nearest win."""
    found: dict[str, Path] = {}
    for above in _up_to_top(here):
        folder = above.joinpath(*FOLDER)
        listed = sorted(folder.iterdir()) if folder.is_dir() else []
        found = {each.stem: each for each in listed if each.suffix in ENDINGS} | found
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
    near = near_miss(path.name, [each.name for each in _listed(path.parent)])
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
    """The workflow in a file, or in the text that it shall have; or all that is wrong with it."""
    name = harmless(shown or str(path))
    notes = Notes(name)
    text = text_of(path, notes) if text is None else text
    if text is None:
        return Loaded(None, tuple(notes.problems))
    around = Surroundings(prompt=_prompts(path), providers=providers, environment=environment)
    tree = read_yaml(text, notes, largest=LARGEST, aliases=True)
    return Loaded(read(name, tree, path.stem, around, notes), notes.in_order())


def text_of(path: Path, notes: Notes) -> str | None:
    """The file as text; None, and a note, if it is none."""
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
    """Write a file anew: all of it, or nothing."""
    whole = path.resolve()
    beside = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        beside.chmod(stat.S_IMODE(whole.stat().st_mode))
        beside.replace(whole)
    finally:
        beside.unlink(missing_ok=True)


def _prompts(workflow: Path) -> Callable[[str], str]:
    """Reads the files that a workflow's file names: beside it, and within its repository."""
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
            near = near_miss(path.name, [each.name for each in _listed(path.parent)])
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


def _up_to_top(here: Path) -> Iterator[Path]:
    """This folder and those above it, up to the top of the repository; without one, this folder alone."""
    above = (here, *here.parents)
    last = next((number for number, each in enumerate(above) if safe_files.is_top(each)), 0)
    yield from above[: last + 1]

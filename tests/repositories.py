"""A repository of one commit, for every test that wants one: made by git once, and copied from then on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

PERSON = "[user]\n\tname = Test Person\n\temail = person@example.com\n[init]\n\tdefaultBranch = main\n"
"""A person's settings of git."""
FILES = MappingProxyType({"README.md": "# A small project\n"})


def new_repository(path: Path, files: Mapping[str, str] = FILES, *, settings: str = PERSON) -> Path:
    """A person's repository: one commit with these files, on the branch that their settings name, clean."""
    home = _first(tuple(files.items()), settings)
    shutil.copytree(home / "repo", path, symlinks=True, dirs_exist_ok=True)
    _git(home, path, "update-index", "-q", "--refresh")  # so that git sees without reading that nothing has changed
    return path


@cache
def _first(files: tuple[tuple[str, str], ...], settings: str) -> Path:
    """The home of the one that the others are copied from."""
    home = Path(tempfile.mkdtemp(dir=os.environ["WINDLASS_TEST_ROOT"], prefix="first-"))
    (home / ".gitconfig").write_text(settings)
    for name, text in files:
        (home / "repo" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "repo" / name).write_text(text)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Begin")):
        _git(home, home / "repo", *words)
    return home


def _git(home: Path, cwd: Path, *words: str) -> None:
    """Git with the settings in a home, whatever a test has set."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(("git", *words), cwd=cwd, env=environment, check=True)

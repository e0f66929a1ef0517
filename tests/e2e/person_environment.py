"""The home, the programs and the variables of a person at a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from forked import SOURCE
from repositories import PERSON

PROGRAM = (
    f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom windlass.cli.main import run\nrun()\n"
)


def person_environment(folder: Path, state: Path) -> dict[str, str]:
    """A person's variables: nothing of the one who runs the tests, and `windlass` on the PATH."""
    home, programs = folder / "home", folder / "bin"
    home.mkdir()
    programs.mkdir()
    (home / ".gitconfig").write_text(PERSON)
    (programs / "windlass").write_text(PROGRAM)
    (programs / "windlass").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "XDG_", "GIT_"))}
    return kept | {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        "GIT_CONFIG_NOSYSTEM": "1",
        "WINDLASS_HOME": str(state),
        "WINDLASS_SANDBOX": os.environ.get("WINDLASS_TEST_SANDBOX", "off"),
    }

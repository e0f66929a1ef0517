"""`./windlass` in a clone: sets itself up once, whatever happens meanwhile, and then only starts the program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import patience

TOP = Path(__file__).parent.parent.parent
UNAVAILABLE = 6

Ended = tuple[int, str, str]
Spoilt = tuple[Path, Ended]
Installed = tuple[Path, list[Ended]]

PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
"""

BACKEND = '''\
"""A build backend that needs nothing from an index."""

import zipfile
from pathlib import Path

ABOUT = "tiny-1.dist-info"
FILES = {
    "tiny.pth": f"{Path(__file__).parent}/src",
    f"{ABOUT}/METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n",
    f"{ABOUT}/WHEEL": "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    f"{ABOUT}/entry_points.txt": "[console_scripts]\\nwindlass = tiny:run\\n",
}


def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder, name), "w") as wheel:
        for path, text in FILES.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{ABOUT}/RECORD", "".join(f"{path},,\\n" for path in [*FILES, f"{ABOUT}/RECORD"]))
    return name
'''

PROGRAM = '''\
"""Says how it was called."""

import os
import sys


def run():
    print(os.getcwd(), *sys.argv[1:], sep="|")
'''


def make_clone(folder: Path) -> Path:
    """A clone with our launcher around a tiny program, so that no index is needed."""
    (folder / "scripts").mkdir(parents=True)
    for name in ("windlass", "scripts/setup", "scripts/install.py"):
        shutil.copy(TOP / name, folder / name)
    (folder / "src").mkdir()
    (folder / "src/tiny.py").write_text(PROGRAM)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "requirements.lock").write_text("")
    return folder


def start(launcher: Path, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (str(launcher), *arguments), cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    said, complained = process.communicate(timeout=patience.seconds(120))
    return process.returncode, said, complained


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    """A clone whose first set-up has failed, and how."""
    clone = make_clone(tmp_path_factory.mktemp("a place") / "my clone é")
    (clone / "requirements.lock").write_text("surely-not-there==1\n")
    failed = ended(start(clone / "windlass", cwd=clone, env={**os.environ, "PIP_NO_INDEX": "1"}))
    (clone / "requirements.lock").write_text("")
    return clone, failed


@pytest.fixture(scope="module")
def installed(spoilt: Spoilt) -> Installed:
    """The same clone after two uses at once, and how they went."""
    clone, _ = spoilt
    two = [start(clone / "windlass", "a b", "--json", cwd=clone.parent) for _ in range(2)]
    return clone, [ended(each) for each in two]


@pytest.mark.slow
@pytest.mark.xdist_group("launcher")  # one worker has the clone
class TestFirstUse:
    def test_a_set_up_that_fails_says_what_and_what_to_do(self, spoilt: Spoilt) -> None:
        """The last words of the installer are shown, with a hint, and standard output stays clean."""
        _, (code, said, complained) = spoilt
        assert (code, said) == (UNAVAILABLE, "")
        assert "surely-not-there" in complained
        assert "Hint: " in complained

    def test_the_next_use_begins_anew_and_is_done_once(self, installed: Installed) -> None:
        """What was half made does not count; of two that come at once, the second waits; and both run."""
        clone, both = installed
        assert [(code, said) for code, said, _ in both] == [(0, f"{clone.parent}|a b|--json\n")] * 2, both
        assert sorted("making the environment" in complained for _, _, complained in both) == [False, True]

    def test_later_uses_only_start_the_program(self, installed: Installed, tmp_path: Path) -> None:
        """From any folder, also through a link: nothing is said, nothing is installed."""
        link = tmp_path / "wl"
        link.symlink_to(os.path.relpath(installed[0] / "windlass", tmp_path))
        assert ended(start(link, cwd=tmp_path)) == (0, f"{tmp_path}\n", "")

    def test_a_changed_lock_is_installed(self, installed: Installed, tmp_path: Path) -> None:
        """Once, and into the environment that is there."""
        clone, _ = installed
        (clone / "requirements.lock").write_text("# changed\n")
        code, said, complained = ended(start(clone / "windlass", cwd=tmp_path))
        assert (code, said) == (0, f"{tmp_path}\n"), complained
        assert "installing requirements.lock" in complained
        assert "making the environment" not in complained
        assert ended(start(clone / "windlass", cwd=tmp_path)) == (0, f"{tmp_path}\n", "")

    def test_a_clone_that_was_moved_is_set_up_again(self, installed: Installed, tmp_path: Path) -> None:
        """Its programs still name the old place, so they are not started."""
        moved = shutil.copytree(installed[0], tmp_path / "moved", symlinks=True)
        (moved / "scripts" / "setup").write_text("#!/bin/sh\necho again; exit 9\n")
        assert ended(start(moved / "windlass", cwd=tmp_path)) == (9, "again\n", "")


def test_without_a_python_it_says_so(tmp_path: Path) -> None:
    """No Python that is new enough: one sentence, a hint, and nothing made."""
    clone = make_clone(tmp_path / "clone")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dirname").symlink_to(str(shutil.which("dirname")))
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    code, said, complained = ended(start(clone / "windlass", cwd=tmp_path, env={"PATH": str(programs)}))

    assert (code, said) == (UNAVAILABLE, "")
    assert "needs Python 3.11 or newer" in complained
    assert not (clone / ".venv").exists()

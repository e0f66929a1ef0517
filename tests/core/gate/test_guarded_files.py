"""Which files of a repository wait for a person when a change touches them."""

from __future__ import annotations

import pytest

from windlass.core.gate.guarded_files import SETTINGS, Guards
from windlass.core.settings.schema import CheckSettings, GateSettings, Settings


def guards(command: str = "true", *declared: str, setup: str = "", always: tuple[str, ...] = (SETTINGS,)) -> Guards:
    checks = CheckSettings(command=command, setup=setup)
    return Guards(Settings(checks=checks, gate=GateSettings(guarded=declared)), always)


def held(file: str, *words: str, before: str | None = "old", after: str | None = "new") -> bool:
    """Whether a change of this file waits, by the command and the declared guards."""
    return guards(*words).judge(file, before, after) is not None


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("./check.sh", "check.sh"),
        ("scripts/test --fast", "scripts/test"),
        ("bash -eu ci/run.sh all", "ci/run.sh"),
        ("CI=1 timeout 60s python3 run_tests.py", "run_tests.py"),
        ("cd web && ./run.sh", "web/run.sh"),
        ("cd web; cd app; sh ../run.sh", "web/run.sh"),
        ("(cd web/app && sh run.sh)", "web/app/run.sh"),
        ("sh web/../tools/run.sh", "tools/run.sh"),
        ("bash -c 'tools/run.sh'", "tools/run.sh"),
        ('sh -c "cd tools && ./run.sh"', "tools/run.sh"),
        ("env -C tools ./run.sh", "tools/run.sh"),
        ("env -Ctools ./run.sh", "tools/run.sh"),
        ("python3 -m tools.t", "tools/t.py"),
        ("python3 -m tools.t", "tools/t/__main__.py"),
        ("python3 -m tools.t", "tools/__init__.py"),
        ("python3 -mtools.t", "tools/t.py"),
        ("PYTHONPATH=src python3 -m tools.t", "src/tools/t.py"),
        ("python3 -c 'import tools.t; tools.t.main()'", "tools/t.py"),
        ("pytest tests/test_a.py::test_b", "tests/test_a.py"),
        ("eval \"$(cat 'tools/run')\"", "tools/run"),
        ("make --file=build/rules.mk check", "build/rules.mk"),
        ("node --test-reporter=./report.mjs", "report.mjs"),
    ],
)
def test_every_file_that_a_word_names_waits(command: str, file: str) -> None:
    """Whatever the shell does with the word; files that only have a part of its name do not."""
    assert held(file, command)
    assert not held(f"other/{file}x", command)


@pytest.mark.parametrize("file", ["src/app.py", "tests/test_new.py", "web/run.sh", "run.sh/x", "package.json"])
def test_others_do_not(file: str) -> None:
    """A folder that a word names is not all that is in it."""
    assert not held(file, "cd tools && ./run.sh && pytest tests", before='{"version": "1"}', after='{"version": "2"}')


def test_what_is_new_was_not_what_the_command_meant() -> None:
    """Main has no such file, so it says nothing there; a module that would hide the one that is run does."""
    assert not held("a.txt", "[ ! -e a.txt ] || exit 1", before=None)
    assert held("a.txt", "[ ! -e a.txt ] || exit 1", after=None)
    for file in ("pytest.py", "pytest/__init__.py", "pytest/__main__.py", "pytest.so"):
        assert held(file, "python3 -m pytest -q", before=None)
    assert not held("pytest_helper.py", "python3 -m pytest -q", before=None)


@pytest.mark.parametrize(
    "file",
    [
        *("Makefile", "GNUmakefile", "justfile", ".justfile", "Taskfile.yml", "Rakefile", "tox.ini", "noxfile.py"),
        *("conftest.py", "tests/deep/conftest.py", "pytest.ini", ".pytest.ini", "web/jest.config.ts", ".mocharc.json"),
        *(
            "vitest.config.mts",
            "playwright.config.ts",
            "web/Makefile",
            ".github/workflows/ci.yml",
            ".github/CODEOWNERS",
        ),
    ],
)
def test_what_configures_tests_waits(file: str) -> None:
    """Also where it is new, and in any folder."""
    assert held(file, before=None)
    assert held(file, after=None)


@pytest.mark.parametrize(
    ("file", "before", "same", "other"),
    [
        (
            "web/package.json",
            '{"scripts": {"test": "jest"}, "dependencies": {}}',
            '{"dependencies": {"left-pad": "1"}, "scripts": {"test": "jest"}}',
            '{"scripts": {"test": "true"}, "dependencies": {}}',
        ),
        (
            "pyproject.toml",
            '[project]\ndependencies = []\n[tool.pytest.ini_options]\naddopts = "-q"\n',
            '[project]\ndependencies = ["x"]\n[tool.pytest.ini_options]\naddopts = "-q"\n[tool.ruff]\n',
            '[project]\ndependencies = []\n[tool.pytest.ini_options]\naddopts = "-q -k nothing"\n',
        ),
        (
            "setup.cfg",
            "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n",
            "[metadata]\nname = y\n[tool:pytest]\naddopts = -q\n[flake8]\n",
            "[metadata]\nname = x\n",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = x\n[tool:pytest] # how\naddopts = -q\n",
            "[metadata]\nname = y\n[tool:pytest] # how\naddopts = -q\n",
            "[metadata]\nname = x\n[tool:pytest] # how\naddopts = -q -k nothing\n",
        ),
    ],
)
def test_a_new_dependency_is_no_judge(file: str, before: str, same: str, other: str) -> None:
    """Of some files only what they say about tests counts; of one that can't be read, all of it."""
    assert guards().suspects([file]) == [file]
    assert not held(file, before=before, after=same)
    assert held(file, before=before, after=other)
    assert held(file, before=before, after=None)
    assert held(file, before=before, after="{[")


@pytest.mark.parametrize("guard", ["ci", "ci/", "./ci", "ci/*", "ci/**"])
def test_a_folder_is_guarded_however_it_is_written(guard: str) -> None:
    """All that is in it, and nothing that only begins like it."""
    assert guards("true", guard).suspects(("ci/deep/run", "cider/run", "a/ci/run")) == ["ci/deep/run"]


def test_what_decides_waits_and_says_why() -> None:
    """Only what is part of the tests could be judged by tests; the rest is always for a person."""
    found = guards("./check.sh", "ci/", always=(SETTINGS, ".windlass/agents/"))
    files = ("check.sh", SETTINGS, ".windlass/agents/a.md", "ci/x", ".github/workflows/x.yml")
    why = [(each.why, each.judges) for file in files if (each := found.judge(file, "", ""))]
    assert why == [
        ("decides how changes are tested", True),
        ("decides how changes are tested", False),
        ("decides what agents are told and may do", False),
        ("is guarded by the settings", False),
        ("decides what other machines do with this repository", False),
    ]
    assert found.suspects(("src/a.py", "LICENSES", "cii/x")) == []


def test_the_set_up_is_guarded_like_the_command() -> None:
    """It runs first."""
    assert guards("true", setup="cd tools && ./prepare").judge("tools/prepare", "", "") is not None

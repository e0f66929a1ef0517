"""Which files of a repository wait for a person when a change touches them."""

from __future__ import annotations

import pytest

from windlass.core.gate.guarded_files import SETTINGS, decides, guarded, scripts
from windlass.core.settings.schema import CheckSettings, GateSettings, Settings


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("./check.sh", {"check.sh"}),
        ("scripts/test --fast", {"scripts/test"}),
        ("bash -eu ci/run.sh all", {"ci/run.sh", "bash"}),
        ("CI=1 timeout 60s python3 run_tests.py", {"run_tests.py", "python3"}),
        ("make -j4 check", {"make", "Makefile", "makefile", "GNUmakefile"}),
        ("npm test && ./lint", {"npm", "package.json", "lint"}),
        ("test ! -e bad.txt || grep -q new field.txt", {"test", "grep"}),
        ("if [ -e a ]; then sh ./b.sh; fi", {"[", "sh", "b.sh", "fi"}),
        ("python3 -m pytest tests", {"python3"}),
        ("sh -c 'exit 0'", {"sh"}),
        ("echo 'open", {"echo"}),
        ("", set()),
    ],
)
def test_a_command_names_what_it_executes(command: str, files: set[str]) -> None:
    """What it only reads may change; what it does may not."""
    assert scripts(command) == files


@pytest.mark.parametrize("guard", ["ci", "ci/", "./ci", "ci/*", "ci/**"])
def test_a_folder_is_guarded_however_it_is_written(guard: str) -> None:
    """All that is in it, and nothing that only begins like it."""
    settings = Settings(gate=GateSettings(guarded=(guard,)))
    assert guarded(("ci/deep/run",), settings, ()) == "ci/deep/run"
    assert guarded(("cider/run", "a/ci/run"), settings, ()) == ""


def test_what_decides_waits_and_says_why() -> None:
    """Settings, the check's own script, folders that the project names, and what agents are told."""
    settings = Settings(checks=CheckSettings(command="./check.sh"), gate=GateSettings(guarded=("ci/", "LICENSE")))
    always = (SETTINGS, ".windlass/agents/")
    why = {each: decides(each, settings, always) for each in ("check.sh", SETTINGS, ".windlass/agents/a.md", "ci/x")}
    for each in (*why, "LICENSE"):
        assert guarded(("src/a.py", each), settings, always) == each
    assert guarded(("src/a.py", "LICENSES", "cii/x"), settings, always) == ""
    assert [*why.values()] == [
        "decides how changes are tested",
        "decides how changes are tested",
        "decides what agents are told and may do",
        "is guarded by the settings",
    ]

"""Which files of a repository wait for a person when a change touches them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from windlass.core.gate.guarded_files import SETTINGS, Guards
from windlass.core.settings.schema import CheckSettings, GateSettings, Settings


def guards(
    command: str = "true",
    *declared: str,
    setup: str = "",
    always: tuple[str, ...] = (SETTINGS,),
    links: Mapping[str, str] | None = None,
) -> Guards:
    checks = CheckSettings(command=command, setup=setup)
    return Guards(Settings(checks=checks, gate=GateSettings(guarded=declared)), always, links or {})


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
        ("sh 'my tools/run.sh'", "my tools/run.sh"),
        ("sh my\\ tools/run.sh", "my tools/run.sh"),
        ('cd "my web"/app && ./run.sh', "my web/app/run.sh"),
        ("sh -c 'sh \"my tools/run (1).sh\"'", "my tools/run (1).sh"),
        ("sh $PWD/run.sh", "run.sh"),
        ('sh "${PWD}/tools/run.sh"', "tools/run.sh"),
        ("D=tools; sh $D/run.sh", "tools/run.sh"),
        ("sh $ELSEWHERE/run.py", "some/where/run.py"),
        ("python3 -Bm tools.t", "tools/t.py"),
        ("python3 -IBmtools.t", "tools/t.py"),
        ("python3 -B tools", "tools/__main__.py"),
        ("node tools/check", "tools/check.js"),
        ("node tools", "tools/index.js"),
        ("for f in ci/*.sh; do sh $f; done", "ci/a.sh"),
        ("cd ci && for f in ./step-*; do ./$f; done", "ci/step-1"),
        ("for f in a b; do sh ci/$f.sh; done", "ci/a.sh"),
        ("sh ci/{a,b}.sh", "ci/a.sh"),
        ("ls packages/*/run.py | xargs -n 1 python3", "packages/one/run.py"),
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


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("ruff check src/**/*.py", "src/app/main.py"),
        ("eslint 'src/**/*.{ts,tsx}'", "src/app.ts"),
        ("node --test tests/*.test.js", "tests/a.test.js"),
        ("for t in tests/*.sh; do sh $t; done", "tests/a.sh"),
        ("case $x in *) echo * $? ;; esac; [ -n $x ]", "LICENSE"),
        ("pytest src/app && mypy src/app", "src/app/types.py"),
        ("mypy src/app", "src/app/__main__.py"),
        ("pytest -q app", "app.py"),
        ("cargo test && npm run build", "test.json"),
        ("go test ./...", "cmd/main.go"),
        ("make check", "check.py"),
    ],
)
def test_source_and_tests_never_do(command: str, file: str) -> None:
    """A wildcard names scripts; most that it means is what is judged, and no judge."""
    assert not held(file, command)


def test_a_new_script_that_a_wildcard_means_waits() -> None:
    """It would run, unlike a new file that a word names."""
    assert held("ci/new.sh", "for f in ci/*.sh; do . $f; done", before=None)
    assert not held("ci/new.sh", "sh ci/new.sh", before=None)


@pytest.mark.parametrize(
    ("links", "file"),
    [
        ({"check.sh": "tools/real.sh"}, "tools/real.sh"),
        ({"check.sh": "ci/run", "ci": "./tools/../other"}, "other/run"),
        ({"web/conftest.py": "../shared/fixtures.py"}, "shared/fixtures.py"),
        ({"here": ".", "check.sh": "here/here/a"}, "a"),
    ],
)
def test_what_a_link_of_main_leads_to_waits(links: Mapping[str, str], file: str) -> None:
    """By its own name, whatever the link is called; other files do not."""
    found = guards("./check.sh", links=links)
    assert found.suspects([file, "src/app.py"]) == [file]
    guarded = found.judge(file, "old", "new")
    assert guarded is not None
    assert guarded.name == file


def test_a_link_that_the_command_goes_through_waits() -> None:
    """With another target, it is another script."""
    assert held("ci", "ci/run.sh", before="tools", after="other")


def test_what_is_too_long_to_be_read_waits() -> None:
    """If some of it may be about tests."""
    assert guards().judge_unread("web/package.json") is not None
    assert guards("./check.sh").judge_unread("check.sh") is not None
    assert guards().judge_unread("src/app.py") is None


@pytest.mark.parametrize(
    "file",
    ["re.py", "unittest/__init__.py", "json.cpython-311-x86_64-linux-gnu.so", "pluggy.py", "_pytest/__init__.py"],
)
def test_a_new_module_that_hides_one_of_python_s_waits(file: str) -> None:
    """At the top, where Python looks first; one that main has, and one in a package, hides nothing."""
    assert guards().suspects([file]) == [file]
    assert held(file, before=None)
    assert not held(file)
    assert not held(f"app/{file}", before=None)
    assert not held("test/__init__.py", before=None)
    assert held(f"app/{file}", "PYTHONPATH=app python -m pytest", before=None)
    assert held(f"app/{file}", "cd app && python -m pytest", before=None)


@pytest.mark.parametrize(
    "file", ["helper-1.dist-info/entry_points.txt", "src/x.egg-info/entry_points.txt", "a.pth", "lib/x.egg-link"]
)
def test_what_python_finds_beside_the_tests_waits(file: str) -> None:
    """A plugin of pytest's is found by such a folder, and such a file names more folders."""
    assert guards().suspects([file]) == [file]
    assert held(file, before=None)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("eslint src", ".eslintrc.json"),
        ("npx eslint src", "web/eslint.config.mjs"),
        (".venv/bin/mypy src", "mypy.ini"),
        ("flake8", ".flake8"),
        ("ruff check .", "ruff.toml"),
        ("pre-commit run -a", ".pre-commit-config.yaml"),
    ],
)
def test_settings_of_a_program_that_the_command_names_wait(command: str, file: str) -> None:
    """Who says what a linter finds judges, too."""
    assert held(file, command, before=None)
    assert not held(file, "true")


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
        *("tox.toml", "Taskfile.dist.yaml", "turbo.json", "nx.json", "gulpfile.js", "build/rules.mk", "vite.config.ts"),
        *("vitest.setup.ts", ".coveragerc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/yarn-4.cjs"),
        *(".cargo/config", "a/.cargo/config.toml", "bunfig.toml", "sitecustomize.py", "src/usercustomize.py"),
        *(
            "tools/__pycache__/t.cpython-311.pyc",
            ".venv/bin/pytest",
            "web/node_modules/.bin/jest",
            "vendor/bin/phpunit",
        ),
        *(".venv/lib/python3.11/site-packages/x.pth", ".gitlab-ci.yml"),
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
        (
            "setup.cfg",
            "[metadata]\nname = x\n [coverage:run]\n",
            "[metadata]\nname = y\n [coverage:run]\n",
            "[metadata]\nname = x\n [coverage:run]\nomit = *\n",
        ),
        (
            "Cargo.toml",
            '[package]\nname = "x"\n[[test]]\nname = "a"\n',
            '[package]\nname = "x"\n[[test]]\nname = "a"\n[dependencies]\nserde = "1"\n',
            '[package]\nname = "x"\n[[test]]\nname = "a"\nharness = false\n',
        ),
        ("composer.json", '{"scripts": {"test": "a"}}', '{"scripts": {"test": "a"}, "require": {}}', '{"require": {}}'),
        ("deno.json", '{"tasks": {"test": "a"}}', '{"tasks": {"test": "a"}, "imports": {}}', '{"imports": {}}'),
        (
            "web/.gitattributes",
            "*.sh eol=lf\n",
            "# x\n*.sh eol=lf\n*.png binary\n*.zip filter=lfs diff=lfs merge=lfs -text\na linguist-vendored\n",
            "*.sh eol=crlf\n",
        ),
    ],
)
def test_a_new_dependency_is_no_judge(file: str, before: str, same: str, other: str) -> None:
    """Of some files only what they say about tests counts; of one that can't be read, all of it."""
    assert guards().suspects([file]) == [file]
    assert not held(file, before=before, after=same)
    assert held(file, before=before, after=other)
    assert held(file, before=before, after=None)
    assert held(file, before=before, after="{[ x")
    assert not held(file, before=None, after="" if file.endswith((".cfg", ".toml", "butes")) else "{}")


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

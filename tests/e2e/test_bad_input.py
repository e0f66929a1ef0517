"""Bad input gets one clear sentence with the right exit code, and leaves nothing half-created."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_stage import WITHIN, Stage, Told, adds, stage

pytestmark = pytest.mark.xdist_group("bad input")  # most of it shares one daemon

BAD_INPUT, NOT_FOUND, UNAVAILABLE = 2, 3, 6


class Desk:
    """A stage on which nothing may ever be created."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        house.wl("daemon", "start")
        self.before = self.traces()

    def traces(self) -> tuple[object, ...]:
        """Agents, changes, worktrees, hubs and branches: what half-done work would leave."""
        house = self.house
        return (
            house.ask("/agents?all=1")["items"],
            house.queue(),
            house.worktrees(),
            sorted(house.state.glob("runs/*")),
            house.git("for-each-ref"),
            house.git("status", "--porcelain"),
        )

    def refuses(self, *words: str, code: int, cwd: Path | None = None) -> str:
        """Type it; returns the sentence (and its hint), after a look that nothing has come of it."""
        told = self.house.wl(*words, code=code, cwd=cwd)
        check_sentence(told)
        assert self.traces() == self.before
        return told.err


def check_sentence(told: Told) -> None:
    """One sentence that begins with who speaks, and at most a few lines of hint."""
    assert told.out == ""
    assert told.err.startswith("windlass: "), told.err
    assert len(told.err.splitlines()) <= 6, told.err


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with stage() as house:
        yield Desk(house)


@pytest.fixture
def folder(desk: Desk) -> Iterator[Path]:
    """A folder that is no repository yet."""
    made = desk.house.folder / "elsewhere"
    made.mkdir()
    yield made
    shutil.rmtree(made)


# ── repositories ─────────────────────────────────────────────────────────────────────────────────────────────


class TestRepositories:
    def test_a_folder_that_is_none_is_refused(self, desk: Desk, folder: Path) -> None:
        """The words say which folder, and how to make it one."""
        said = desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT, cwd=folder)
        assert f"{folder} is not in a git repository" in said
        assert "git init" in said

    def test_no_commits_yet_is_refused(self, desk: Desk, folder: Path) -> None:
        """There is nothing to start from; the words say how to begin."""
        desk.house.git("init", "-q", cwd=folder)
        said = desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT, cwd=folder)
        assert "has no commits yet" in said

    def test_a_detached_head_without_a_plain_main_is_refused(self, desk: Desk, folder: Path) -> None:
        """Nobody can guess where changes shall land; the words say how to tell."""
        git = desk.house.git
        git("clone", "-q", "-b", "main", str(desk.house.repo), ".", cwd=folder)
        git("checkout", "-q", "--detach", cwd=folder)
        git("branch", "-m", "main", "one", cwd=folder)
        git("branch", "two", cwd=folder)
        git("remote", "remove", "origin", cwd=folder)
        said = desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT, cwd=folder)
        assert "detached HEAD" in said
        assert "windlass config set project.main" in said

    def test_a_bare_repository_is_refused(self, desk: Desk, folder: Path) -> None:
        """There is no checkout to work in."""
        desk.house.git("init", "-q", "--bare", cwd=folder)
        assert "bare repository" in desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT, cwd=folder)

    def test_submodules_are_refused(self, desk: Desk, folder: Path) -> None:
        """What is not handled yet is said, never silently missing."""
        git = desk.house.git
        git("init", "-q", cwd=folder)
        git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(desk.house.repo), "sub", cwd=folder)
        git("commit", "-q", "-m", "Begin", cwd=folder)
        assert "submodules" in desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT, cwd=folder)

    def test_a_main_branch_that_is_not_there_is_refused_with_the_near_miss(self, desk: Desk) -> None:
        """`init --main mian` knows what was meant, and writes nothing."""
        said = desk.refuses("init", "--yes", "--main", "mian", code=BAD_INPUT)
        assert "no branch 'mian'" in said
        assert "main" in said.splitlines()[-1]

    def test_a_folder_that_is_gone_is_refused(self, desk: Desk) -> None:
        """Whoever stands in a removed folder is told so."""
        gone = desk.house.folder / "gone"
        gone.mkdir()
        code = f"import os; os.rmdir({str(gone)!r}); from windlass.cli.main import run; run()"
        words = (sys.executable, "-c", code, "work", "Fix it", "--command", "true")
        ran = subprocess.run(
            words, cwd=gone, env=desk.house.environment, capture_output=True, text=True, timeout=WITHIN, check=False
        )
        assert ran.returncode == NOT_FOUND
        assert "is gone" in ran.stderr


# ── the machine ──────────────────────────────────────────────────────────────────────────────────────────────


class TestMachine:
    def test_missing_git_is_named(self) -> None:
        """Without git there is nothing to do, and the words say how to get it."""
        with stage() as house:
            programs = house.folder / "few"
            programs.mkdir()
            for name in ("sh", "env"):
                (programs / name).symlink_to(str(shutil.which(name)))
            told = house.wl("work", "Fix it", "--command", "true", code=UNAVAILABLE, PATH=str(programs))
            check_sentence(told)
            assert "git" in told.err.splitlines()[0]
            assert "Install git" in told.err
            assert house.ask("/agents?all=1")["items"] == []
            assert house.worktrees() == []

    def test_a_home_that_cannot_be_written_is_named(self, desk: Desk) -> None:
        """The words say which folder, why, and which variable chooses another."""
        blocked = desk.house.folder / "a file"
        blocked.write_text("")
        told = desk.house.wl("list", code=UNAVAILABLE, WINDLASS_HOME=str(blocked / "wl"))
        check_sentence(told)
        assert str(blocked / "wl") in told.err
        assert "Set WINDLASS_HOME" in told.err
        assert blocked.read_text() == ""

    def test_a_pipe_that_closes_early_ends_quietly(self, desk: Desk) -> None:
        """`windlass … | head -1` is no error, for a list as for what follows for ever."""
        for words in (("list", "--all"), ("--help",), ("watch", "--since", "0"), ("config", "get")):
            process = desk.house.begin(*words)
            assert process.stdout
            assert process.stderr
            process.stdout.close()
            assert process.wait(WITHIN) == 0, words
            assert process.stderr.read() == b"", words


@pytest.fixture(scope="module")
def busy() -> Iterator[Stage]:
    """A stage with something to show."""
    with stage() as house:
        house.land("Add a file whose title is long enough for any terminal to be too narrow", adds("b.txt"))
        yield house


class TestTerminals:
    def test_colours_only_where_they_are_wanted(self, busy: Stage) -> None:
        """On a terminal yes, with NO_COLOR or in a pipe no."""
        assert "\x1b[" in busy.on_terminal("list", "--all")
        assert "\x1b[" not in busy.on_terminal("list", "--all", NO_COLOR="1")
        assert "\x1b[" not in busy.wl("list", "--all").out

    @pytest.mark.parametrize("table", ["list", "queue"])
    def test_narrow_ones_are_not_overrun(self, busy: Stage, table: str) -> None:
        """With 40 columns no line of a table is longer, whatever stands in it."""
        shown = busy.on_terminal(table, "--all", COLUMNS="40", NO_COLOR="1")
        assert "Add a" in shown
        assert max(map(len, shown.splitlines())) <= 40, shown


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


class TestNames:
    @pytest.mark.parametrize(
        "name", ["../x", "a/b", "", "x" * 300, "a\nb", "$(touch canary)", "Ärger", "@all", "a@b@c"]
    )
    @pytest.mark.parametrize("verb", ["show", "logs", "diff", "stop"])
    def test_that_are_none_are_refused(self, desk: Desk, verb: str, name: str) -> None:
        """A path, a command or nothing at all is not an agent's name."""
        desk.refuses(verb, name, code=BAD_INPUT)

    @pytest.mark.parametrize("verb", ["show", "logs", "stop"])
    def test_that_are_options_are_taken_for_names(self, desk: Desk, verb: str) -> None:
        """After `--` nothing is an option any more."""
        assert "'--help' is not a name" in desk.refuses(verb, "--", "--help", code=BAD_INPUT)

    def test_that_nobody_has_are_not_found(self, desk: Desk) -> None:
        """The words say where to look."""
        said = desk.refuses("show", "quick-otter", code=NOT_FOUND)
        assert "no agent quick-otter" in said
        assert "windlass list" in said

    @pytest.mark.parametrize("change", ["../c1", "", "c1;ls", "c 1"])
    def test_of_changes_that_are_none_are_refused(self, desk: Desk, change: str) -> None:
        """A change's id is letters and digits."""
        desk.refuses("receipt", change, code=BAD_INPUT)


class TestWords:
    @pytest.mark.parametrize("title", ["", "   ", "two\nlines", "x" * 501])
    def test_a_title_is_one_line(self, desk: Desk, title: str) -> None:
        """An empty, a long or a broken one is refused before anything is created."""
        desk.refuses("work", title, "--command", "true", code=BAD_INPUT)

    def test_work_for_nobody_is_refused(self, desk: Desk) -> None:
        """Without a provider the words say which there are, and how to set one."""
        said = desk.refuses("work", "Fix it", code=BAD_INPUT)
        assert "--command CMD" in said
        assert "windlass config set work.provider" in said

    def test_a_provider_that_does_not_exist_is_refused_with_the_near_miss(self, desk: Desk) -> None:
        """`--provider comand` knows what was meant."""
        said = desk.refuses("work", "Fix it", "--provider", "comand", code=NOT_FOUND)
        assert "no provider comand" in said
        assert "command" in said

    def test_a_provider_that_is_not_installed_is_named_with_its_program(self) -> None:
        """The words say which program is missing, and nothing is created."""
        with stage() as house:
            programs = house.folder / "few"
            programs.mkdir()
            (programs / "git").symlink_to(str(shutil.which("git")))
            told = house.wl("work", "Fix it", "--command", "true", code=UNAVAILABLE, PATH=str(programs))
            check_sentence(told)
            assert "needs the program sh, which is not installed" in told.err
            assert house.ask("/agents?all=1")["items"] == []
            assert house.git("for-each-ref", "refs/heads/work") == ""

    def test_a_script_with_a_typo_names_file_line_and_near_miss(self, desk: Desk) -> None:
        """Each problem stands with its place in the file."""
        script = desk.house.script("- say: Hello\n- wrte: {a.txt: A}\n- done\n")
        said = desk.refuses("work", "Play", "--script", script, code=BAD_INPUT)
        assert f"{script}:2" in said
        assert "wrte" in said
        assert "write" in said

    def test_a_script_that_is_not_there_is_not_found(self, desk: Desk) -> None:
        """The words name the path."""
        assert "nowhere.yaml" in desk.refuses("work", "Play", "--script", "nowhere.yaml", code=NOT_FOUND)

    def test_a_command_that_does_not_exist_is_refused_with_the_near_miss(self, desk: Desk) -> None:
        """`windlass wrok` knows what was meant."""
        assert "work" in desk.refuses("wrok", code=BAD_INPUT)


class TestSettings:
    def test_a_key_that_does_not_exist_is_refused_with_the_near_miss(self, desk: Desk) -> None:
        """For reading and for writing, and no file is made."""
        for words in (("set", "chekcs.command", "true"), ("get", "checks.comand")):
            said = desk.refuses("config", *words, code=BAD_INPUT)
            assert "There is no setting" in said
            assert "checks.command" in said
        assert not (desk.house.repo / ".windlass").exists()

    def test_a_value_of_the_wrong_kind_is_refused(self, desk: Desk) -> None:
        """A number must be one."""
        for value in ("many", "-1", "1.5"):
            said = desk.refuses("config", "set", "--home", "limits.runs", "--", value, code=BAD_INPUT)
            assert "limits.runs" in said

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('[checks]\ncommand = "a"\nnonsense\n', "line 3"),
            ("[checks]\ncomand = 'a'\n", "checks.comand"),
            ("[limits]\nruns = 'many'\n", "limits.runs must be a whole number"),
        ],
    )
    @pytest.mark.parametrize("whose", ["home", "project"])
    def test_a_broken_file_is_named_with_its_line(self, desk: Desk, whose: str, text: str, words: str) -> None:
        """Nothing is begun on settings that can't be understood; once they are mended, all goes on."""
        house = desk.house
        file = house.state / "config.toml" if whose == "home" else house.repo / ".windlass" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        kept = file.read_text() if file.exists() else ""
        desk.before = desk.traces() if whose == "home" else (*desk.traces()[:-1], "?? .windlass/")
        file.write_text(text)
        try:
            said = desk.refuses("work", "Fix it", "--command", "true", code=BAD_INPUT)
            assert str(file) in said
            assert words in said
            house.wl("list")
        finally:
            file.write_text(kept)
            if whose == "project":
                shutil.rmtree(file.parent)
            desk.before = desk.traces()
        assert house.wl("config", "get", "limits.runs").out == "8\n"

    def test_a_broken_home_file_does_not_keep_the_daemon_from_starting(self) -> None:
        """It starts, says what is wrong, and works when the file is mended."""
        with stage() as house:
            good = (house.state / "config.toml").read_text()
            (house.state / "config.toml").write_text("nonsense\n")
            told = house.wl("work", "Add b", "--command", adds("b.txt"), code=BAD_INPUT)
            assert "line 1" in told.err
            (house.state / "config.toml").write_text(good)
            house.land("Add b", adds("b.txt"))

    def test_settings_that_break_while_agents_work_stop_nobody(self, house: Stage) -> None:
        """All goes on as it was last understood: the change lands; and `doctor` names the file."""
        go = house.flag("go")
        house.work("Add b", f"{house.waits_for(go)}; {adds('b.txt')}")
        house.event("run.started")
        file = house.state / "config.toml"
        good, draft = file.read_text(), file.with_name("draft.toml")
        draft.write_text("nonsense\n")
        draft.replace(file)  # in one step: an empty file would be settings without a check
        go.touch()
        house.event("change.landed")
        assert f"{file}: " in house.wl("doctor", code=1).out
        file.write_text(good)
        house.wl("doctor")


def test_a_variable_that_names_no_home_is_the_default(house: Stage) -> None:
    """An empty WINDLASS_HOME means the folder in the person's home."""
    told = house.wl("daemon", "status", code=UNAVAILABLE, WINDLASS_HOME="")
    assert "not running" in told.err
    assert not (Path(house.environment["HOME"]) / ".windlass").exists()

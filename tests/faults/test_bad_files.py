"""Files that are links, pipes or devices, and YAML, JSON and TOML made to hurt: a clear error, in bounded time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_stage import Stage, adds, lines, stage
from input_stage import Desk, call

import sample
from patience import until

pytestmark = pytest.mark.xdist_group("bad files")

SOON = 10.0
"""Seconds of a processor that any answer may cost."""
DEEP = 100_000
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 10))
"""Nine lines that stand for a thousand million."""
WAYS_IN = ["/tasks", "/projects", "/settings", "/rescue/restore", "/agents/quick-otter/answer"]
ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
}


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with stage() as house:
        yield Desk(house)


class TestScripts:
    BAD = (
        ("- say: &a [x]\n- say: *a\n", "aliases"),
        (BOMB, "alias"),
        ("- say: !!python/object/apply:os.system ['touch canary']\n", "tags"),
        ("- write: {a.txt: 1, a.txt: 2}\n", "stands here a second time"),
        ("- say: x\n\t- say: y\n", "tab"),
        ("[" * DEEP + "]" * DEEP, "nested"),
        ("- say: \0\n", "can't stand in YAML"),
        ("", "no steps"),
        ("- say: " + "x" * 1_000_001, "at most 1000000"),
        ('- say: "\\ud800"\n', ""),
    )

    @pytest.mark.parametrize("number", sample.BROKEN_FILES.of(range(len(BAD))))
    def test_that_hurt_are_refused_by_their_place(self, desk: Desk, number: int) -> None:
        """Nothing is expanded, built or run to find that out, and nothing is created."""
        house, (text, words) = desk.house, self.BAD[number]
        script = house.script(text)
        told = house.wl("work", "Play", "--script", script, code=2)
        assert words in told.err, told
        assert len(told.err) < 3000
        desk.is_sound()

    @pytest.mark.parametrize("kind", ["a device", "a folder", "a link to nowhere"])
    def test_that_are_no_files_are_refused(self, desk: Desk, kind: str) -> None:
        """No device is read to its end. (A pipe is: a person may have a shell write the script.)"""
        path = desk.house.folder / "odd.yaml"
        ODD[kind](path)
        try:
            told = desk.house.wl("work", "Play", "--script", str(path), code=None)
            assert told.code in (2, 3), told
            assert "odd.yaml" in told.err
        finally:
            path.rmdir() if kind == "a folder" else path.unlink()
        desk.is_sound()


class TestBodies:
    BAD = (
        b'{"path": "/", "path": "/", "title": "x"}',
        b'{"options": {"command": "true", "command": "false"}}',
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"title": "\\ud800"}',
        b'{"title": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b"[]",
        b'"x"',
        b"{",
        b"path=/&title=x",
        b"x" * 10_000_000,
    )

    @pytest.mark.parametrize("path", WAYS_IN)
    def test_that_hurt_are_refused(self, desk: Desk, path: str) -> None:
        """Each is one sentence; the daemon has not grown by what it was sent, nor thought about it for long."""
        before, worked = memory(desk.house), processor_time(desk.house)
        bodies = sample.BROKEN_FILES.of(self.BAD)
        for body in bodies:
            desk.refuses("POST", path, body)
        assert memory(desk.house) - before < 60_000
        assert processor_time(desk.house) - worked < SOON * len(bodies)

    def test_that_are_too_long_are_not_read_to_be_judged(self, desk: Desk) -> None:
        """Whatever they would say: the length alone is the reason."""
        body = b'{"path": "/", "title": "' + b"x" * 10_000_000 + b'"}'
        assert "more than 4000000 bytes" in desk.refuses("POST", "/tasks", body)

    def test_a_key_that_stands_twice_is_not_chosen_from(self, desk: Desk) -> None:
        """Whatever is meant by it, nothing is done."""
        body = f'{{"path": "{desk.house.repo}", "title": "one", "title": "two", "options": {{"command": "true"}}}}'
        assert "stands twice" in desk.refuses("POST", "/tasks", body.encode())


class TestSettings:
    BAD = (
        ("a = " + "[" * DEEP, "nested too deeply"),
        ("x" * 2_000_000, "has more than 200000 bytes"),
        ('[checks]\ncommand = "a"\ncommand = "b"\n', "line 3"),
        ("[limits]\nruns = nan\n", "limits.runs must be"),
        ('[checks]\ncommand = "a\\u0000b"\n', "without NUL"),
        ('[checks]\ncommand = "\\ud800"\n', "line 2"),
        ("[project]\nmain = 2026-01-01\n", "project.main must be a text"),
    )

    @pytest.mark.parametrize("whose", ["home", "project"])
    def test_that_hurt_are_refused_by_file_and_key(self, desk: Desk, whose: str) -> None:
        """Nothing is begun on them; and what only looks still answers."""
        with settings(desk, whose) as file:
            for text, words in sample.BROKEN_FILES.of(self.BAD):
                file.write_text(text)
                refuses(desk.house, file, words)

    @pytest.mark.parametrize("whose", ["home", "project"])
    @pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
    def test_that_are_no_files_are_refused(self, desk: Desk, whose: str, kind: str) -> None:
        """A repository may bring a pipe under this name: the daemon neither waits for it nor reads a device."""
        with settings(desk, whose) as file:
            file.unlink(missing_ok=True)
            ODD[kind](file)
            refuses(desk.house, file, "is not a regular file")


def refuses(house: Stage, file: Path, words: str) -> None:
    worked = processor_time(house)
    told = house.wl("work", "Fix it", "--command", "true", code=2)
    assert str(file) in told.err
    assert words in told.err
    house.ask("/agents")
    assert processor_time(house) - worked < SOON


@contextmanager
def settings(desk: Desk, whose: str) -> Iterator[Path]:
    """A settings file that a test may spoil; it is put back, and nothing has come of it."""
    file = desk.house.state / "config.toml"
    if whose == "project":
        file = desk.house.repo / ".windlass/config.toml"
        file.parent.mkdir()
    kept = file.read_text() if file.exists() else ""
    try:
        yield file
    finally:
        file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        file.write_text(kept)
        if whose == "project":
            shutil.rmtree(file.parent)
    desk.is_sound()


class TestRepositories:
    @pytest.mark.parametrize("kind", ["a pipe", "a device"])
    def test_whose_files_are_none_are_looked_at_without_waiting(self, desk: Desk, kind: str) -> None:
        """Guessing the checks reads plain files only."""
        house = desk.house
        names = [house.repo / each for each in ("Makefile", "package.json", "pyproject.toml", "setup.cfg")]
        for name in names:
            ODD[kind](name)
        number, said = call(house, "GET", f"/projects/checks?path={house.repo}")
        for name in names:
            name.unlink()
        assert (number, said["guess"]["command"]) == (200, "")
        desk.is_sound()

    def test_whose_files_are_deep_are_looked_at(self, desk: Desk) -> None:
        """JSON and TOML that no reader can follow say nothing about checks."""
        house = desk.house
        for name, text in (("package.json", '{"a":' * DEEP), ("pyproject.toml", "a = " + "[" * DEEP)):
            (house.repo / name).write_text(text)
            number, said = call(house, "GET", f"/projects/checks?path={house.repo}")
            assert (number, said.get("guess", {}).get("command")) == (200, ""), said
            (house.repo / name).unlink()
        desk.is_sound()

    def test_behind_a_link_are_the_one_project(self, house: Stage) -> None:
        """A link to a repository leads to the very same one, and nothing is made where the link stands."""
        house.land("Add a", adds("a.txt"))
        link = house.folder / "link"
        link.symlink_to(house.repo)
        house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", cwd=link)
        assert len(list((house.state / "hubs").iterdir())) == 1
        assert link.is_symlink()


class TestRuns:
    def test_whose_output_is_replaced_by_a_link_or_pipe_are_not_followed(self, house: Stage) -> None:
        """A run that exchanges its output file tells no other file's text, and keeps nobody waiting."""
        secret = house.flag("secret")
        secret.write_text("hush hush\n")
        output = '"$WINDLASS_HOME/runs/$WINDLASS_RUN/output"'
        for number, exchange in enumerate((f"ln -s {secret} {output}", f"mkfifo {output}"), start=1):
            name = house.land(f"Add {number}", lines(f"rm {output}", exchange, adds(f"{number}.txt")))["agent"]["name"]
            assert "hush" not in house.wl("logs", name).out

    def test_whose_inputs_are_replaced_by_links_write_through_none(self) -> None:
        """The next run is briefed into its own folder, or refused; what the link leads to stays as it is."""
        with stage(settings="[limits]\nreminders = 1\n") as house:
            outside = house.flag("outside")
            outside.mkdir()
            (outside / "task.md").write_text("mine")
            name = house.work("Link", f"rm -rf .windlass/input && ln -s {outside} .windlass/input")
            house.event("task.failed")
            assert "a symbolic link" in house.agent(name)["runs"][-1]["reason"]
            assert (outside / "task.md").read_text() == "mine"
            assert [path.name for path in outside.iterdir()] == ["task.md"]

    def test_whose_worktree_holds_links_out_are_saved_and_removed_without_following(self, house: Stage) -> None:
        """A link in a tree is a link in the snapshot; removing the tree leaves what it leads to."""
        outside = house.flag("outside")
        outside.mkdir()
        (outside / "mine.txt").write_text("mine")
        name = house.land("Link", lines(f"ln -s {outside} out", "git add -A", "git commit -qm link"))["agent"]["name"]
        house.event("agent.retired", name)
        until(lambda: not house.worktrees(), "its worktree to be removed")
        assert (outside / "mine.txt").read_text() == "mine"
        assert (house.repo / "out").is_symlink()


def processor_time(house: Stage) -> float:
    """Seconds that the daemon has worked so far: a busy machine does not change them, as it does hours."""
    words = Path(f"/proc/{house.daemon}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory(house: Stage) -> int:
    """Kilobytes of the daemon in memory."""
    status = Path(f"/proc/{house.daemon}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

"""Where a model's tools may go, by whatever name they are told to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from windlass.core.errors import BadInput, NotAllowed, NotFound, WindlassError
from windlass.model.commands import Commands
from windlass.model.files import AllowedPaths, Files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree with something outside of it, and links that lead there."""
    top = tmp_path / "tree"
    (top / "src").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "src/a.py").write_text("one = 1\ntwo = 2\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    (tmp_path / "elsewhere").mkdir()
    (top / "out").symlink_to(tmp_path / "secret.txt")
    (top / "folder").symlink_to(tmp_path / "elsewhere")
    (top / "dangling").symlink_to(tmp_path / "not-there")
    (top / "near").symlink_to("src/a.py")
    return top


OUTSIDE = [
    "../secret.txt",
    "src/../../secret.txt",
    "out",
    "folder/new.txt",
    "dangling",
    "/etc/passwd",
    "{above}/secret.txt",
]
TOOLS: dict[str, Callable[[Files, str], str]] = {
    "read": lambda files, path: files.read_file(path),
    "write": lambda files, path: files.write_file(path, "new"),
    "edit": lambda files, path: files.edit_file(path, "secret", "known"),
    "list": lambda files, path: files.list_files(path),
}


class TestOutside:
    @pytest.mark.parametrize("path", OUTSIDE)
    @pytest.mark.parametrize("tool", TOOLS)
    def test_nothing_leads_out(self, tree: Path, tool: str, path: str) -> None:
        """Steps up, absolute paths and links are all seen for what they are."""
        with pytest.raises(NotAllowed, match="outside of"):
            TOOLS[tool](Files(AllowedPaths([str(tree)])), path.format(above=tree.parent))
        assert (tree.parent / "secret.txt").read_text() == "secret\n"
        assert list((tree.parent / "elsewhere").iterdir()) == []
        assert not (tree.parent / "not-there").exists()

    @pytest.mark.parametrize("path", OUTSIDE)
    def test_nothing_outside_is_searched(self, tree: Path, path: str) -> None:
        """Not by a path that leads there either."""
        commands = Commands(AllowedPaths([str(tree)]), dict(os.environ))
        with pytest.raises(NotAllowed, match="outside of"):
            asyncio.run(commands.search_files("secret", path.format(above=tree.parent)))

    def test_a_search_does_not_follow_links(self, tree: Path) -> None:
        """What links lead to is not found from above them."""
        commands = Commands(AllowedPaths([str(tree)]), dict(os.environ))
        assert asyncio.run(commands.search_files("secret")) == "(nothing)"
        assert asyncio.run(commands.search_files("two =")) == "src/a.py:2:two = 2"

    def test_a_list_does_not_follow_links(self, tree: Path) -> None:
        """A link is shown as one, and what it leads to is not walked through."""
        (tree.parent / "elsewhere/b.py").touch()
        files = Files(AllowedPaths([str(tree)]))
        assert "folder@" in files.list_files().splitlines()
        assert files.list_files(pattern="*.py").splitlines() == ["src/a.py"]

    @pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
    def test_what_is_no_path(self, tree: Path, path: str) -> None:
        """It is refused, and nothing falls over."""
        with pytest.raises((WindlassError, OSError)):
            Files(AllowedPaths([str(tree)])).read_file(path)


class TestInside:
    def test_links_within_are_fine(self, tree: Path) -> None:
        """A link to a file of ours is that file."""
        files = Files(AllowedPaths([str(tree)]))
        assert files.read_file("near") == "1\tone = 1\n2\ttwo = 2"
        files.edit_file("near", "two = 2", "two = 3")
        assert (tree / "src/a.py").read_text() == "one = 1\ntwo = 3\n"
        assert (tree / "near").is_symlink()

    def test_absolute_paths_of_ours_are_fine(self, tree: Path) -> None:
        """Models like to write them."""
        assert Files(AllowedPaths([str(tree)])).read_file(f"{tree}/src/a.py", offset=2) == "2\ttwo = 2"

    def test_several_folders(self, tree: Path) -> None:
        """An agent of several repositories reaches each, though links lead there."""
        files = Files(AllowedPaths([str(tree), str(tree.parent / "elsewhere")]))
        files.write_file("folder/new.txt", "new\n")
        assert (tree.parent / "elsewhere/new.txt").read_text() == "new\n"

    @pytest.mark.parametrize("path", [".git/hooks/pre-commit", "src/../.git/config"])
    def test_git_keeps_its_own(self, tree: Path, path: str) -> None:
        """No hook is written by these tools."""
        with pytest.raises(NotAllowed, match="git's own"):
            Files(AllowedPaths([str(tree)])).write_file(path, "x")

    def test_who_may_only_read_writes_its_report(self, tree: Path) -> None:
        """Nothing but that, not by a link in its folder either."""
        files = Files(AllowedPaths([str(tree)], output=".windlass/output"))
        assert files.write_file(".windlass/output/review.md", "Fine.\n")
        (tree / ".windlass/output/link").symlink_to(tree / "src/a.py")
        for path in ("src/a.py", "new.txt", ".windlass/output/../x", ".windlass/output/link"):
            with pytest.raises(NotAllowed, match="may only read"):
                files.write_file(path, "x")
            with pytest.raises(NotAllowed, match="may only read"):
                files.edit_file(path, "one", "two")


class TestFiles:
    def test_a_pipe_is_not_waited_for(self, tree: Path) -> None:
        """What is no file is refused at once."""
        os.mkfifo(tree / "pipe")
        with pytest.raises(NotAllowed, match="no file"):
            Files(AllowedPaths([str(tree)])).read_file("pipe")
        with pytest.raises(OSError, match="No such device"):
            Files(AllowedPaths([str(tree)])).write_file("pipe", "x")

    def test_what_is_too_long_is_read_in_parts(self, tree: Path) -> None:
        """The model is told where to go on."""
        (tree / "long.txt").write_text("".join(f"line {each}\n" for each in range(1, 3001)))
        files = Files(AllowedPaths([str(tree)]))
        assert files.read_file("long.txt").endswith("2000\tline 2000\n… 1000 more lines; read on from line 2001.")
        assert files.read_file("long.txt", offset=2999) == "2999\tline 2999\n3000\tline 3000"
        (tree / "wide.txt").write_text("x" * 1_000_000)
        assert len(files.read_file("wide.txt")) < 2100
        (tree / "binary").write_bytes(b"\0\1")
        with pytest.raises(NotAllowed, match="no text"):
            files.read_file("binary")

    def test_an_edit_must_be_clear(self, tree: Path) -> None:
        """What is not there, or there twice, is not guessed at."""
        files = Files(AllowedPaths([str(tree)]))
        with pytest.raises(BadInput, match="not in"):
            files.edit_file("src/a.py", "three", "four")
        with pytest.raises(BadInput, match="2 times"):
            files.edit_file("src/a.py", " = ", "=")
        assert files.edit_file("src/a.py", " = ", "=", everywhere=True) == "Exchanged 2 times."
        assert (tree / "src/a.py").read_text() == "one=1\ntwo=2\n"
        with pytest.raises(NotFound):
            files.edit_file("new.py", "a", "b")


class TestCommands:
    def test_a_command_that_takes_too_long(self, tree: Path) -> None:
        """It is ended with all in its group, and what it said is kept."""
        commands = Commands(AllowedPaths([str(tree)]), dict(os.environ))
        said = asyncio.run(commands.shell("echo begun; sleep 471 & echo $! > pid; wait", seconds=1))
        assert said.splitlines() == ["begun", "(ended after 1 seconds: it took too long)"]
        pid = int((tree / "pid").read_text())
        with pytest.raises(ProcessLookupError):
            while True:
                os.kill(pid, 0)

    def test_what_it_leaves_behind_is_not_waited_for(self, tree: Path) -> None:
        """A server in the background keeps the pipe, and the model goes on."""
        commands = Commands(AllowedPaths([str(tree)]), dict(os.environ))
        said = asyncio.run(commands.shell("sleep 471 & echo $!"))
        os.kill(int(said), 9)

    @pytest.mark.parametrize("words", [[], ["work", "x"], ["--help"], ["agent\0"], ["daemon", "stop"]])
    def test_only_some_of_our_commands(self, tree: Path, words: list[str]) -> None:
        """Who may only read can say how it went, and no more."""
        with pytest.raises(BadInput):
            asyncio.run(Commands(AllowedPaths([str(tree)]), dict(os.environ)).windlass(words))

    def test_an_output_has_bounds(self, tree: Path) -> None:
        """Beginning and end are kept, whatever came between."""
        commands = Commands(AllowedPaths([str(tree)]), dict(os.environ))
        said = asyncio.run(commands.shell("echo begun; head -c 10000000 /dev/zero | tr '\\0' x; printf 'the end'"))
        assert 30_000 < len(said) < 30_100
        assert said.startswith("begun\nxxx")
        assert said.endswith("xxxthe end")
        assert "9970013 bytes left out" in said

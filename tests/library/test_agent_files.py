"""Agent files as they lie in a repository, good, bad and hostile."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from windlass.core.agents.definition import Roster
from windlass.core.errors import BadInput
from windlass.core.files.problems import Gravity
from windlass.core.runs.prompt import BLOCKS, PROJECT
from windlass.library import prompt_blocks
from windlass.library.agent_files import LARGEST, RepositoryLibrary

SEED = """\
---
name: coder
role: "Senior developer specializing in backend systems"
triggers: ["code", "implement", "fix", "refactor", "build"]
handoff_to: ["reviewer", "tester"]
persistent: false
---

# Coder Agent

You are a senior developer working on {workplace_name}.

[coder-to-reviewer]: Review needed for {description}.
"""


def put(repo: Path, name: str, text: str | bytes, folder: str = ".windlass/agents") -> Path:
    file = repo / folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def agent(name: str, **more: str) -> str:
    return (
        "---\n" + "".join(f"{key}: {value}\n" for key, value in {"name": name, "role": "x", **more}.items()) + "---\n"
    )


def roster(repo: Path) -> Roster:
    return asyncio.run(RepositoryLibrary(prompt_blocks()).roster(str(repo)))


def places(repo: Path) -> list[tuple[str, int]]:
    return [(problem.file, problem.line) for problem in roster(repo).problems]


class TestFinding:
    def test_the_form_of_the_source_document_is_read(self, tmp_path: Path) -> None:
        """Word by word, and its body as it stands."""
        put(tmp_path, "coder.md", SEED)
        put(tmp_path, "reviewer.md", agent("reviewer"))
        put(tmp_path, "tester.md", agent("tester"))

        found = roster(tmp_path)

        coder = found.find("coder")
        assert coder and found.problems == ()
        assert coder.role == "Senior developer specializing in backend systems"
        assert coder.handoff_to == ("reviewer", "tester")
        assert coder.body.startswith("# Coder Agent\n") and coder.body.endswith("for {description}.")
        assert coder.file == ".windlass/agents/coder.md"

    def test_other_tools_folders_are_found_too_and_ours_is_the_strongest(self, tmp_path: Path) -> None:
        """One name, one agent: `.windlass` before `.workplace` before the others."""
        theirs = "---\nname: {}\ndescription: Does it.\nmodel: sonnet\ncolor: blue\ntools: Read, Grep\n---\nBody.\n"
        put(tmp_path, "a.md", theirs.format("first"), ".claude/agents")
        put(tmp_path, "b.md", theirs.format("third"), ".claude/agents")
        put(tmp_path, "a.md", agent("second"), ".workplace/agents")
        put(tmp_path, "a.md", agent("first"))

        found = roster(tmp_path)

        assert [(definition.name, definition.file) for definition in found.definitions] == [
            ("first", ".windlass/agents/a.md"),
            ("second", ".workplace/agents/a.md"),
            ("third", ".claude/agents/b.md"),
        ]
        third = found.definitions[2]
        assert (third.role, third.habitat, third.model_for(third.habitat)) == ("Does it.", third.habitat, "sonnet")
        errors = [problem for problem in found.problems if problem.gravity is Gravity.ERROR]
        assert [(error.file, error.line) for error in errors] == [(".claude/agents/a.md", 2)]

    def test_what_is_no_agent_file_is_left_alone(self, tmp_path: Path) -> None:
        """Other endings, hidden files, folders' own explanations."""
        for name in ("notes.txt", ".draft.md", "README.md", "coder.md~"):
            put(tmp_path, name, "nothing")

        assert roster(tmp_path) == Roster()

    def test_windows_line_ends_and_a_mark_at_the_start_are_fine(self, tmp_path: Path) -> None:
        """As some editors write them."""
        put(tmp_path, "a.md", b"\xef\xbb\xbf---\r\nname: coder\r\nrole: x\r\n---\r\nOne\r\ntwo\r\n")

        found = roster(tmp_path)

        assert found.problems == ()
        assert found.definitions[0].body == "One\ntwo"

    def test_scalars_are_taken_as_written(self, tmp_path: Path) -> None:
        """What YAML would guess to be a number, a time or a no is a name."""
        put(tmp_path, "a.md", "---\nname: no\nrole: 12:30\ntriggers: [on, 1_000, 2026-01-01]\n---\n")

        made = roster(tmp_path).definitions[0]

        assert (made.name, made.role, made.triggers) == ("no", "12:30", ("on", "1_000", "2026-01-01"))


BOMB = "---\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)

BAD: dict[str, tuple[str | bytes, int, str]] = {
    "no head": ("Just text.\n", 1, "three dashes"),
    "empty": ("", 1, "three dashes"),
    "never ends": ("---\nname: coder\nrole: x\n", 1, "never end"),
    "no name": ("---\nrole: x\n---\n", 2, "name: is missing."),
    "no role": ("---\nname: coder\n---\n", 2, "role: is missing."),
    "bad name": ("---\nrole: x\nname: The Coder\n---\n", 3, "not a name"),
    "reserved": ("---\nname: human\nrole: x\n---\n", 2, "reserved"),
    "broken YAML": ("---\nname: coder\nrole: [x\n---\n", 3, "a bracket is opened and not closed"),
    "a colon": ("---\nname: coder\nrole: Use it: always\n---\n", 3, "in quotes"),
    "a tab": ("---\nname: coder\nrole:\n\t- x\n---\n", 4, "a tab stands where the line is indented"),
    "a list": ("---\n- name\n---\n", 2, "keys with values"),
    "twice": ("---\nname: coder\nrole: x\nname: other\n---\n", 4, "name: stands here a second time"),
    "a tag": ("---\nname: coder\nrole: !!python/object:os.system x\n---\n", 3, "tags"),
    "an alias bomb": (BOMB + "name: coder\nrole: x\n---\n", 3, "aliases"),
    "deep": ("---\nname: coder\nrole: " + "[" * 5000 + "\n---\n", 3, "deep"),
    "a control character": ("---\nname: coder\nrole: x\x1b[2J\n---\n", 3, "can't stand in YAML"),
    "not UTF-8": (b"---\nname: coder\nrole: \xff\xfe\n---\n", 3, "not UTF-8"),
    "10 MB": (b"---\nname: coder\nrole: x\n---\n" + b"x" * 10_000_000, 1, "more than"),
    "a long head": ("---\nname: coder\nrole: x\nother: " + "y" * 40_000 + "\n---\n", 1, "at most"),
}


class TestBadFiles:
    @pytest.mark.parametrize("kind", BAD)
    def test_it_is_named_by_file_and_line_and_the_others_go_on(self, tmp_path: Path, kind: str) -> None:
        """Whatever is wrong with one."""
        text, line, words = BAD[kind]
        put(tmp_path, "bad.md", text)
        put(tmp_path, "good.md", agent("good"))
        began = time.process_time()

        found = roster(tmp_path)

        assert time.process_time() - began < 2
        assert [definition.name for definition in found.definitions] == ["good"]
        assert [(problem.file, problem.line) for problem in found.problems] == [(".windlass/agents/bad.md", line)]
        assert words in str(found.problems[0])
        assert len(str(found.problems[0])) < 500

    def test_no_link_is_followed(self, tmp_path: Path) -> None:
        """Neither out of the repository nor within it; a pipe does not keep us waiting."""
        secret = tmp_path / "secret.md"
        secret.write_text(agent("secret"))
        repo = tmp_path / "repo"
        put(repo, "good.md", agent("good"))
        (repo / ".windlass/agents/link.md").symlink_to(secret)
        os.mkfifo(repo / ".windlass/agents/pipe.md")
        (repo / ".windlass/agents/sub.md").mkdir()
        (repo / ".workplace").mkdir()
        (repo / ".workplace/agents").symlink_to(tmp_path)

        found = roster(repo)

        assert [definition.name for definition in found.definitions] == ["good"]
        assert {problem.file: problem.words for problem in found.problems} == {
            ".windlass/agents/link.md": "it is a symbolic link, which is not followed.",
            ".windlass/agents/pipe.md": "it is a pipe.",
            ".windlass/agents/sub.md": "it is a folder.",
            ".workplace/agents": "it is a symbolic link, which is not followed.",
        }

    def test_a_folder_that_is_a_file_is_named(self, tmp_path: Path) -> None:
        """And an agent's name in the file system can't play tricks on a terminal."""
        (tmp_path / ".workplace").mkdir()
        (tmp_path / ".workplace/agents").write_text("")
        put(tmp_path, "x\x1b[2J.md", "")

        assert places(tmp_path) == [(".windlass/agents/x\\x1b[2J.md", 1), (".workplace/agents", 1)]


class TestPrompts:
    def blocks(self, repo: Path) -> dict[str, str]:
        return dict(asyncio.run(RepositoryLibrary(prompt_blocks()).blocks(str(repo))))

    def test_what_a_project_writes_is_added_to_the_shipped_blocks(self, tmp_path: Path) -> None:
        """Not instead of them; WORKER.md is a block of its own."""
        put(tmp_path, "git_workflow.md", "- Sign off every commit.\n", ".windlass/prompts")
        put(tmp_path, "WORKER.md", "Speak plainly.\n", ".windlass")

        blocks, shipped = self.blocks(tmp_path), prompt_blocks()

        assert blocks["git_workflow"] == f"{shipped['git_workflow'].rstrip()}\n\n- Sign off every commit."
        assert blocks[PROJECT] == "Speak plainly."
        assert {name: blocks[name] for name in BLOCKS if name != "git_workflow"} == {
            name: shipped[name] for name in BLOCKS if name != "git_workflow"
        }

    def test_one_that_cannot_be_read_is_an_error(self, tmp_path: Path) -> None:
        """A prompt is never silently incomplete."""
        put(tmp_path, "role.md", b"fine\nnot \xff fine", ".windlass/prompts")

        with pytest.raises(BadInput, match=r"\.windlass/prompts/role\.md:2: it is not UTF-8"):
            self.blocks(tmp_path)

        put(tmp_path, "role.md", "x" * (LARGEST + 1), ".windlass/prompts")
        with pytest.raises(BadInput, match="more than"):
            self.blocks(tmp_path)

    def test_one_for_no_block_is_a_warning(self, tmp_path: Path) -> None:
        """With the block that was meant."""
        put(tmp_path, "git_workflw.md", "x", ".windlass/prompts")

        (found,) = roster(tmp_path).problems

        assert (found.file, found.gravity) == (".windlass/prompts/git_workflw.md", Gravity.WARNING)
        assert "Did you mean git_workflow?" in found.words

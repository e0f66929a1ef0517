"""The project's own Python files, each read once: what the rules of the house are held against."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src" / "windlass"


@dataclass(frozen=True)
class Module:
    """One Python file, read once."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def comments(self) -> dict[int, str]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    @property
    def name(self) -> str:
        return str(self.path.relative_to(TOP))

    @property
    def room(self) -> str:
        """The package below `windlass`; nothing for the few files beside them."""
        return self.path.relative_to(SOURCE).parts[0] if self.path.parent != SOURCE else ""

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every module this one imports, also lazily, and the line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((name.name, node.lineno) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module == "windlass":
                yield from ((f"windlass.{name.name}", node.lineno) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield "." * node.level + (node.module or ""), node.lineno

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def modules(*folders: Path) -> list[Module]:
    return [Module(path) for folder in folders for path in sorted(folder.rglob("*.py"))]


SRC = modules(SOURCE)
TESTS = modules(TOP / "tests")
ALL = SRC + TESTS + modules(TOP / "scripts")


def expect_none(found: Iterable[str]) -> None:
    """Every place where a rule is broken, one a line."""
    places = list(found)
    assert not places, "\n" + "\n".join(places)

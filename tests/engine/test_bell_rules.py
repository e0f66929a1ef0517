"""When the bell may be rung."""

from __future__ import annotations

import ast
from pathlib import Path

import windlass.engine

ENGINE = Path(windlass.engine.__file__).parent


def within_transactions() -> list[ast.FunctionDef]:
    """Every function that writes, and so runs within a transaction, in the writer's thread."""
    trees = (ast.parse(each.read_text(), each.name) for each in sorted(ENGINE.glob("*.py")))
    found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [each for each in found if any("Writing" in ast.dump(given) for given in each.args.args)]


def test_it_is_never_rung_before_the_commit() -> None:
    """Who hears it and looks at once would see nothing new, and would not be called again."""
    functions = within_transactions()
    assert len(functions) > 50
    rings = ("ring", "ring_in")
    assert [each.name for each in functions for at in ast.walk(each) if getattr(at, "attr", "") in rings] == []

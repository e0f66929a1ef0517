"""Shipped text that is not code: the blocks that prompts are made of, one per file."""

from __future__ import annotations

from importlib import resources


def prompt_blocks() -> dict[str, str]:
    """Every prompt block by its file's name."""
    folder = resources.files(__name__) / "prompts"
    return {
        each.name.removesuffix(".md"): each.read_text(encoding="utf-8")
        for each in folder.iterdir()
        if each.name.endswith(".md")
    }

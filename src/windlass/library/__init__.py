"""Shipped text that is not code, and what a repository adds to it: blocks of prompts, and agents."""

from __future__ import annotations

from importlib import resources


def prompt_blocks() -> dict[str, str]:
    """Every prompt block by its file's name."""
    folder = resources.files(__name__) / "prompts"
    return {
        path.name.removesuffix(".md"): path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if path.name.endswith(".md")
    }

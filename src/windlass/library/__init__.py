"""Shipped text that is not code, and the agents, prompts and workflows of a repository."""

from __future__ import annotations

from pathlib import Path


def prompt_blocks() -> dict[str, str]:
    """Every prompt block by its file's name."""
    return {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "prompts").glob("*.md")}

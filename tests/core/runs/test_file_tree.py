"""A repository's files in a few lines."""

from __future__ import annotations

from windlass.core.runs.file_tree import MOST, outline


def test_folders_come_first_and_files_after_them() -> None:
    """Each below its own."""
    assert outline(["README.md", "src/b.py", "src/a.py", "src/deep/x/y/z.py"]) == (
        "src/\n  deep/\n    x/ (1 file)\n  a.py\n  b.py\nREADME.md"
    )


def test_a_large_tree_is_shown_only_as_deep_as_fits() -> None:
    """With how many files the rest has."""
    text = outline([f"pkg{n // 50}/mod{n % 50}/f.py" for n in range(1000)] + ["top.txt"])

    assert text.splitlines()[:2] == ["pkg0/ (50 files)", "pkg1/ (50 files)"]
    assert text.endswith("top.txt")


def test_it_never_has_more_lines_than_it_may() -> None:
    """Not even for a folder with thousands of files, and what was not even listed is said."""
    text = outline([f"f{n:04}.txt" for n in range(5000)], cut=True)

    assert len(text.splitlines()) == MOST + 2
    assert text.splitlines()[-2:] == ["… and 4880 more", "… (there are more files than could be listed)"]


def test_a_name_can_play_no_tricks() -> None:
    """Neither newlines nor escapes nor endless names; and an empty repository is said to be so."""
    shown = outline(["a\nb\x1b[2J", "x" * 300])

    assert len(shown.splitlines()) == 2 and "\x1b" not in shown
    assert max(map(len, shown.splitlines())) < 100
    assert outline([]) == "(no files yet)"

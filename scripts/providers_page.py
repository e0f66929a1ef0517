"""Print docs/providers.md with its table made anew from the providers themselves."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from windlass.core.nouns.agent import Permissions
from windlass.core.runs.provider import DoneSign, Provider, StartRequest
from windlass.providers import load

PAGE = Path(__file__).parent.parent / "docs" / "providers.md"
BETWEEN = re.compile(r"(<!-- From here .*? -->\n).*(<!-- End\. -->\n)", re.DOTALL)
COLUMNS = ("program", "verified", "takes a model", "goes on in its session", "prints", "stopped by", "done by")
HEAD = f"| | {' | '.join(COLUMNS)} |"


def page() -> str:
    """The whole page as Markdown."""
    providers = list(load().all())
    tables = "\n".join((HEAD, "|---" * (len(COLUMNS) + 1) + "|", *map(_row, providers), "", *_permissions(providers)))
    return BETWEEN.sub(lambda found: f"{found.group(1)}\n{tables}\n{found.group(2)}", PAGE.read_text())


def _row(provider: Provider) -> str:
    verified = f"{provider.verified.version}, {provider.verified.on}" if provider.verified else "by our tests"
    names = ", ".join(f"`{aliase}`" for aliase in (provider.name, *provider.aliases))
    facts = (
        f"`{provider.program}`" if provider.program else "none",
        verified,
        "yes" if provider.models else "no",
        "yes" if provider.resumes else "no",
        "events" if provider.structured else "text",
        f"SIG{provider.gently}",
        "its signal" if provider.claim is DoneSign.SIGNAL else "its signal, or exit 0 and a commit",
    )
    return f"| {names} | {' | '.join(facts)} |"


def _permissions(providers: list[Provider]) -> list[str]:
    rows = [_allowed(provider, level) for provider in providers for level in Permissions]
    return ["| | | may, outside a sandbox | by these flags |", "|---|---|---|---|", *rows, ""]


def _allowed(provider: Provider, level: Permissions) -> str:
    start = StartRequest(prompt_file="", worktree="WORKTREE", number=1, session="", permissions=level, options={})
    flags = shlex.join(provider.permit(start))
    return f"| `{provider.name}` | {level} | {provider.may[level]} | {f'`{flags}`' if flags else 'none'} |"


if __name__ == "__main__":
    sys.stdout.write(page())

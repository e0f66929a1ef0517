"""`python -P -m windlass.model`: the program itself. What it is to do comes on standard input."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import warnings
from collections.abc import Sequence

from windlass.core.errors import NotFound
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.nouns.run import TroubleKind
from windlass.model.history import Session, folder
from windlass.model.report_lines import ReportLines


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("windlass.model", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", help="the session to begin")
    which.add_argument("--resume", help="the session to go on in")
    parser.add_argument("--permissions", type=Permissions, default=Permissions.EDIT)
    parser.add_argument("--tools", type=lambda text: [ToolKind(part) for part in text.split(",") if part], default=None)
    parser.add_argument("--folder", action="append", required=True)
    parser.add_argument("--system", help="a file with who the agent is")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--protocol", default="", help="what is spoken there")
    parser.add_argument("--key", default="", help="the variable with the key")
    parser.add_argument("--forget", action="append", default=[], help="a variable that no tool gets")
    parser.add_argument("--sandboxed", action="store_true")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    warnings.simplefilter("ignore")
    given = arguments(words)
    lines = ReportLines()
    session = Session(folder(os.environ, sandboxed=given.sandboxed), given.resume or given.session)
    try:
        before = session.load() if given.resume else b"[]"
    except NotFound as error:
        lines.error(TroubleKind.LOST, str(error))
        return 1
    lines.session(session.name, given.model)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    from windlass.model.run import until_the_end  # noqa: PLC0415 - the library takes seconds: the session is told before

    return asyncio.run(until_the_end(given, session, prompt, before))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

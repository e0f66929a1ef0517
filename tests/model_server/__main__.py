"""The scripted model as a command, to try a CLI by hand."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .script import load
from .server import ModelServer

FORMAT = """\
A script: {"NAME": [STEP, ...], ...}. A step may have
  text, think            what the model says and thinks
  shell                  a command that it runs
  write                  {"path": ..., "content": ...}: a file that it writes
  fault                  auth, rate, quota, billing, overloaded, context or server
  hang, drop             true: it says nothing more, or closes the connection
  midway, times          ... after the answer has begun; ... only so often
  delay                  seconds before it answers
  resets_in, retry_after seconds, told with a fault
  usage                  {"input": 100, "output": 20, "cached": 0}

The base URL for a scenario is URL/s/NAME (with /v1 for the Responses API); or give URL, and write scenario:NAME into
the prompt.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m model_server",
        description=__doc__,
        epilog=FORMAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--script", type=Path, required=True, help="a JSON file, see below")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; a free one if not given")
    parser.add_argument("--record", type=Path, help="append every request to this file, one a line")
    given = parser.parse_args()
    ending = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    with ModelServer(load(given.script), port=given.port, record=given.record) as models:
        sys.stdout.write(f"{models.url()}\n")
        sys.stdout.flush()
        signal.sigwait(ending)


if __name__ == "__main__":
    main()

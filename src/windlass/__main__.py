"""`python -m windlass`: the same as the command `windlass`."""

from windlass.cli.main import run

run()

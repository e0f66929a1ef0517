"""Play a script: `python -P …/script/__main__.py SCRIPT [NAME]`, run by path from any folder."""

import os
import sys

sys.path.insert(0, __file__.rsplit("/windlass/", 1)[0])

from windlass.providers.script.play import play

raise SystemExit(play(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else sys.argv[1], os.environ))

"""An agent played from a script: the demo, the test double, and the way to report a bug.

A script is a YAML file: a list of steps, played in every run of the agent; or one list per run, of which the last is
played in all later runs too:

    - write: {hello.txt: "Hello from {agent}.\\n"}

    runs:
      - - write: {hello.txt: Helo}
        - commit: Say hello
        - done: Said hello.
      - - expect: "hello.txt: expected Hello"
        - write: {hello.txt: Hello}
        - commit: Spell it right
        - done: Mended.

A step is one key with its value; where a step has several settings, the value is a mapping of them.

Work
    say: TEXT                   print a line; {agent} and {number} (of the run) are filled in
    write: {PATH: TEXT, …}      write files, with folders as needed; also {path: PATH, text: TEXT}; {agent}, {number}
    append: {PATH: TEXT, …}     the same, at the end of the files
    replace: {path, old, new}   exchange a text in a file; fails if neither the old nor the new one is there
    delete: PATH                remove a file, if it is there
    run: COMMAND                run by sh in the worktree; fails if it does, unless {command: …, may_fail: true}
    commit: MESSAGE             git add -A and git commit, if there is anything to commit
    merge: REF                  git fetch origin and git merge REF; conflicts are left for the next steps, or are
                                decided by {ref: REF, take: ours} (or theirs)
    sleep: SECONDS
    expect: TEXT                fails unless the prompt of this run contains the text

The end of a run
    done: TEXT                  signal that the work is done, and exit with 0
    ask: QUESTION               signal a question (or a list of them), and exit with 0
    error: TEXT                 signal an error, and exit with 1
    exit: CODE                  exit without a signal, as the end of the script does (with 0)
    crash                       be killed
    hang                        go on for ever without a word

Trouble
    signal: VALUE               write any value as the signal, and go on; {text: RAW} writes the text as it is;
                                {value or text, encoding: utf-8-sig | utf-16} in another encoding;
                                {kind: link | pipe | folder | huge} puts something there that is no signal
    ignore-term                 do not end when asked to
    children: COUNT             leave processes behind; {count, seconds: 60, session: true} in sessions of their own
    emit: FILE                  print a file as it is, such as recorded output of another provider; or a list of
                                lines; {file or lines, delay: SECONDS} with a pause after each line
    print: BYTES                print so many bytes; {bytes, line: 100} in lines of that length, 0 for one line

A step that fails signals an error with the script's file and line, and ends the run with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from windlass.core.runs.provider import Provider, StartRequest
from windlass.providers import script
from windlass.providers.script.parse import parse


def argv(start: StartRequest) -> tuple[str, ...]:
    """The player is run by its path, so that it works however Windlass was installed."""
    player = Path(script.__file__).with_name("__main__.py")
    return (sys.executable, "-P", str(player), start.files["script"], _name(start.options))


def check(options: Mapping[str, str]) -> None:
    """Raise BadInput with every problem of the script."""
    parse(options.get("script", ""), _name(options))


def _name(options: Mapping[str, str]) -> str:
    return options.get("script_name") or "script"


provider = Provider(
    name="scripted",
    summary="an agent played from a YAML script: free, offline, the same every time",
    argv=argv,
    check=check,
    options=("script",),
    files=("script",),
    resumes=True,
)

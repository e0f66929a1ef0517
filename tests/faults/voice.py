"""One of many voices, inside a run: it says so much to each of the others, and notes what it hears, until all is said.

    voice.py NAMES NOTES MESSAGES WAY SECONDS

NAMES is a file with everyone's names, which comes when all are there; WAY is command, socket, tools or file;
SECONDS is how long it waits for anything.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = float(sys.argv[5])
PAUSE = 0.05
AGAIN = (OSError, http.client.HTTPException)


def call(method: str, path: str, **body: Any) -> Any:
    """Ask the daemon until one answers: it may be down for a while."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            status, answer = _once(method, path, body)
        except AGAIN:
            status, answer = 503, b""
        if status < 400:
            return json.loads(answer)
        if status != 503 or time.monotonic() > until:
            raise SystemExit(f"{method} {path}: {status} {answer!r}")
        time.sleep(PAUSE)


def _once(method: str, path: str, body: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("windlass", timeout=PATIENCE)
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(PATIENCE)
        door.connect(os.environ["WINDLASS_HOME"] + "/daemon.sock")
        connection.sock = door
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if path == "/mcp":
            call = {"name": "channel_send", "arguments": {"message": body["body"], "to": body["to"]}}
            headers |= {"Windlass-Request": body["key"], "MCP-Protocol-Version": "2026-07-28"}
            headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "channel_send"}
            call["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "voice", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            body = {"jsonrpc": "2.0", "id": body["key"], "method": "tools/call", "params": call}
        connection.request(method, path, json.dumps(body) if method == "POST" else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        if path == "/mcp" and answer.status == 200:
            content = content.partition(b"data: ")[2] if content.startswith(b"event:") else content
            if b'"isError":true' in content.replace(b" ", b"") or b'"error"' in content:
                raise OSError(content.decode())
        return answer.status, content


def command(words: list[str], key: str) -> None:
    """Type it until it is taken: the daemon may be down for a while. Without a key it is typed once, and left."""
    until = time.monotonic() + PATIENCE
    keyed = ["--key", key] if key else []
    while (ended := subprocess.run(["windlass", *words, *keyed], capture_output=True, check=False)).returncode:
        if not key or time.monotonic() > until:
            raise SystemExit(f"{words}: {ended.stderr!r}")
        time.sleep(PAUSE)


def say(way: str, me: str, target: str, number: int) -> None:
    words = f"{me} says {number}"
    if way == "file":
        with Path(".windlass/chat.md").open("a") as file:
            file.write(f"[{me}-to-{target}]: {words}\n")
    elif way == "command":
        command(["send", words, "--to", target], f"{me}-{number}" if number % 2 else "")
    else:
        path = {"socket": "/messages", "tools": "/mcp"}[way]
        call("POST", path, to=[target], body=words, key=f"{me}-{number}")


def hear(notes: Path) -> int:
    """Note what is there, then acknowledge it; what was noted before the daemon died is only acknowledged."""
    known = {line.split()[0] for line in notes.read_text().splitlines()} if notes.exists() else set()
    new = 0
    for message in call("GET", "/inbox")["items"]:
        if message["id"] not in known:
            new += 1
            with notes.open("a") as file:
                file.write(f"{message['id']} {message['message']}\n")
        call("POST", f"/messages/{message['id']}/ack")
    return new


def main(names: Path, notes: Path, messages: int, way: str) -> None:
    me = os.environ["WINDLASS_AGENT"]
    while not names.exists():
        time.sleep(PAUSE)
    everyone = names.read_text().split()
    place, count = everyone.index(me), len(everyone)
    owed = sum(
        (other + 1 + number % (count - 1)) % count == place
        for other in range(count)
        if other != place
        for number in range(messages)
    )
    heard = 0
    for number in range(messages):
        say(way, me, everyone[(place + 1 + number % (count - 1)) % count], number)
        if number % 10 == 9:
            heard += hear(notes)
    until = time.monotonic() + PATIENCE
    while heard < owed and time.monotonic() < until:
        heard += hear(notes)
        time.sleep(4 * PAUSE)
    call("POST", "/agent/signal", status="done", result=f"heard {heard}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

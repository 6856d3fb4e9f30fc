"""Agent programs that misbehave, as scripts of a few lines; they speak the protocol up to the greeting."""

import sys
from pathlib import Path

_PROGRAM = """\
#!{python}
import json, os, signal, sys, time
def greet(line):
    told = json.loads(line)
    if told.get("type") == "control_request":
        answer = {{"hook_on_failure_supported": True, "commands": []}}
        response = {{"subtype": "success", "request_id": told["request_id"], "response": answer}}
        print(json.dumps({{"type": "control_response", "response": response}}), flush=True)
{before}
for line in sys.stdin:
    greet(line)
{after}
"""

IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
STAYS = "while True: time.sleep(1)"
NEVER_READS = "while True: time.sleep(1)"
GREETS = "greet(sys.stdin.readline())"
COMPLAINS = "print('out of luck', file=sys.stderr, flush=True); sys.exit(3)"


def write_agent(directory: Path, *, before: str = "pass", after: str = "pass") -> Path:
    """Write an agent program: what it does before it listens, and what after its input ended."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "agent.py"
    program.write_text(
        _PROGRAM.format(python=sys.executable, before=before, after=after), encoding="utf-8"
    )
    program.chmod(0o700)
    return program

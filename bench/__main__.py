"""`python -m bench [name …]`: runs the named benchmarks, all by default, and prints their tables.

`python -m bench aims` runs `first_text`, `flushes` and `streams`, and prints the aims' table.

`python -m bench warm` measures of `first_text` the warm turns alone, in two to five minutes; with `--engines`, on
SQLite beside PostgreSQL instead.

`python -m bench boxes --path CLI` puts the box of shell commands beside sandbox-runtime.

`python -m bench locomo --path FILE` needs data that are not kept here.
"""

import argparse
from functools import partial
from pathlib import Path

import anyio

from bench import (
    aims,
    boxes,
    doors,
    first_text,
    flushes,
    growth,
    locomo,
    many_conversations,
    node_turns,
    page,
    policy,
    session_resume,
    streams,
    two_nodes,
    warm_engines,
    warm_turns,
)
from bench.person import measure as person
from bench.report import describe_machine

BENCHMARKS = {
    "doors": doors.run,
    "first_text": first_text.run,
    "flushes": flushes.run,
    "growth": growth.run,
    "many_conversations": many_conversations.run,
    "node_turns": node_turns.run,
    "page": page.run,
    "person": person.run,
    "policy": policy.run,
    "session_resume": session_resume.run,
    "streams": streams.run,
    "two_nodes": two_nodes.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument(
        "names", nargs="*", choices=[*BENCHMARKS, "aims", "boxes", "locomo", "warm", []], default=[]
    )
    parser.add_argument("--rounds", type=int, default=30, help="samples of each kind")
    parser.add_argument(
        "--path", type=Path, help="LoCoMo's file, locomo10.json; or cli.js of sandbox-runtime"
    )
    parser.add_argument(
        "--items", type=int, default=first_text.ITEMS, help="of the filled memory of first_text"
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=URL", help="another server to ask"
    )
    parser.add_argument(
        "--engines", action="store_true", help="have warm compare SQLite and PostgreSQL"
    )
    options = parser.parse_args()
    if "locomo" in options.names and options.path is None:
        parser.error("locomo needs --path")
    print(describe_machine(), end="\n\n")
    for name in options.names or BENCHMARKS:
        if name == "locomo":
            anyio.run(locomo.run, options.path)
        elif name == "boxes":
            anyio.run(boxes.run, options.rounds, options.path)
        elif name == "warm" and options.engines:
            anyio.run(warm_engines.run, options.rounds)
        elif name == "warm":
            anyio.run(warm_turns.run, options.rounds, options.items)
        elif name in {"aims", "first_text"}:
            measure = aims.run if name == "aims" else first_text.run
            anyio.run(partial(measure, peers=options.peer, items=options.items), options.rounds)
        else:
            anyio.run(BENCHMARKS[name], options.rounds)


main()

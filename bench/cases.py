"""`python -m bench.cases`: how well and how quickly cases are found, and whether look-alikes are kept apart.

    --found 5000          is the right root cause found among so many
    --related 5000        are look-alikes kept apart, so many sent through the tool (some minutes)
    --trusted 5000        what trust does to the order, among so many
    --sizes 5000,100000   times of the four tools among so many
    --examples PATH       what went wrong, as JSON, to look into

The cases are made up, seeded (`cases_incidents.py`). Each prints tables and goes into `results/cases.json`; what one would take instead stands beside it, over the
same cases in the same run.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from bench import cases_finding, cases_relating, cases_speed, cases_trust
from bench.report import RESULTS, describe_machine, save


async def run(options: argparse.Namespace) -> None:
    figures: dict[str, Any] = {}
    examples: list[Mapping[str, Any]] = []
    if options.found:
        figures["found"] = await cases_finding.run(options.found, examples)
    if options.related:
        figures["related"] = await cases_relating.run(options.related, examples)
    if options.trusted:
        figures["trusted"] = await cases_trust.run(options.trusted)
    if options.sizes:
        figures["speed"] = await cases_speed.run(options.sizes)
    if options.examples:
        told = json.dumps(examples, ensure_ascii=False, indent=1)
        await anyio.Path(options.examples).write_text(told, encoding="utf-8")
    known = RESULTS / "cases.json"
    earlier = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    save("cases", {**earlier, **figures, "machine": describe_machine()})


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cases")
    parser.add_argument("--found", type=int, metavar="5000", default=0)
    parser.add_argument("--related", type=int, metavar="5000", default=0)
    parser.add_argument("--trusted", type=int, metavar="5000", default=0)
    parser.add_argument("--sizes", type=_sizes, metavar="5000,100000", default=[])
    parser.add_argument("--examples", type=Path, metavar="PATH")
    options = parser.parse_args()
    if not (options.found or options.related or options.trusted or options.sizes):
        parser.error("name something to measure")
    print(describe_machine(), end="\n\n")
    anyio.run(run, options)


if __name__ == "__main__":
    main()

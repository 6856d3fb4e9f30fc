"""`python -m bench.recall`: how well and how quickly memory is found.

    --madial DIR   Recall@k on MADial-Bench, Chinese and English
    --sizes 1000,10000   times among so many made-up episodes

Each prints tables and all go into `results/recall.json`. What one would take instead stands beside it, over
the same data in the same run. Data come by path, their hash is printed.
"""

import argparse
import json
from pathlib import Path

import anyio

from bench import recall_madial, recall_speed
from bench.report import RESULTS, describe_machine, save


async def run(options: argparse.Namespace) -> None:
    figures = {}
    if options.madial:
        figures["madial"] = await recall_madial.run(options.madial)
    if options.sizes:
        figures["speed"] = await recall_speed.run(options.sizes)
    known = RESULTS / "recall.json"
    earlier = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    save("recall", {**earlier, **figures, "machine": describe_machine()})


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall")
    parser.add_argument("--madial", type=Path, metavar="DIR")
    parser.add_argument("--sizes", type=_sizes, metavar="1000,10000", default=[])
    options = parser.parse_args()
    if not (options.madial or options.sizes):
        parser.error("name something to measure")
    print(describe_machine(), end="\n\n")
    anyio.run(run, options)


if __name__ == "__main__":
    main()

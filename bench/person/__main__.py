"""`python -m bench.person [DIRECTORY …]`: measure the two sets or others, also with the vectors of an embedder."""

import argparse
from pathlib import Path

import anyio

from bench.person.corpus import SETS
from bench.person.measure import measure
from bench.person.vectors import add_arguments, embedder_of


async def _run(options: argparse.Namespace) -> None:
    for directory in options.directories or SETS:
        await measure(directory, with_long=not options.short, embedder=embedder_of(options))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.person")
    parser.add_argument("directories", type=Path, nargs="*", metavar="DIRECTORY")
    parser.add_argument("--short", action="store_true", help="without long messages")
    add_arguments(parser)
    anyio.run(_run, parser.parse_args())


main()

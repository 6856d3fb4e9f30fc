"""`python -m bench.person DIRECTORY`: measure a set elsewhere, and with vectors of an embedder."""

import argparse
from functools import partial
from pathlib import Path

import anyio

from bench.person.corpus import DEFAULT
from bench.person.measure import measure
from bench.person.vectors import add_arguments


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.person")
    parser.add_argument("directory", type=Path, nargs="?", default=DEFAULT)
    parser.add_argument("--short", action="store_true", help="without long messages")
    embedder_of = add_arguments(parser)
    options = parser.parse_args()
    work = partial(measure, options.directory, with_long=not options.short)
    anyio.run(partial(work, embedder_of=partial(embedder_of, options)))


main()

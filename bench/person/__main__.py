"""`python -m bench.person DIRECTORY`: measure a set elsewhere."""

import argparse
from functools import partial
from pathlib import Path

import anyio

from bench.person.corpus import DEFAULT
from bench.person.measure import measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.person")
    parser.add_argument("directory", type=Path, nargs="?", default=DEFAULT)
    parser.add_argument("--short", action="store_true", help="without long messages")
    options = parser.parse_args()
    anyio.run(partial(measure, options.directory, with_long=not options.short))


main()

"""`python -m bench [name …]`: runs the named benchmarks, all by default, and prints their tables."""

import argparse

import anyio

from bench import first_text, flushes, growth, many_conversations, policy, streams
from bench.report import describe_machine

BENCHMARKS = {
    "first_text": first_text.run,
    "flushes": flushes.run,
    "growth": growth.run,
    "many_conversations": many_conversations.run,
    "policy": policy.run,
    "streams": streams.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--rounds", type=int, default=30, help="samples of each kind")
    options = parser.parse_args()
    print(describe_machine(), end="\n\n")
    for name in options.names or BENCHMARKS:
        anyio.run(BENCHMARKS[name], options.rounds)


main()

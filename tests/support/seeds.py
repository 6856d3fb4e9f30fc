"""Seeds of the long tests: drawn anew for each run, printed, and taken from CANDOR_TEST_SEED to run one again."""

import os
import secrets
import sys


def drawn_seed(name: str) -> int:
    """Draw a seed and print it where pytest does not capture it."""
    given = os.environ.get("CANDOR_TEST_SEED")
    chosen = int(given) if given else secrets.randbits(32)
    print(f"\n{name}: CANDOR_TEST_SEED={chosen}", file=sys.__stderr__, flush=True)
    return chosen

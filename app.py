"""The entry of a checkout: `python app.py` is the command `candor`, with its files
beside this one.
"""

from collections.abc import Sequence
from pathlib import Path

from gateway import cli

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command and return the exit code."""
    return cli.main(arguments, home=HERE)


if __name__ == "__main__":
    cli.run(HERE)

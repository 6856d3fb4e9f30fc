"""The command `db`: look at the databases, bring them up to date, copy them to the other engine."""

import argparse
from collections.abc import Sequence
from typing import TextIO

from gateway.database.check import check_blocking, migrate_blocking
from gateway.database.transfer import copy_blocking
from gateway.errors import StartError
from gateway.settings import Settings
from gateway.storage import where_to_look
from memory.errors import StoreConflict, StoreUnavailable
from policies.explain import printable


def run_db_command(arguments: Sequence[str], settings: Settings, program: str, out: TextIO) -> int:
    """Run `db`; return the exit code: 1 if a check found something, 2 for wrong arguments. Blocks.

    Raise `StartError` if it cannot be done.
    """
    try:
        given = _parser(program).parse_args(arguments)
    except SystemExit as exc:  # help or a usage error was printed
        return int(exc.code or 0)

    def say(line: str) -> None:
        out.write(f"{printable(line)}\n")

    try:
        if given.does == "check":
            return 0 if check_blocking(settings, say) else 1
        if given.does == "migrate":
            migrate_blocking(settings, say)
        else:
            copy_blocking(given.to, settings, say)
    except (StoreUnavailable, StoreConflict) as exc:
        raise StartError(f"{exc} {where_to_look(settings)}") from exc
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{program} db")
    commands = parser.add_subparsers(dest="does", required=True, title="commands")
    commands.add_parser("check", help="say the version and the rows of the configured databases")
    commands.add_parser("migrate", help="bring the configured databases to this program's version")
    told = "copy conversations and memory between the files and PostgreSQL, while no server runs"
    copy = commands.add_parser("copy", help=told, description=told)
    copy.add_argument("--to", required=True, choices=("postgresql", "files"))
    commands.metavar = f"{{{','.join(commands.choices)}}}"  # which an error about none names
    return parser

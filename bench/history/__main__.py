"""`python -m bench.history FILE`: prints each violation with its records; ends with 1 if there is one."""

import argparse
import json
import sys
from pathlib import Path

from bench.history.checks import judge
from bench.history.records import HistoryError, read_history

MOST_SHOWN = 12
"""Records of one violation."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument(
        "file", type=Path, help="JSON lines; bench/history/README.md describes them"
    )
    path = parser.parse_args().file
    try:
        with path.open(encoding="utf-8") as lines:
            history = read_history(lines)
    except (OSError, UnicodeDecodeError, HistoryError) as exc:
        print(exc, file=sys.stderr)
        return 2
    violations = judge(history)
    for violation in violations:
        print(f"{violation.code}: {violation.message}")
        for record in violation.records[:MOST_SHOWN]:
            print(f"  line {record.line}: {json.dumps(record.fields, ensure_ascii=False)}")
    print(f"{len(history.records)} records, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

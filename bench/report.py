"""Tables for people, JSON for comparing, and what machine it was."""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

RESULTS = Path(__file__).with_name("results")
_LOAD = os.getloadavg()[0]
"""When the run began: what else the machine did."""


def describe_machine() -> str:
    cores, memory = os.cpu_count(), psutil.virtual_memory().total / 2**30
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, claude-agent-sdk {version('claude-agent-sdk')}, "
        f"load {_LOAD:.1f}"
    )


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"{title}\n")
    for row in [header, ["---"] * len(header), *rows]:
        print(f"| {' | '.join(row)} |")
    print()


def save(name: str, figures: Mapping[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": describe_machine(), **figures}, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")

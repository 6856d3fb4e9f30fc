"""How well the policy tells the known cases apart, next to naive ones, and how quick it and the masking are."""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bench.held_out_secrets import ordinary_cases, secret_cases
from bench.log_lines import library_lines, ordinary_lines
from bench.naive_policies import NAIVE
from bench.report import median, percentile, save, show
from bench.stand_in import ROOT, clean_environ
from policies.check import Checker
from policies.rules import shipped_rules
from policies.secrets import mask_secrets
from policies.verdict import Allow
from tests.support.policy_cases import ReadyCase, ready_cases
from tests.unit.policies.fabricated import PROVIDERS, fake
from tests.unit.policies.fabricated_places import KEYED
from tests.unit.policies.test_secret_growth import UNITS

PROCESS_LINES = 20_000
LIBRARY_LINES = 50_000
HELD_OUT_SEEDS = range(10)
LOG_VALUE_CHARS = 5_000
"""Of a log value so much is masked on the event loop."""


@dataclass(frozen=True)
class Cases:
    """The known cases, each with its workspace."""

    deny: Sequence[ReadyCase]
    allow: Sequence[ReadyCase]

    def of(self, fits: Callable[[ReadyCase], bool]) -> "Cases":
        return Cases([c for c in self.deny if fits(c)], [c for c in self.allow if fits(c)])


def _is_command(case: ReadyCase) -> bool:
    posix = case.told.get("platform", "posix") == "posix"
    return posix and case.told["tool"] == "Bash" and isinstance(_command(case), str)


def _command(case: ReadyCase) -> Any:
    given = case.told["input"]
    return given.get("command") if isinstance(given, dict) else None


async def run(rounds: int) -> None:
    await anyio.to_thread.run_sync(_run_blocking, rounds)


def _run_blocking(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        cases = Cases(
            ready_cases("policy-deny.jsonl", directory / "deny"),
            ready_cases("policy-allow.jsonl", directory / "allow"),
        )
        checker = Checker(shipped_rules(), directory)
        figures = {
            "rates": _measure_rates(checker, cases),
            "naive": _measure_naive(checker, cases.of(_is_command)),
            "speed": _measure_speed(checker, cases, rounds),
            "process": _measure_process(cases, directory),
            "secrets": _measure_secrets(rounds),
        }
    save("policy", figures)


def _is_allowed(checker: Checker, case: ReadyCase) -> bool:
    return isinstance(checker.judge(checker.read(case.told)), Allow)


def _measure_rates(checker: Checker, cases: Cases) -> dict[str, Any]:
    """Count the wrong verdicts by class."""
    rates: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_RATES, 0))
    for case in cases.deny:
        rates[case.cls]["deny"] += 1
        rates[case.cls]["wrongly allowed"] += _is_allowed(checker, case)
    for case in cases.allow:
        rates[case.cls]["allow"] += 1
        rates[case.cls]["wrongly denied"] += not _is_allowed(checker, case)
    total = {key: sum(rate[key] for rate in rates.values()) for key in _RATES}
    rows = [[name, *(str(one[key]) for key in _RATES)] for name, one in sorted(rates.items())]
    rows.append(["all", *(str(total[key]) for key in _RATES)])
    show("Cases by class, all tools and platforms", ["class", *_RATES], rows)
    return {"by class": rates, "all": total}


_RATES = ("deny", "wrongly allowed", "allow", "wrongly denied")


def _measure_naive(checker: Checker, cases: Cases) -> dict[str, Any]:
    """Count the wrong verdicts of each policy on the shell commands, and in which classes they are."""
    policies: dict[str, Callable[[ReadyCase], bool]] = {
        name: lambda case, policy=policy: policy(_command(case), Path(case.told["workspace"]))
        for name, policy in NAIVE.items()
    }
    policies["Candor"] = lambda case: _is_allowed(checker, case)
    figures: dict[str, Any] = {}
    for name, allows in policies.items():
        missed = Counter(case.cls for case in cases.deny if allows(case))
        refused = Counter(case.cls for case in cases.allow if not allows(case))
        figures[name] = {
            "wrongly allowed": missed.total(),
            "of": len(cases.deny),
            "wrongly denied": refused.total(),
            "of honest": len(cases.allow),
            "classes let through": dict(missed.most_common()),
        }
    rows = [
        [
            name,
            f"{one['wrongly allowed']} of {one['of']}",
            f"{one['wrongly denied']} of {one['of honest']}",
            ", ".join(list(one["classes let through"])[:4]),
        ]
        for name, one in figures.items()
    ]
    show(
        "Shell commands (POSIX), next to naive policies",
        ["policy", "wrongly allowed", "wrongly denied", "most of them"],
        rows,
    )
    return figures


def _measure_speed(checker: Checker, cases: Cases, rounds: int) -> dict[str, Any]:
    """Time each verdict by tool."""
    requests = [checker.read(case.told) for case in (*cases.deny, *cases.allow)]
    times: dict[str, list[float]] = defaultdict(list)
    known = {*shipped_rules().tools}
    for _ in range(rounds):
        for request in requests:
            begin = time.perf_counter()
            verdict = checker.judge(request)
            taken = time.perf_counter() - begin
            times["all"].append(taken)
            name = request.call.name if request.call.name in known else "any other name"
            name = f"{name} (Windows)" if request.platform == "windows" else name
            times[name].append(taken)
            if name.startswith("Bash") and isinstance(verdict, Allow):
                times[f"{name}, the allowed ones"].append(taken)
    figures = {
        name: {
            "verdicts": len(several),
            "per second": round(len(several) / sum(several)),
            "median µs": round(median(several) * 1e6, 1),
            "p99 µs": round(percentile(several, 0.99) * 1e6, 1),
        }
        for name, several in sorted(times.items())
    }
    header = ["tool", "verdicts", "per second", "median µs", "p99 µs"]
    rows = [[name, *(str(one[key]) for key in header[1:])] for name, one in figures.items()]
    show("Verdicts in one process", header, rows)
    return figures


def _measure_process(cases: Cases, directory: Path) -> dict[str, Any]:
    """Time `policy check` as another program would use it, its start included."""
    lines = [case.line for case in (*cases.deny, *cases.allow)]
    sent = [lines[i % len(lines)] for i in range(PROCESS_LINES)]
    environ = clean_environ(CANDOR_WORKSPACE=str(directory))

    def take(count: int) -> float:
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "app.py", "policy", "check"],
            cwd=ROOT,
            env=environ,
            input="\n".join(sent[:count]),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        assert len([json.loads(line) for line in done.stdout.splitlines()]) == count
        return time.perf_counter() - begin

    one = median([take(1) for _ in range(5)])
    all_of_them = take(PROCESS_LINES)
    figures = {
        "start and one verdict ms": round(one * 1e3),
        "lines": PROCESS_LINES,
        "lines per second": round(PROCESS_LINES / all_of_them),
    }
    show(
        "`policy check` as a process", list(figures), [[str(figure) for figure in figures.values()]]
    )
    return figures


def _measure_secrets(rounds: int) -> dict[str, Any]:
    """Count fabricated secrets found and ordinary lines harmed, and time the masking of both."""
    secrets = [
        (f"the value is {secret} here", secret)
        for make in PROVIDERS.values()
        for secret in [make()]
    ]
    secrets += [(line.format(secret), secret) for line in KEYED.values() for secret in [fake(24)]]
    missed = [line for line, secret in secrets if _is_shown(secret, mask_secrets(line))]
    ordinary, library = ordinary_lines(), library_lines(LIBRARY_LINES)
    harmed = {
        name: [line for line in lines if mask_secrets(line) != line]
        for name, lines in (("log", ordinary), ("library", library))
    }
    figures: dict[str, Any] = {
        **_measure_held_out(),
        **_measure_hostile(),
        "secrets found (tuned set)": f"{len(secrets) - len(missed)} of {len(secrets)}",
        "log lines harmed": f"{len(harmed['log'])} of {len(ordinary)}",
        "library lines harmed": f"{len(harmed['library'])} of {len(library)}",
        "log lines per second": _rate(ordinary, rounds),
        "lines with secrets per second": _rate([line for line, _ in secrets], rounds),
    }
    show("Masking of secrets", list(figures), [[str(figure) for figure in figures.values()]])
    for name, lines in (("missed", missed), *harmed.items()):
        for line in lines:
            print(f"  {name}: {line.strip()[:140]}")
    return figures


def _measure_held_out() -> dict[str, str]:
    """Count misses and false masks on cases that the code was not tuned on."""
    secrets = [case for seed in HELD_OUT_SEEDS for case in secret_cases(seed)]
    ordinary = [case for seed in HELD_OUT_SEEDS for case in ordinary_cases(seed)]
    missed = sum(case.is_missed(mask_secrets(case.text)) for case in secrets)
    harmed = sum(mask_secrets(case.text) != case.text for case in ordinary)
    return {
        "missed (held-out set)": f"{missed} of {len(secrets)}",
        "harmed (held-out set)": f"{harmed} of {len(ordinary)}",
    }


def _measure_hostile() -> dict[str, str]:
    """Time the masking of texts made to be slow, and of one long text while a loop ticks beside it."""
    begin = time.process_time()
    slowest = ""
    worst = 0.0
    for unit in UNITS:
        began = time.process_time()
        mask_secrets((unit * LOG_VALUE_CHARS)[:LOG_VALUE_CHARS])
        if (taken := time.process_time() - began) > worst:
            worst, slowest = taken, unit
    text = "".join(f"{unit} " * 40 + "\n" for unit in UNITS) * 100
    return {
        "hostile text all shapes ms": f"{(time.process_time() - begin) * 1e3:.0f}",
        "hostile log value ms": f"{worst * 1e3:.0f} for {slowest!r}",
        "longest loop wait ms (1 MB)": f"{anyio.run(_longest_wait_s, text[:1_000_000]) * 1e3:.0f}",
    }


async def _longest_wait_s(text: str) -> float:
    """Return how long the event loop had to wait at most while a thread masked the text."""
    longest, is_done = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not is_done:
            began = time.perf_counter()
            await anyio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began - 0.001)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await anyio.to_thread.run_sync(mask_secrets, text)
        is_done = True
    return longest


def _is_shown(secret: str, text: str) -> bool:
    """Return whether the end of a secret is still there; what comes before may be an address."""
    return secret[-min(16, len(secret) // 2) :] in text


def _rate(lines: Sequence[str], rounds: int) -> int:
    begin = time.perf_counter()
    for _ in range(rounds):
        for line in lines:
            mask_secrets(line)
    return round(rounds * len(lines) / (time.perf_counter() - begin))

"""What every test has: a clean environment, no way out but loopback, and a loop that is watched."""

import gc
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.quick_databases import be_as_shipped, be_quick

HERE = Path(__file__).parent
_OURS = ("CANDOR_", "ANTHROPIC_", "CLAUDE_")
_KEPT = {f"CANDOR_TEST_{name}" for name in ("BROWSER", "NODES", "NO_SKIPS", "NPM", "SEED")}
_REAL_CONNECT = socket.socket.connect
_FIRST = ("browser", "fault", "e2e", "differential", "service")
"""Directories of few, long files, in this order: begun last, one would keep a worker alone at the end."""
_TOGETHER = "tests/browser/"
"""One worker runs all of these, with one browser and one server."""

# how long an example takes says how busy the machine is, not whether the code is right
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# the same examples in each run: `make soak` looks for others
settings.register_profile(
    "ordinary", settings.get_profile("unhurried"), max_examples=25, derandomize=True
)
settings.register_profile("soak", settings.get_profile("unhurried"), max_examples=500)
settings.load_profile("ordinary")


def pytest_configure(config: pytest.Config) -> None:
    """Take away what would change behaviour or reach a real model, before anything is imported."""
    del config
    gc.disable()  # until all is collected: what is imported lasts
    for name in [
        variable for variable in os.environ if variable.startswith(_OURS) and variable not in _KEPT
    ]:
        del os.environ[name]
    socket.socket.connect = _connect_to_loopback  # type: ignore[method-assign,assignment]
    be_quick()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a job in the background inherits it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign each worker one file after another; a folder whose tests share a server counts as one."""
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = _scope_of  # noqa: SLF001  the scheduler's way to be told
    return scheduler


def _scope_of(nodeid: str) -> str:
    return _TOGETHER if nodeid.startswith(_TOGETHER) else nodeid.partition("::")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Fail where nothing may be skipped, and say so."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and os.environ.get("CANDOR_TEST_NO_SKIPS"):
        terminalreporter.section("skipped tests count as failures here", red=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; within a directory all stay as they were."""
    items.sort(key=_place)


def pytest_collection_finish() -> None:
    """Keep all modules and tests out of the collector's sight: each full collection goes through them."""
    gc.freeze()
    gc.enable()


def _place(item: pytest.Item) -> int:
    directory = item.path.relative_to(HERE).parts[0]
    return _FIRST.index(directory) if directory in _FIRST else len(_FIRST)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turn a run with skipped tests into a failed one, where that is asked for."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if exitstatus == 0 and skipped and os.environ.get("CANDOR_TEST_NO_SKIPS"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _connect_to_loopback(self: socket.socket, address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else ""
    if host and host not in {"127.0.0.1", "::1", "localhost"}:
        raise AssertionError(f"a test tried to reach {host}")
    _REAL_CONNECT(self, address)


@pytest.fixture(autouse=True)
def _blocking_calls_fail(request: pytest.FixtureRequest) -> Iterator[BlockBuster | None]:
    """Fail an asynchronous test whose event loop runs into a blocking call of ours."""
    if request.node.get_closest_marker("asyncio") is None:
        yield None
        return
    with blockbuster_ctx(scanned_modules=["gateway", "memory", "policies"]) as guard:
        yield guard


@pytest.fixture
def _as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open databases as the program does."""
    be_as_shipped(monkeypatch)

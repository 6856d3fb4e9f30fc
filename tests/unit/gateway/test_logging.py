"""The server's own log, and what it does with records that repeat."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog

from gateway.observability.logging import RepeatLimit, configure_logging

SECRET = "s3cret"


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(row) for row in self.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


def configure(stream: Stream, *, as_json: bool = True) -> Stream:
    configure_logging(json=as_json, mask=lambda text: text.replace(SECRET, "***"), stream=stream)
    return stream


def test_both_sorts_of_loggers_come_out_alike() -> None:
    stream = configure(Stream())
    ids = {"request_id": "req_1", "conversation_id": "cnv_1", "turn_id": "trn_1"}
    with structlog.contextvars.bound_contextvars(**ids):
        logging.getLogger("ours").warning("disk_full", extra={"lines": 3})
        structlog.get_logger("ours").warning("disk_full", lines=3)
    one, two = stream.records()
    assert one.pop("ts").endswith("Z")
    assert two.pop("ts").endswith("Z")
    told = {"level": "warning", "logger": "ours", "event": "disk_full", "lines": 3}
    assert one == two == told | ids


def test_secrets_are_masked_wherever_they_stand() -> None:
    stream = configure(Stream())
    try:
        int(SECRET)
    except ValueError:
        logging.getLogger("a").exception("failed %s", SECRET, extra={"deep": {"x": [SECRET]}})
        structlog.get_logger("a").exception(f"failed {SECRET}", password="hunter2", value=[SECRET])
    text = stream.getvalue()
    assert SECRET not in text
    assert "hunter2" not in text
    assert text.count("with base 10: '***'") == 2


def test_any_value_can_be_logged() -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    loop: dict[str, Any] = {}
    loop["self"] = loop
    odd = {"o": Silent(), "nan": float("nan"), "s": "\ud800", "b": b"\xff", "loop": loop}
    for as_json in (True, False):
        stream = configure(Stream(), as_json=as_json)
        logging.getLogger("a").info("odd", extra=odd)
        assert stream.getvalue().count("\n") == 1
        stream.getvalue().encode()


def test_columns_are_coloured_on_a_terminal_alone() -> None:
    for terminal in (True, False):
        stream = configure(Stream(terminal=terminal), as_json=False)
        logging.getLogger("a").info("hello", extra={"n": 1})
        assert ("\x1b[" in stream.getvalue()) is terminal
        assert "hello" in stream.getvalue()


def test_what_is_logged_can_neither_act_on_the_terminal_nor_forge_a_row() -> None:
    stream = configure(Stream(), as_json=False)
    logging.getLogger("a").info("x\x1b[2J\nforged", extra={"v": "\r\x9b31m\nforged"})
    assert len(stream.getvalue().splitlines()) == 1
    assert all(char.isprintable() or char == "\n" for char in stream.getvalue())


def test_loggers_with_handlers_of_their_own_are_taken_over() -> None:
    logger = logging.getLogger("uvicorn.error")
    own = io.StringIO()
    logger.addHandler(logging.StreamHandler(own))
    logger.propagate = False
    stream = configure(Stream())
    logger.info("started", extra={"color_message": "started in colours"})
    (record,) = stream.records()
    assert "color_message" not in record
    assert record["event"] == "started"
    assert own.getvalue() == ""


def test_configuring_again_replaces_ours_and_leaves_other_handlers() -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    first, second = configure(Stream()), configure(Stream())
    logging.getLogger("a").info("once")
    assert first.getvalue() == ""
    assert len(second.records()) == 1
    assert other in logging.getLogger().handlers


def test_the_level_holds_and_talkative_libraries_are_quiet() -> None:
    stream = configure(Stream())
    logging.getLogger("a").debug("no")
    structlog.get_logger("a").debug("no")
    logging.getLogger("httpx").info("no")
    logging.getLogger("httpx").warning("yes")
    assert [record["event"] for record in stream.records()] == ["yes"]


def test_the_log_goes_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logging(json=True)
    logging.getLogger("a").info("key sk-ant-api03-abcdefghij0123456789")
    assert stream.records()[0]["event"] == "key sk-a…[masked]"


async def test_turns_side_by_side_keep_their_own_ids() -> None:
    stream = configure(Stream())
    both = anyio.Event()

    async def run(turn_id: str) -> None:
        with structlog.contextvars.bound_contextvars(turn_id=turn_id):
            if turn_id == "trn_2":
                both.set()
            await both.wait()
            await anyio.lowlevel.checkpoint()
            logging.getLogger("a").info(turn_id)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "trn_1")
        tasks.start_soon(run, "trn_2")
    assert all(record["event"] == record["turn_id"] for record in stream.records())
    assert len(stream.records()) == 2


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(event: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("ours", level, "f.py", 1, event, (), None)


def test_a_burst_passes_and_then_one_now_and_then_that_counts_the_rest() -> None:
    clock = Clock()
    limit = RepeatLimit(clock)
    passed = [limit.filter(record("accept_failed")) for _ in range(1000)]
    assert (sum(passed), passed[:20]) == (20, [True] * 20)
    clock.now += 2
    later = record("accept_failed")
    assert limit.filter(later)
    assert later.__dict__["left_out"] == 980
    assert not limit.filter(record("accept_failed"))
    assert limit.filter(record("accept_failed", logging.WARNING)), "this is another one"
    assert limit.filter(record("turn_failed"))


def test_the_log_is_limited_for_both_sorts_of_loggers() -> None:
    stream = configure(Stream())
    for _ in range(50):
        logging.getLogger("ours").warning("disk_full")
        structlog.get_logger("theirs").warning("disk_full")
    assert [row["logger"] for row in stream.records()] == ["ours", "theirs"] * 20

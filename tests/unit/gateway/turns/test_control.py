import anyio
import pytest

from gateway.turns.control import TurnClock, TurnControl


async def test_the_first_reason_to_stop_stands() -> None:
    control = TurnControl()
    assert not control.is_stopping
    control.stop("timeout")
    control.stop("user_interrupt", "left")
    assert (control.reason, control.cause, control.is_stopping) == ("timeout", None, True)
    with anyio.fail_after(30):
        await control.wait_stop()


class FakeTime:
    """Loop time that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("gateway.turns.control.anyio.current_time", lambda: self.now)


def test_pauses_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime(monkeypatch)
    clock = TurnClock(30)
    clock.pause()
    clock.pause()
    clock.go_on()
    time.now += 1000
    assert clock.left_s == 30
    clock.go_on()
    time.now += 1
    assert clock.left_s == 29


async def test_a_pause_that_begins_while_somebody_waits_holds_the_end_off() -> None:
    clock = TurnClock(0.05)
    over = anyio.Event()

    async def wait() -> None:
        await clock.wait_over()
        over.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            clock.pause()
            with anyio.move_on_after(0.06):
                await over.wait()
            assert not over.is_set()
            clock.go_on()
            await over.wait()

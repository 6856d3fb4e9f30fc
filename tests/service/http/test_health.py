"""Alive, ready, measured."""

from pathlib import Path

import anyio
import anyio.lowlevel

from gateway.http.context import HttpLimits
from gateway.version import VERSION
from tests.service.http.stage import staged


async def fine() -> str | None:
    await anyio.lowlevel.checkpoint()
    return None


async def at_fault() -> str | None:
    await anyio.lowlevel.checkpoint()
    return "There is no agent binary."


async def silent() -> str | None:
    await anyio.sleep_forever()
    return None


async def broken() -> str | None:
    await anyio.lowlevel.checkpoint()
    raise RuntimeError("secret of /etc")


async def test_a_server_is_alive_whatever_its_parts_say(tmp_path: Path) -> None:
    async with staged(tmp_path, pings={"agent": at_fault}) as stage:
        answer = await stage.client().get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
        assert (await stage.client().head("/healthz")).status_code == 200


async def test_a_server_is_ready_when_each_part_is(tmp_path: Path) -> None:
    async with staged(tmp_path, pings={"agent": fine, "database": fine}) as stage:
        answer = await stage.client().get("/readyz")
        assert answer.status_code == 200
        body = answer.json()
        assert body.pop("version") == VERSION
        assert body == {
            "ready": True,
            "demo": True,
            "model": "candor-demo",
            "parts": {"agent": {"ok": True}, "database": {"ok": True}},
        }


async def test_the_part_at_fault_is_named_and_the_others_are_asked_all_the_same(
    tmp_path: Path,
) -> None:
    pings = {"agent": at_fault, "slow": silent, "broken": broken, "database": fine}
    quick = HttpLimits(ping_deadline_s=0.05)
    async with staged(tmp_path, pings=pings, limits=quick) as stage:
        answer = await stage.client().get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["ready"] is False
        parts = answer.json()["parts"]
        assert list(parts) == list(pings)
        assert parts["agent"] == {"ok": False, "message": "There is no agent binary."}
        assert parts["slow"]["ok"] is False
        assert "secret" not in parts["broken"]["message"]
        assert parts["database"] == {"ok": True}


async def test_a_part_that_turns_can_do_without_is_told_and_keeps_nobody_from_serving(
    tmp_path: Path,
) -> None:
    async def gone() -> dict[str, str]:
        await anyio.lowlevel.checkpoint()
        return {"state": "unavailable", "detail": "It is damaged."}

    async def tells() -> dict[str, str]:
        await anyio.lowlevel.checkpoint()
        return {"kind": "off", "message": "No kernel sandbox."}

    async with staged(tmp_path, pings={"memory": gone, "sandbox": tells}) as stage:
        answer = await stage.client().get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (200, True)
        assert answer.json()["parts"] == {
            "memory": {"ok": False, "state": "unavailable", "detail": "It is damaged."},
            "sandbox": {"ok": True, "kind": "off", "message": "No kernel sandbox."},
        }


async def test_a_server_that_goes_down_is_not_ready(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.chat.intake.shut_down(grace_s=0)
        assert (await stage.client().get("/readyz")).status_code == 503
        assert (await stage.client().get("/healthz")).status_code == 200


async def test_metrics_are_given_as_text(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert "candor_sse_readers 0.0" in answer.text

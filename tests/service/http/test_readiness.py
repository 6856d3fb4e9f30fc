"""What probes and proxies ask, who have no token."""

from pathlib import Path

import pytest

from gateway.http import readiness
from tests.service.http.stage import staged


class Part:
    def __init__(self) -> None:
        self.asked = 0
        self.answer: str | None = None

    async def ping(self) -> str | None:
        self.asked += 1
        return self.answer


async def test_anybody_is_told_whether_the_server_is_ready_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_AGAIN_S", 0)
    part = Part()
    async with staged(tmp_path, users=("ada",), pings={"database": part.ping}) as stage:
        nobody = stage.client()
        seen = []
        for answer in (None, "The database is away.", None):
            part.answer = answer
            told = await nobody.get("/healthz/ready")
            seen.append((told.status_code, told.json()))
        assert seen == [(200, {"ready": True}), (503, {"ready": False}), (200, {"ready": True})]
        assert (await nobody.head("/healthz/ready")).status_code == 200
        assert (await nobody.get("/readyz")).status_code == 401


async def test_liveness_asks_no_part(tmp_path: Path) -> None:
    part = Part()
    async with staged(tmp_path, pings={"database": part.ping}) as stage:
        assert (await stage.client().get("/healthz")).json() == {"ok": True}
        assert part.asked == 0


async def test_parts_are_not_asked_for_each_of_many_probes_but_a_drain_shows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part()
    async with staged(tmp_path, pings={"database": part.ping}) as stage:
        client = stage.client()
        monkeypatch.setattr(readiness, "_AGAIN_S", 3600)
        answers = [(await client.get("/healthz/ready")).status_code for _ in range(3)]
        assert (answers, part.asked) == ([200] * 3, 1)
        await stage.chat.intake.shut_down(grace_s=1)
        assert (await client.get("/healthz/ready")).status_code == 503
        assert part.asked == 1

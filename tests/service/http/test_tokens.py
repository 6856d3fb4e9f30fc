"""Tokens while the server runs: taken back, and guessed."""

from pathlib import Path

import anyio

from tests.service.http.reading import reading
from tests.service.http.stage import HOLD, Stage, assert_error, staged


async def take_back(stage: Stage, user: str) -> None:
    path = anyio.Path(stage.settings.tokens_file or "")
    lines = (await path.read_text()).splitlines()
    await path.write_text("\n".join(line for line in lines if not line.startswith(f"{user} ")))


async def test_a_token_taken_out_of_the_file_lets_nobody_in_and_ends_its_streams(
    tmp_path: Path,
) -> None:
    async with (
        staged(tmp_path, users=("ada", "bob"), on_port=True) as stage,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(stage.app.state.tokens.watch)
        ada, bob = stage.client("ada"), stage.client("bob")
        async with (
            reading(ada, "POST", "/chat/stream", json={"message": HOLD}) as lost,
            reading(bob, "POST", "/chat/stream", json={"message": HOLD}) as kept,
        ):
            for stream in (lost, kept):
                await stream.until("text.delta")
            await take_back(stage, "ada")
            (last,) = await lost.rest()
            assert (last.type, last.data["error"]["code"]) == ("error", "unauthorised")
            assert_error(await ada.get("/conversations"), 401, "unauthorised")
            stage.release()
            assert (await kept.rest())[-1].type == "turn.completed"
        assert (await bob.get("/conversations")).status_code == 200
        tasks.cancel_scope.cancel()


async def test_unknown_tokens_are_limited_and_a_known_one_is_served_all_the_same(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        stranger = stage.client()
        stranger.headers["Authorization"] = "Bearer candor_guess"
        for _ in range(10):
            assert_error(await stranger.get("/conversations"), 401, "unauthorised")
        limited = await stranger.get("/conversations")
        assert_error(limited, 429, "too_many_attempts")
        assert int(limited.headers["retry-after"]) > 0
        assert (await stage.client("ada").get("/conversations")).status_code == 200
        assert_error(await stage.client().get("/conversations"), 401, "unauthorised")

"""The files of users who have workspaces of their own, over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from gateway.workspace import prepare_users_blocking
from tests.service.http.client import Client
from tests.service.http.stage import Stage, assert_error, staged

SECRET = b"of Bob alone"


@asynccontextmanager
async def apart(directory: Path, *users: str, **options: Any) -> AsyncIterator[Stage]:
    async with staged(directory, users=users, workspaces="per_user", **options) as stage:
        own = stage.settings.workspace / "users/.server"
        await anyio.to_thread.run_sync(prepare_users_blocking, own)
        yield stage


async def put(client: Client, name: str, content: bytes = SECRET) -> httpx.Response:
    return await client.post("/workspace/files", files={"files": (name, content)})


async def names_in(client: Client, **query: str) -> list[str]:
    answer = await client.get("/workspace", params=query)
    assert answer.status_code == 200, answer.text
    return [entry["path"] for entry in answer.json()["entries"]]


async def test_what_a_user_uploads_is_listed_found_and_given_to_them_alone(tmp_path: Path) -> None:
    async with apart(tmp_path, "ada", "bob") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        assert (await put(bob, "plan.txt")).json()["files"][0]["path"] == "uploads/plan.txt"
        kept = stage.settings.workspace / "users/bob/uploads/plan.txt"
        assert await anyio.Path(kept).read_bytes() == SECRET
        assert await names_in(bob) == [".claude", "memory", "uploads"]
        assert await names_in(ada) == [".claude", "memory"]
        assert await names_in(bob, q="plan") == ["uploads/plan.txt"]
        assert await names_in(ada, q="plan") == []
        given = await bob.get("/workspace/file", params={"path": "uploads/plan.txt"})
        assert given.content == SECRET
        missing = await ada.get("/workspace/file", params={"path": "uploads/plan.txt"})
        assert_error(missing, 404, "not_found")
        sent = await bob.post("/openai/v1/files", files={"file": ("more.txt", SECRET)})
        path = f"/openai/v1/files/{sent.json()['id']}"
        assert (await bob.get(path)).json()["filename"] == "more.txt"
        assert_error(await ada.get(path), 404, "not_found")


async def test_no_path_leads_into_the_folder_of_another(tmp_path: Path) -> None:
    async with apart(tmp_path, "ada", "bob") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await put(bob, "plan.txt")
        await names_in(ada)
        folder = stage.settings.workspace / "users/ada"
        for name, target in (("link", "../bob"), ("file", "../bob/uploads/plan.txt")):
            await anyio.Path(folder / name).symlink_to(target)
        for way in (
            "../bob",
            "link",
            "..",
            "../../users/bob",
            str(folder.parent / "bob"),
            "../.server",
        ):
            assert_error(await ada.get("/workspace", params={"path": way}), 403, "path_denied")
            for file in (f"{way}/uploads/plan.txt", "file"):
                answer = await ada.get("/workspace/file", params={"path": file})
                assert_error(answer, 403, "path_denied")
                assert SECRET not in answer.content
        assert await names_in(ada, q="plan") == []
        await anyio.Path(folder / "uploads").symlink_to("../bob/uploads")
        assert_error(await put(ada, "planted.txt"), 403, "path_denied")
        assert await names_in(bob, path="uploads") == ["uploads/plan.txt"]


async def test_users_whose_names_a_file_system_confuses_have_different_folders(
    tmp_path: Path,
) -> None:
    users = ("ada", "Ada", "ADA", "a.b", "a..b", "users", "shared")
    async with apart(tmp_path, *users) as stage:
        for user in users:
            assert (await put(stage.client(user), "who.txt", user.encode())).status_code == 201
        for user in users:
            answer = await stage.client(user).get("/workspace/file?path=uploads/who.txt")
            assert answer.content == user.encode()
        folders = await anyio.to_thread.run_sync(
            lambda: [path.name for path in (stage.settings.workspace / "users").iterdir()]
        )
        assert len({name.casefold() for name in folders}) == len(users) + 1


@pytest.mark.parametrize("wrong", ["link", "file"])
async def test_a_folder_that_cannot_be_made_is_nobodys_and_is_made_once_it_can(
    tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Something else is in its place; a link would lead into what is another's."""
    async with apart(tmp_path, "ada", "bob") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await put(bob, "plan.txt")
        place = anyio.Path(stage.settings.workspace / "users/ada")
        await (place.symlink_to("bob") if wrong == "link" else place.touch())
        assert_error(await ada.get("/workspace"), 503, "workspace_unavailable")
        assert_error(await put(ada, "a.txt"), 503, "workspace_unavailable")
        assert "must be a real folder" in str(caplog.records[-1].__dict__["reason"])
        assert await names_in(bob, path="uploads") == ["uploads/plan.txt"]
        await place.unlink()
        assert await names_in(ada) == [".claude", "memory"]


async def test_skills_are_those_of_the_users_own_folder(tmp_path: Path) -> None:
    async with apart(tmp_path, "ada", "bob") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await names_in(bob)  # which makes the folder
        skill = anyio.Path(stage.settings.workspace / "users/bob/.claude/skills/deploy/SKILL.md")
        await skill.parent.mkdir()
        await skill.write_text("---\nname: deploy\ndescription: Of Bob alone.\n---\nDo it.\n")

        async def listed(client: Client) -> set[str]:
            return {skill["name"] for skill in (await client.read("/skills"))["skills"]}

        assert "deploy" in await listed(bob)
        assert await listed(bob) - await listed(ada) == {"deploy"}

"""The workspace's files over HTTP: what the agent may read and write, and nothing else."""

import os
from pathlib import Path

import anyio
import httpx
import pytest

from gateway.errors import Forbidden, NotFound
from gateway.files.access import WorkspaceAccess
from policies.calls import ToolCall
from policies.rules import load_rules
from policies.tools import ToolGate
from policies.verdict import Verdict
from tests.service.http.client import Client
from tests.service.http.stage import Json, Stage, assert_error, staged

PNG = b"\x89PNG\r\n\x1a\n\x00"


def _make(root: Path) -> None:
    (root / "docs").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "a.txt").write_text("alpha\n", encoding="utf-8")
    (root / "docs" / "计划.html").write_text("<script>alert(1)</script>", encoding="utf-8")
    (root / "docs" / "cut.txt").write_bytes(b"x" * 8191 + "é".encode())
    (root / "p.PNG").write_bytes(PNG)
    (root / "x.svg").write_text("<svg onload='alert(1)'/>", encoding="utf-8")
    (root / "bytes").write_bytes(b"a\0b")
    (root / ".env").write_text("KEY=hunter2", encoding="utf-8")
    (root / ".git" / "config").write_text("token", encoding="utf-8")
    (root.parent / "outside.txt").write_text("outside", encoding="utf-8")
    (root / "way-out").symlink_to(root.parent / "outside.txt")
    (root / "up").symlink_to(root.parent)
    (root / "keys").symlink_to(root / ".env")
    (root / "alias").symlink_to(root / "docs")
    (root / "nowhere").symlink_to(root / "missing")
    os.mkfifo(root / "pipe")


async def _get(client: Client, path: str) -> httpx.Response:
    return await client.get("/workspace/file", params={"path": path})


def _entries(answer: httpx.Response) -> dict[str, tuple[str, bool]]:
    assert answer.status_code == 200, answer.text
    return {one["path"]: (one["kind"], one["readable"]) for one in answer.json()["entries"]}


async def test_folders_are_listed_and_files_come_as_downloads_that_no_browser_runs(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        await anyio.to_thread.run_sync(_make, stage.settings.workspace)
        client = stage.client()
        root = await client.get("/workspace")
        assert _entries(root) == {
            ".git": ("folder", True),
            "alias": ("folder", True),
            "docs": ("folder", True),
            ".env": ("file", False),
            "a.txt": ("file", True),
            "bytes": ("file", True),
            "keys": ("other", False),
            "p.PNG": ("file", True),
            "pipe": ("other", False),
            "up": ("other", False),
            "way-out": ("other", False),
            "x.svg": ("file", True),
        }
        assert [one["kind"] for one in root.json()["entries"]][:4] == [*["folder"] * 3, "file"]
        through_link = await client.get("/workspace", params={"path": "alias"})
        assert through_link.json()["path"] == "docs"
        found = await client.get("/workspace", params={"q": "docs 计划"})
        assert list(_entries(found)) == ["docs/计划.html"]

        types = {}
        for path in ("a.txt", "alias/计划.html", "docs/cut.txt", "p.PNG", "x.svg", "bytes"):
            answer = await _get(client, path)
            assert answer.content == (stage.settings.workspace / path).read_bytes()
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
            types[path] = answer.headers["content-type"]
        assert types == {
            "a.txt": "text/plain; charset=utf-8",
            "alias/计划.html": "text/plain; charset=utf-8",
            "docs/cut.txt": "text/plain; charset=utf-8",
            "p.PNG": "image/png",
            "x.svg": "text/plain; charset=utf-8",
            "bytes": "application/octet-stream",
        }


async def test_what_the_policy_keeps_from_the_agent_is_kept_from_these_routes(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        root = stage.settings.workspace
        await anyio.to_thread.run_sync(_make, root)
        client = stage.client()
        denied = [
            *(".env", "./.env", "docs/../.env", "keys", "way-out", "up/outside.txt", ".ENV"),
            *("../outside.txt", "/etc/passwd", str(root / "a.txt"), "~/x", "a\0", "//host/share"),
            *("docs\\cut.txt", "", "docs", "docs/", "pipe", "file:///etc/passwd"),
        ]
        missing = ["missing.txt", "a.txt/x", "docs/missing/x"]
        wrong = []
        for paths, status in ((denied, 403), (missing, 404)):
            for path in paths:
                answer = await _get(client, path)
                wrong += [(path, answer.status_code)] if answer.status_code != status else []
                assert "hunter2" not in answer.text
                assert str(tmp_path) not in answer.text
        for path in ("..", "up", "/", str(root), "docs/../..", "~"):
            answer = await client.get("/workspace", params={"path": path})
            wrong += [(path, answer.status_code)] if answer.status_code != 403 else []
        assert wrong == []
        assert assert_error(await _get(client, ".env"), 403, "path_denied")["details"] == {
            "rule": "secret_file"
        }


class _Swapping(ToolGate):
    """Allows calls, and puts a link to a secret in the place of `a.txt` after the one numbered `last`."""

    last = 0
    judged = 0

    def judge(self, call: ToolCall) -> Verdict:
        verdict = super().judge(call)
        self.judged += 1
        if self.judged == self.last:
            (self.root / "a.txt").unlink()
            (self.root / "a.txt").symlink_to(self.root / ".env")
        return verdict


@pytest.mark.parametrize(("last", "error"), [(1, Forbidden), (2, NotFound)])
def test_a_file_that_becomes_a_link_after_the_verdict_is_not_opened(
    tmp_path: Path, last: int, error: type[Exception]
) -> None:
    """The second judgement is of the path that links lead to."""
    root = tmp_path / "workspace"
    _make(root)
    gate = _Swapping(root)
    gate.last = last
    with pytest.raises(error):
        WorkspaceAccess(root, gate).open_blocking("./a.txt")


async def _upload(client: Client, *files: tuple[str, bytes]) -> httpx.Response:
    return await client.post("/workspace/files", files=[("files", one) for one in files])


def _uploads(stage: Stage) -> list[str]:
    folder = stage.settings.workspace / "uploads"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


async def test_uploads_are_stored_under_free_names_and_overwrite_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, max_upload_bytes=3_000_000) as stage:
        await anyio.to_thread.run_sync(_make, stage.settings.workspace)
        client = stage.client()
        large = b"x" * 2_000_000  # more than other bodies may have
        answer = await _upload(client, ("p.png", PNG), ("C:\\tmp\\截图.png", large))
        again = await _upload(client, ("../../p.png", b""), ("x" * 300 + ".tar", b"t"))
        assert (answer.status_code, again.status_code) == (201, 201), answer.text + again.text
        stored: list[Json] = answer.json()["files"] + again.json()["files"]
        long_name = "x" * 196 + ".tar"
        assert [(file["path"], file["size_bytes"]) for file in stored] == [
            ("uploads/p.png", len(PNG)),
            ("uploads/截图.png", 2_000_000),
            ("uploads/p-2.png", 0),
            (f"uploads/{long_name}", 1),
        ]
        assert (await _get(client, "uploads/p.png")).content == PNG
        assert _uploads(stage) == sorted(file["name"] for file in stored)


async def test_an_upload_with_a_quotation_mark_in_its_name_keeps_it(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await anyio.to_thread.run_sync(_make, stage.settings.workspace)
        client = stage.client()
        answer = await _upload(client, ('odd "q".txt', b"x"), ("50%20off.txt", b"x"))
        assert answer.status_code == 201, answer.text
        assert _uploads(stage) == ["50%20off.txt", 'odd "q".txt']


async def test_uploads_that_the_agent_might_not_write_are_refused_whole(tmp_path: Path) -> None:
    async with staged(tmp_path, max_upload_bytes=3_000_000) as stage:
        root = stage.settings.workspace
        await anyio.to_thread.run_sync(_make, root)
        client = stage.client()
        for name in (".env", "CLAUDE.md", "id_rsa", "a\u202etxt.sh", ".git"):
            answer = await _upload(client, ("fine.txt", b"x"), (name, b"x"))
            assert_error(answer, 403, "path_denied")
        assert_error(await _upload(client, ("a", b"x" * 3_000_000)), 413, "body_too_large")
        for bad in (
            await client.post("/workspace/files", data={"files": "text"}, files={"x": b""}),
            await client.post("/workspace/files", json={}),
            await client.post("/workspace/files"),
            await _upload(client, *[("a", b"")] * 21),
            await client.post(
                "/workspace/files",
                content=b"--x\r\n",
                headers={"Content-Type": "multipart/form-data; boundary=x"},
            ),
        ):
            assert_error(bad, 422, "invalid_request")
        assert _uploads(stage) == []
        (root / "uploads").symlink_to(root / "docs")
        assert_error(await _upload(client, ("a", b"x")), 403, "path_denied")
        foreign = await client.post(
            "/workspace/files", files={"files": b"x"}, headers={"Origin": "https://evil.example"}
        )
        assert_error(foreign, 403, "forbidden")
        assert sorted(path.name for path in (root / "docs").iterdir()) == ["cut.txt", "计划.html"]


def test_what_a_person_is_asked_about_is_theirs_to_open_if_they_could_answer(
    tmp_path: Path,
) -> None:
    root = tmp_path / "workspace"
    _make(root)
    file = tmp_path / "rules.toml"
    file.write_text('[[ask]]\ntools = ["Read"]\n', encoding="utf-8")
    rules = load_rules(file, workspace=root, private=[])
    gates = {
        answers: ToolGate(root, rules=rules, can_ask_user=answers) for answers in (True, False)
    }
    listed = {
        answers: WorkspaceAccess(root, gate).list_blocking("docs")
        for answers, gate in gates.items()
    }
    assert [entry.readable for entry in listed[True].entries] == [True, True]
    assert [entry.readable for entry in listed[False].entries] == [False, False]

"""`CANDOR_WORKTREES=on` with real agents in a real repository."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.tokens import make_token
from tests.support.live_server import LiveClient, bash, running_server, script
from tests.support.repositories import git, lay_repository
from tests.support.walls import needs_boxes, needs_landlock

pytestmark = pytest.mark.e2e


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool": "Write", "input": {"file_path": path, "content": content}}


def read(path: str) -> dict[str, Any]:
    return {"tool": "Read", "input": {"file_path": path}}


async def tree(client: LiveClient, turn: dict[str, Any]) -> dict[str, Any]:
    return dict(await client.get(f"/conversations/{turn['conversation_id']}/worktree"))


async def test_two_conversations_change_one_file_one_is_merged_and_the_other_conflicts(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with (
        running_server(tmp_path, worktrees="on") as server,
        server.client() as client,
    ):
        workspace = server.workspace
        one, two = [
            await client.ask(script(read("a.txt"), write("a.txt", f"{name}\n"), {"text": "Done."}))
            for name in ("one", "two")
        ]
        assert (one["outcome"], two["outcome"]) == ("answered", "answered")
        assert one["changes"]["files"] == 1
        assert str(server.workspace) not in str(one)
        seen = await client.ask(script(read("a.txt"), {"text": "Read."}), two["conversation_id"])
        call = f"/conversations/{two['conversation_id']}/turns/{seen['turn_id']}/tools/1"
        assert "two" in (await client.get(call))["output"]
        assert (workspace / "a.txt").read_text() == "a\n"
        own = f"?path=a.txt&conversation_id={one['conversation_id']}"
        assert (await client.http.get(f"/workspace/file{own}")).text == "one\n"
        assert (await client.http.get("/workspace/file?path=a.txt")).text == "a\n"
        shown = await tree(client, one)
        assert (shown["state"], shown["target"]) == ("own", "main")
        assert shown["branch"] == f"candor/{one['conversation_id']}"
        assert [(file["path"], file["kind"]) for file in shown["files"]] == [("a.txt", "modified")]
        assert "-a\n+one\n" in shown["files"][0]["diff"]

        merge = "/conversations/{}/worktree/merge"
        merged = await client.http.post(merge.format(one["conversation_id"]))
        assert (merged.status_code, merged.json()["files"]) == (200, 1)
        assert (workspace / "a.txt").read_text() == "one\n"
        refused = await client.http.post(merge.format(two["conversation_id"]))
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (409, "merge_conflict")
        assert error["details"] == {"files": ["a.txt"]}
        assert (workspace / "a.txt").read_text() == "one\n"
        assert (await tree(client, one))["files"] == []

        gone = await client.http.delete(f"/conversations/{two['conversation_id']}/worktree")
        assert gone.status_code == 204
        assert (await tree(client, two)) == {"state": "none"}
        again = await client.ask(
            script(read("a.txt"), write("b.txt", "b\n"), {"text": "Again."}), two["conversation_id"]
        )
        assert again["outcome"] == "answered"
        assert [file["path"] for file in (await tree(client, two))["files"]] == ["b.txt"]
        deleted = await client.http.delete(f"/conversations/{two['conversation_id']}")
        assert deleted.status_code == 204
    kept = await lay(lambda: git(workspace, "show", f"candor/{two['conversation_id']}:b.txt"))
    assert kept == "b"


async def test_a_work_tree_is_found_again_after_a_restart_and_a_plain_folder_has_none(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with running_server(tmp_path, worktrees="on") as server, server.client() as client:
        turn = await client.ask(script(write("b.txt", "b\n"), {"text": "Done."}))
    async with running_server(tmp_path, worktrees="on") as server, server.client() as client:
        after = await client.ask(script(read("b.txt"), {"text": "Read."}), turn["conversation_id"])
        assert after["outcome"] == "answered"
        assert [notice["code"] for notice in after["notices"]] == []
        fork = await client.post(
            f"/conversations/{turn['conversation_id']}/fork", status=201, turn_id=turn["turn_id"]
        )
        branch = await client.ask(script(read("a.txt"), {"text": "Read."}), fork["conversation_id"])
        assert branch["outcome"] == "answered"
        assert [notice["code"] for notice in branch["notices"]] == []
        assert (await tree(client, branch))["state"] == "own"
    plain = tmp_path / "plain"
    plain.mkdir()
    async with running_server(plain, worktrees="on") as server, server.client() as client:
        turn = await client.ask(script(write("b.txt", "b\n"), {"text": "Done."}))
        assert (await tree(client, turn)) == {"state": "none"}
        assert (server.workspace / "b.txt").read_text() == "b\n"


REACH = """\
git add -A && git commit -qm one && git log --oneline | wc -l
echo x > ../../a.txt
ls ../.. ; ls ..
git update-ref refs/heads/main HEAD || echo kept-main
git config core.fsmonitor "touch pwned" || echo kept-config
echo evil > ../../.git/hooks/pre-commit || echo kept-hooks
echo ../evil > ../../.git/worktrees/$(basename $PWD)/commondir || echo kept-commondir
touch ../../.git/index.lock ../../.git/worktrees/$(basename $PWD)/config.worktree
mkdir ../../.git/rebase-merge && echo "exec touch pwned" > ../../.git/rebase-merge/git-rebase-todo
echo $(git rev-parse HEAD) > ../../.git/MERGE_HEAD
git replace -f main HEAD
ln -sf $PWD/../../../outside $(git rev-parse --git-dir)/COMMIT_EDITMSG
git symbolic-ref refs/heads/candor/$(basename $PWD) refs/heads/main
"""


@needs_boxes
async def test_a_command_in_the_box_has_its_work_tree_and_git_and_nothing_else(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with (
        running_server(tmp_path, worktrees="on", shell="sandboxed") as server,
        server.client() as client,
    ):
        other = await client.ask(script(write("o.txt", "o\n"), {"text": "Done."}))
        turn = await client.ask(script(write("b.txt", "b\n"), bash(REACH), {"text": "Done."}))
        call = await client.get(
            f"/conversations/{turn['conversation_id']}/turns/{turn['turn_id']}/tools/2"
        )
        workspace = server.workspace
        output = call["output"]
        for kept in ("main", "config", "hooks", "commondir"):
            assert f"kept-{kept}" in output, output
        assert "2\n" in output
        assert "o.txt" not in output
        assert other["conversation_id"] not in output
        assert (workspace / "a.txt").read_text() == "a\n"
        for name in ("index.lock", "rebase-merge", "MERGE_HEAD", "refs/replace"):
            assert not (workspace / ".git" / name).exists(), name
        assert not (
            workspace / f".git/worktrees/{turn['conversation_id']}/config.worktree"
        ).exists()
        assert not (workspace / ".git/hooks/pre-commit").exists()
        merged = await client.http.post(f"/conversations/{turn['conversation_id']}/worktree/merge")
        assert merged.status_code == 200, merged.text
    assert (workspace / "b.txt").read_text() == "b\n"
    assert not (tmp_path / "outside").exists()


DAMAGE = """\
object=../../.git/objects/$(git rev-parse HEAD:a.txt | sed 's|^..|&/|')
test -e $object || echo unseen
rm -rf ../../.git/objects/* || echo kept-list
ls /candor-objects > /dev/null && echo > /candor-objects/pack/evil || echo kept-objects
own=$(git rev-parse --git-dir)/objects
mv $own $own-gone || echo kept-own
echo ../../.. > $own/info/alternates || echo kept-alternates
git commit -qam one && git gc -q --prune=now ; git pack-refs --all --prune || echo kept-branches
git init -q nested && touch nested/n.txt && git -C nested add . && git -C nested commit -qm n
git -C nested log --oneline | wc -l
"""
KEPT = ("list", "objects", "own", "alternates", "branches")
AGAIN = """\
git log --oneline | wc -l
git commit -q --allow-empty -m two && git fsck --no-dangling && echo whole
"""


@needs_boxes
async def test_a_command_cannot_harm_the_objects_of_the_repository(tmp_path: Path) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with (
        running_server(tmp_path, worktrees="on", shell="sandboxed") as server,
        server.client() as client,
    ):
        steps = (read("a.txt"), write("a.txt", "one\n"), bash(DAMAGE), {"text": "Done."})
        turn = await client.ask(script(*steps))
        calls = f"/conversations/{turn['conversation_id']}/turns/{turn['turn_id']}/tools"
        output = (await client.get(f"{calls}/3"))["output"]
        for told in ("unseen", *(f"kept-{it}" for it in KEPT)):
            assert told in output, output
        assert output.endswith("\n1"), output
        branch = f"candor/{turn['conversation_id']}"
        again = await client.ask(script(bash(AGAIN), {"text": "Done."}), turn["conversation_id"])
        calls = f"/conversations/{turn['conversation_id']}/turns/{again['turn_id']}/tools"
        output = (await client.get(f"{calls}/1"))["output"]
        assert output == "2\nwhole"
        folder = server.workspace / ".candor-worktrees" / turn["conversation_id"]
        await lay(shutil.rmtree, folder / "nested")
        await lay(lambda: git(server.workspace, "fsck", "--strict"))
        log = await lay(lambda: git(server.workspace, "log", "--format=%s", branch))
        assert log.split("\n")[:2] == ["two", "one"]
        merged = await client.http.post(f"/conversations/{turn['conversation_id']}/worktree/merge")
        assert merged.status_code == 200, merged.text
    assert (server.workspace / "a.txt").read_text() == "one\n"


async def test_an_upload_reaches_the_work_tree_of_the_message_that_names_it(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with running_server(tmp_path, worktrees="on") as server, server.client() as client:
        form = {"files": ("plan.txt", b"of the plan")}
        assert (await client.http.post("/workspace/files", files=form)).status_code == 201
        given = "See `uploads/plan.txt` and `uploads/../a.txt`.\n"
        turn = await client.ask(given + script(read("uploads/plan.txt"), {"text": "Read."}))
        call = f"/conversations/{turn['conversation_id']}/turns/{turn['turn_id']}/tools/1"
        assert "of the plan" in (await client.get(call))["output"]
        assert (await tree(client, turn))["files"] == []


async def test_an_agent_whose_work_tree_cannot_be_made_does_not_work_elsewhere(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    (tmp_path / "workspace/.candor-worktrees").write_text("a file\n")
    async with running_server(tmp_path, worktrees="on") as server, server.client() as client:
        server.tolerated.append("work_tree_not_made")
        message = script(write("b.txt", "b\n"), {"text": "Done."})
        turn = await client.ask(message)
        assert turn["outcome"] == "engine_failed"
        assert not (server.workspace / "b.txt").exists()
        (server.workspace / ".candor-worktrees").unlink()
        again = await client.ask(message, turn["conversation_id"])
        assert again["outcome"] == "answered"
        assert not (server.workspace / "b.txt").exists()


async def test_a_running_turn_is_neither_merged_nor_thrown_away_and_the_setting_may_change(
    tmp_path: Path,
) -> None:
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace", a_txt="a\n"))
    async with running_server(tmp_path, worktrees="on") as server, server.client() as client:
        message = script(write("b.txt", "b\n"), {"delay_ms": 60_000, "text": "Done."})
        async with client.stream(message) as events:
            started = await events.until("tool.finished")
            route = f"/conversations/{started.data['conversation_id']}/worktree"
            for method, path in (("POST", f"{route}/merge"), ("DELETE", route)):
                refused = await client.http.request(method, path)
                assert refused.json()["error"]["code"] == "conversation_busy", refused.text
            assert [file["path"] for file in (await client.get(route))["files"]] == ["b.txt"]
    async with running_server(tmp_path) as server, server.client() as client:
        known = started.data["conversation_id"]
        await client.ask(script(write("c.txt", "c\n"), {"text": "Done."}), known)
        assert {file["path"] for file in (await client.get(route))["files"]} == {"b.txt", "c.txt"}
        new = await client.ask(script(write("d.txt", "d\n"), {"text": "Done."}))
        assert await tree(client, new) == {"state": "none"}
        assert (server.workspace / "d.txt").exists()


@needs_landlock
async def test_a_users_own_folder_may_be_a_repository_and_anothers_is_none(tmp_path: Path) -> None:
    tokens = {name: make_token(name) for name in ("ada", "bob")}
    file = tmp_path / "tokens"
    file.write_text("".join(f"{line}\n" for _, line in tokens.values()), encoding="utf-8")
    file.chmod(0o600)
    lay = anyio.to_thread.run_sync
    await lay(lambda: lay_repository(tmp_path / "workspace/users/ada", a_txt="a\n"))
    given: dict[str, Any] = {"workspaces": "per_user", "tokens_file": file, "worktrees": "on"}
    async with running_server(tmp_path, **given) as server:
        folder = server.workspace / "users"
        for name, state in (("ada", "own"), ("bob", "none")):
            async with server.client() as client:
                client.http.headers["Authorization"] = f"Bearer {tokens[name][0]}"
                turn = await client.ask(script(write("b.txt", f"{name}\n"), {"text": "Done."}))
                assert turn["outcome"] == "answered"
                assert (await tree(client, turn))["state"] == state
                assert (folder / name / "b.txt").exists() == (state == "none")
                if state == "own":
                    route = f"/conversations/{turn['conversation_id']}/worktree/merge"
                    assert (await client.http.post(route)).status_code == 200
                    assert (folder / name / "b.txt").read_text() == "ada\n"

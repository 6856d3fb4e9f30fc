"""`CANDOR_WORKSPACES=per_user` with real agents: what is one user's, no other user's agent reaches."""

import json
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.agents import open_agents, plan_agents
from gateway.engine.events import ToolReturned
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.http.tokens import make_token
from gateway.private_files import make_directories_blocking
from gateway.serve import prepare_blocking
from tests.support.engine_talk import Gate, ask, step
from tests.support.engine_talk import script as engine_script
from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    running_server,
    script,
    start_server,
    started_server,
)
from tests.support.program import one_sentence, run_app
from tests.support.services import settings_below
from tests.support.walls import needs_boxes, needs_landlock

pytestmark = [pytest.mark.e2e, needs_landlock]

SECRET = "S3CR3T-OF-BOB"
PAGE = "the handbook's page"


def lay_ground(root: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the tokens of Ada, Bob and Cyd, Bob's secret, and a handbook that Ada writes and all read;
    where Cyd's folder should be, a link leads into Bob's.

    Returns the settings and the tokens.
    """
    made = {name: make_token(name) for name in ("ada", "bob", "cyd")}
    tokens = root / "tokens"
    tokens.write_text("".join(f"{line}\n" for _, line in made.values()), encoding="utf-8")
    tokens.chmod(0o600)
    secret = root / "workspace/users/bob/secret.txt"
    secret.parent.mkdir(parents=True)
    secret.write_text(SECRET, encoding="utf-8")
    (root / "workspace/users/cyd").symlink_to(secret.parent)
    (root / "workspace/shared/handbook").mkdir(parents=True)
    (root / "workspace/shared/handbook/page.md").write_text(PAGE, encoding="utf-8")
    projects = root / "projects.toml"
    projects.write_text(
        f'[handbook]\npath = "{root}/workspace/shared/handbook"\nread = ["*"]\nwrite = ["ada"]\n',
        encoding="utf-8",
    )
    settings = {"workspaces": "per_user", "tokens_file": tokens, "projects_file": projects}
    return settings, {name: token for name, (token, _) in made.items()}


class Users:
    """A server with Ada and Bob."""

    def __init__(self, server: LiveServer, tokens: dict[str, str]) -> None:
        self.server = server
        self._tokens = tokens
        self._conversations: dict[str, str] = {}

    def folder(self, name: str) -> Path:
        return self.server.workspace / "users" / name

    @property
    def handbook(self) -> Path:
        return self.server.workspace / "shared/handbook"

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[LiveClient]:
        async with self.server.client() as client:
            client.http.headers["Authorization"] = f"Bearer {self._tokens[name]}"
            yield client

    async def play(
        self, name: str, *steps: dict[str, Any], is_new: bool = False
    ) -> tuple[list[str], str]:
        """Have the agent of a user make calls; return their statuses, and all that was told.

        Each user has one conversation, because an agent costs a second, unless it `is_new`.
        """
        known = None if is_new else self._conversations.get(name)
        async with self.client(name) as client:
            result = await client.ask(script(*steps, {"text": "Done."}), known)
            told = await client.replay(result["conversation_id"], result["turn_id"])
        self._conversations[name] = result["conversation_id"]
        shown = json.dumps([event.data for event in told if event.type == "tool.finished"])
        return [tool["status"] for tool in result["tools"]], shown


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    root = tmp_path_factory.mktemp("users")
    settings, tokens = lay_ground(root)
    with started_server(root, demo_cadence_ms=0, prewarmed_clients=1, **settings) as server:
        yield Users(server, tokens)


def attempts(bob: Path) -> list[dict[str, Any]]:
    """Return calls that read, list, search or change what is Bob's, from Ada's folder."""
    secret = f"{bob}/secret.txt"
    return [
        step("Read", file_path=secret),
        step("Read", file_path="../bob/secret.txt"),
        step("Glob", pattern="*", path=str(bob)),
        step("Glob", pattern="../bob/*"),
        step("Grep", pattern="S3CR3T", path=str(bob.parent), output_mode="content"),
        step("Grep", pattern="S3CR3T", path="link", output_mode="content"),
        step("Read", file_path="link/secret.txt"),
        step("Write", file_path=f"{bob}/planted.txt", content="x"),
        step("Write", file_path="link/planted.txt", content="x"),
        step("Edit", file_path=secret, old_string="S", new_string="x"),
        *map(bash, shell_attempts(bob)),
    ]


def shell_attempts(bob: Path) -> Sequence[str]:
    return (
        f"cat {bob}/secret.txt",
        "cat ../bob/secret.txt",
        "cat link/secret.txt",
        f"ls {bob}",
        "ls ..",
        f"cp {bob}/secret.txt mine.txt",
        f"cp own.txt {bob}/planted.txt",
        f"mv {bob}/secret.txt mine.txt",
        f"rm {bob}/secret.txt",
    )


def assert_nothing_happened(bob: Path, ada: Path, shown: str) -> None:
    assert SECRET not in shown
    assert (bob / "secret.txt").read_text("utf-8") == SECRET
    assert not (bob / "planted.txt").exists()
    assert not (ada / "mine.txt").exists()


async def test_an_agent_reads_lists_searches_and_changes_nothing_of_another_user(
    users: Users,
) -> None:
    ada, bob = users.folder("ada"), users.folder("bob")
    assert await users.play("ada", step("Write", file_path="own.txt", content="mine"))
    (ada / "link").symlink_to(bob)
    for some in (attempts(bob)[:10], attempts(bob)[10:]):
        statuses, shown = await users.play("ada", *some)
        assert set(statuses) == {"denied"}, list(zip(some, statuses, strict=True))
        assert_nothing_happened(bob, ada, shown)


async def test_a_shared_project_is_read_by_its_readers_and_written_by_its_writers_alone(
    users: Users,
) -> None:
    page, new = f"{users.handbook}/page.md", f"{users.handbook}/new.md"
    statuses, shown = await users.play(
        "bob",
        step("Read", file_path=page),
        bash(f"cat {page}"),
        step("Write", file_path=new, content="x"),
        bash(f"cp secret.txt {new}"),
        bash(f"rm {page}"),
    )
    assert statuses == ["ok", "ok", "denied", "denied", "denied"]
    assert PAGE in shown
    assert not (users.handbook / "new.md").exists()
    statuses, _ = await users.play("ada", step("Write", file_path=new, content="news"))
    assert (statuses, (users.handbook / "new.md").read_text("utf-8")) == (["ok"], "news")
    statuses, _ = await users.play("bob", step("Read", file_path=new))
    assert statuses == ["ok"]


async def test_folders_sessions_and_warm_agents_are_each_users_own(users: Users) -> None:
    # an agent that waits for Ada is given to her, and must not be given to Bob
    for number, name in enumerate(("ada", "ada", "bob")):
        written = step("Write", file_path=f"by-{name}-{number}.txt", content=name)
        assert (await users.play(name, written, is_new=True))[0] == ["ok"]
        async with users.client(name) as client:
            await client.wait_for_agents(1)
    async with users.client("ada") as client:
        assert (
            'clients_connected_total{origin="prewarmed"}'
            in (await client.http.get("/metrics")).text
        )
    data = users.server.data_dir
    for name, other in (("ada", "bob"), ("bob", "ada")):
        folder, state = users.folder(name), data / "users" / name
        assert {path.read_text("utf-8") for path in folder.glob("by-*.txt")} == {name}
        assert (folder / ".claude/skills").is_dir()
        assert list((state / "sessions/projects").glob(f"*{name}/*.jsonl"))
        assert not list((state / "sessions/projects").glob(f"*{other}/*.jsonl"))
        for part in ("", "sessions", "tmp", "home"):
            assert stat.S_IMODE((state / part).stat().st_mode) == 0o700
    assert not list((data / "sessions").glob("projects/*/*.jsonl"))
    assert stat.S_IMODE(users.folder("ada").stat().st_mode) == 0o700


async def test_a_log_shows_paths_from_the_users_own_folder(users: Users) -> None:
    ada, bob = users.folder("ada"), users.folder("bob")
    reads = [step("Read", file_path=f"{folder}/a.txt") for folder in (ada, bob)]
    async with users.client("ada") as client:
        result = await client.ask(script(*reads, {"text": "Done."}))
    text = users.server.journal_text(result)
    assert "users/ada" not in text
    assert '"file_path":"a.txt"' in text.replace(": ", ":")
    assert '"file_path":"../bob/a.txt"' in text.replace(": ", ":")


async def test_notes_reach_their_user_alone(users: Users) -> None:
    note = "# Harbour\n\nThe pilot's name is Quillfeather.\n"
    statuses, _ = await users.play(
        "ada", step("Write", file_path="memory/harbour.md", content=note)
    )
    assert statuses == ["ok"]

    def finds(answer: Any) -> bool:
        return "Quillfeather" in json.dumps(answer["items"])

    async with users.client("ada") as ada, users.client("bob") as bob:
        await ada.wait_until("/memory/search?q=Quillfeather", finds)
        assert not finds(await bob.get("/memory/search?q=Quillfeather"))
        mine, theirs = [
            (await client.http.get("/memory/export")).text.count("Quillfeather")
            for client in (ada, bob)
        ]
        assert (mine > 0, theirs) == (True, 0)
        asked = "What is in your memory of the harbour?"
        pack = await ada.post("/memory/context", queries=[asked])
        assert "Quillfeather" in pack["text"]
        pack = await bob.post("/memory/context", queries=[asked])
        assert "Quillfeather" not in pack["text"]


async def test_no_agent_starts_where_a_link_leads_into_the_folder_of_another(users: Users) -> None:
    users.server.tolerated.append("workspace_not_made")
    async with users.client("cyd") as client:
        result = await client.ask(script(bash("cat secret.txt"), {"text": "Done."}))
    assert (result["outcome"], result["tools"]) == ("engine_failed", [])
    (fault,) = [line for line in users.server.journal(result) if line["kind"] == "error"]
    assert "must be a real folder" in fault["detail"]
    assert str(users.server.workspace) not in json.dumps(fault)


async def test_the_server_says_that_workspaces_are_the_users_own(users: Users) -> None:
    async with users.client("ada") as client:
        ready = await client.get("/readyz")
    assert ready["parts"]["workspaces"] == {"ok": True, "mode": "per_user"}
    assert ready["parts"]["sandbox"]["kind"] == "landlock"


async def test_the_kernel_alone_keeps_users_apart(tmp_path: Path) -> None:
    """The gate lets everything through here."""
    given, _ = lay_ground(tmp_path)
    workspace = tmp_path / "workspace"
    settings = settings_below(
        tmp_path, demo="on", demo_cadence_ms=0, **{**given, "workspace": workspace}
    )
    ada, bob = workspace / "users/ada", workspace / "users/bob"

    def prepare() -> None:
        make_directories_blocking(settings)
        prepare_blocking(settings)
        ada.mkdir()
        (ada / "own.txt").write_text("mine", encoding="utf-8")
        (ada / "link").symlink_to(bob)

    await anyio.to_thread.run_sync(prepare)
    plan = await anyio.to_thread.run_sync(plan_agents, settings, {}, tmp_path)
    page, new = f"{workspace}/shared/handbook/page.md", f"{workspace}/shared/handbook/new.md"
    async with (
        open_agents(settings, {}, plan) as (make_engine, _),
        anyio.create_task_group() as tasks,
    ):
        engine = make_engine(tasks)
        clients = {
            user_id: await engine.connect(ClientSpec(user_id=user_id), SessionOrigin())
            for user_id in ("ada", "bob")
        }

        async def play(user_id: str, *steps: dict[str, Any]) -> list[ToolReturned]:
            told = await ask(clients[user_id], engine_script(*steps, {"text": "Done."}), Gate())
            return told.all(ToolReturned)

        returned = await play("ada", *attempts(bob))
        assert_nothing_happened(bob, ada, json.dumps([event.text for event in returned]))
        failed = [event.is_error for event in returned]
        assert len(failed) == len(attempts(bob))
        # Glob and Grep find nothing where they may not look
        assert all(
            is_error
            for given, is_error in zip(attempts(bob), failed, strict=True)
            if given["tool"] not in {"Glob", "Grep"}
        )
        state = tmp_path / "data/users/bob"
        await play("bob", step("Read", file_path="secret.txt"))
        (session,) = (state / "sessions/projects").glob("*/*.jsonl")
        reads = await play(
            "ada", bash(f"cat {session}"), bash(f"ls {state}"), bash(f"ls {tmp_path}/data/sessions")
        )
        assert [event.is_error for event in reads] == [True, True, True]
        reads = await play(
            "bob", bash(f"cat {page}"), bash(f"cp secret.txt {new}"), bash(f"rm {page}")
        )
        assert [event.is_error for event in reads] == [False, True, True]
        (written,) = await play("ada", bash(f"cp own.txt {new}"))
        assert not written.is_error
        for client in clients.values():
            await client.close()
        tasks.cancel_scope.cancel()


@needs_boxes
async def test_a_box_holds_the_folder_and_the_projects_of_its_user(tmp_path: Path) -> None:
    settings, tokens = lay_ground(tmp_path)
    server = await anyio.to_thread.run_sync(
        lambda: start_server(tmp_path, shell="sandboxed", demo_cadence_ms=0, **settings)
    )
    try:
        users = Users(server, tokens)
        ada, bob, handbook = users.folder("ada"), users.folder("bob"), users.handbook
        assert (await users.play("ada", bash("echo mine > own.txt; ln -s ../bob link")))[0] == [
            "ok"
        ]
        hostile = (
            *(f"{line} || echo refused" for line in shell_attempts(bob) if line != "ls .."),
            f"find {server.workspace} -name secret.txt -exec cat {{}} +",
            f"python3 -c \"print(open('{bob}/secret.txt').read())\"",
            f"mkdir -p {bob}; echo x > {bob}/planted.txt",
            f"cat {server.data_dir}/users/bob/sessions/projects/*/*.jsonl",
        )
        _, shown = await users.play("ada", *map(bash, hostile))
        assert shown.count("refused") >= len(shell_attempts(bob)) - 1
        assert_nothing_happened(bob, ada, shown)
        statuses, shown = await users.play(
            "bob",
            bash(f"cat {handbook}/page.md secret.txt"),
            bash(f"echo x > {handbook}/new.md"),
            bash(f"rm {handbook}/page.md"),
        )
        assert (statuses, PAGE in shown, SECRET in shown) == (
            ["ok", "failed", "failed"],
            True,
            True,
        )
        statuses, _ = await users.play("ada", bash(f"echo news > {handbook}/new.md"))
        assert (statuses, (handbook / "new.md").read_text("utf-8")) == (["ok"], "news\n")
    finally:
        assert await anyio.to_thread.run_sync(server.stop) == 0


def test_a_start_that_could_not_keep_users_apart_is_refused(tmp_path: Path) -> None:
    settings, _ = lay_ground(tmp_path)
    done = run_app(directory=tmp_path, workspaces="per_user")
    assert "set CANDOR_TOKENS_FILE or CANDOR_IDENTITY_HEADER" in one_sentence(done.stderr)
    login = tmp_path / ".claude/.credentials.json"
    login.parent.mkdir()
    login.write_text('{"claudeAiOauth": {"accessToken": "x"}}', encoding="utf-8")
    done = run_app(directory=tmp_path, demo="off", **settings)
    assert "set a key, such as ANTHROPIC_API_KEY" in one_sentence(done.stderr)


def test_the_configuration_of_a_user_is_approved_and_an_editor_opens_a_users_folder(
    tmp_path: Path,
) -> None:
    settings, _ = lay_ground(tmp_path)
    acting = tmp_path / "workspace/users/bob/.claude/settings.json"
    acting.parent.mkdir()
    acting.write_text(
        '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}}',
        encoding="utf-8",
    )

    def run(*words: str, **more: Any) -> tuple[int, str]:
        done = run_app(*words, directory=tmp_path, **{**settings, **more})
        return done.returncode, one_sentence(done.stderr) if done.stderr else done.stdout

    assert run("policy", "trust") == (1, "Each user has a workspace: name one with --user.")
    assert "hooks.SessionStart" in run("policy", "trust", "--user", "bob")[1]
    found = run("doctor", port=0)[1]
    assert "policy trust --user NAME" in found
    assert "Each user works in a folder of their own; shared projects beside it: 1." in found
    assert run("policy", "trust", "--user", "bob", "--yes")[0] == 0
    assert "Nothing in" in run("policy", "trust", "--user", "bob")[1]
    assert "Nothing in" in run("policy", "trust", "--user", "ada")[1]
    shared = {"workspaces": "shared", "projects_file": ""}
    for words in (["trust"], ["explain", "ls"]):
        assert "--user is for" in run("policy", *words, "--user", "bob", **shared)[1]
    (tmp_path / "token").write_text("candor_unknown", encoding="utf-8")
    for given in ([], ["--token-file", str(tmp_path / "token")]):
        assert "Each user has a workspace: give a token" in run("acp", *given)[1]


def test_a_call_is_explained_as_judged_in_the_folder_and_projects_of_a_user(tmp_path: Path) -> None:
    settings, _ = lay_ground(tmp_path)
    (tmp_path / "workspace/users/ada").mkdir()
    handbook = f"{tmp_path}/workspace/shared/handbook"
    told = {}
    for user in ("ada", "bob"):
        for tool, given in (
            ("Read", {"file_path": f"{handbook}/page.md"}),
            ("Write", {"file_path": f"{handbook}/new.md", "content": "x"}),
            ("Read", {"file_path": f"{tmp_path}/workspace/users/bob/secret.txt"}),
        ):
            words = ("--user", user, "--tool", tool, "--input", json.dumps(given))
            done = run_app("policy", "explain", *words, directory=tmp_path, **settings)
            told[user, given["file_path"].rpartition("/")[2]] = done.stdout.partition(":")[0]
    assert told == {
        ("ada", "page.md"): "Allowed",
        ("ada", "new.md"): "Allowed",
        ("ada", "secret.txt"): "Denied",
        ("bob", "page.md"): "Allowed",
        ("bob", "new.md"): "Denied",
        ("bob", "secret.txt"): "Allowed",
    }
    done = run_app("policy", "explain", "ls users/bob", directory=tmp_path, **settings)
    assert one_sentence(done.stderr).startswith("Each user has a workspace: ")
    done = run_app("policy", "rules", "--user", "bob", directory=tmp_path, **settings)
    assert f"+ {handbook} (read-only)" in done.stdout


async def test_what_all_users_had_stays_where_it_was_and_conversations_go_on(
    tmp_path: Path,
) -> None:
    settings, tokens = lay_ground(tmp_path)
    shared = {"tokens_file": settings["tokens_file"]}
    note = step("Write", file_path="memory/old.md", content="# Old\n\nThe word is Wrybill.\n")
    notes = "/memory/search?q=Wrybill&kinds=note"
    async with (
        running_server(tmp_path, demo_cadence_ms=0, **shared) as server,
        Users(server, tokens).client("ada") as ada,
    ):
        before = await ada.ask(script(note, {"text": "Kept."}))
        await ada.wait_until(notes, lambda answer: bool(answer["items"]))
    async with (
        running_server(tmp_path, demo_cadence_ms=0, **settings) as server,
        Users(server, tokens).client("ada") as ada,
    ):
        assert (await ada.get(notes))["items"] == []
        read = step("Read", file_path=f"{server.workspace}/memory/old.md")
        after = await ada.ask(script(read, {"text": "Done."}), before["conversation_id"])
    assert "session_lost" in [notice["code"] for notice in after["notices"]]
    assert after["tools"][0]["status"] == "denied"
    assert "Wrybill" in await anyio.Path(tmp_path / "workspace/memory/old.md").read_text("utf-8")

"""A server that cannot start: one sentence for the person at the terminal, an exit code, nothing left behind."""

import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import claude_agent_sdk
import httpx
import pytest

from gateway.engine.processes import owner_of
from tests.support.live_server import agents_of, running_server, script, started_server
from tests.support.program import (
    environment,
    one_sentence,
    run_app,
    run_program,
    start_app,
)

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX"),
]


def unprivileged() -> list[str]:
    """Return what makes root an ordinary user to the file system; nothing for whoever is one."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("this machine has no setpriv to give root's privileges up with")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"]


def refused(done: subprocess.CompletedProcess[str], tmp_path: Path, code: int = 1) -> str:
    """Return the one sentence of a start that failed, which left no process."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert not agents_of(owner_of(tmp_path / "data"))
    return one_sentence(done.stderr)


WRONG_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "workspaces without users": {"workspaces": "per_user", "users": "off"},
    "a node without its database": {"node_url": "http://10.0.0.5:8000"},
    "a policy file that is not TOML": {"policy_file": "{file}"},
    "an MCP file that is not TOML": {"mcp_file": "{file}"},
    "a projects file that is not TOML": {
        "projects_file": "{file}",
        "workspaces": "per_user",
        "users": "on",
    },
    "a memory policy file that is not TOML": {"memory_policy_file": "{file}"},
    "a file of secrets that is not TOML": {"shell_secrets_file": "{file}", "shell": "sandboxed"},
    "a workspace that is a file": {"workspace": "{file}"},
    "logs in the workspace behind the wall": {"log_dir": "{workspace}/logs", "sandbox": "require"},
    "a tokens file that is missing": {"tokens_file": "{workspace}/tokens"},
    "a memory service without its address": {"memu": "server"},
}


@pytest.mark.parametrize("case", WRONG_SETTINGS)
def test_a_wrong_setting_exits_with_2_so_that_it_is_not_started_again(
    tmp_path: Path, case: str
) -> None:
    file, workspace = tmp_path / "file", tmp_path / "workspace"
    file.write_text("[", "utf-8")
    settings: dict[str, Any] = {
        name: value.format(file=file, workspace=workspace)
        for name, value in WRONG_SETTINGS[case].items()
    }
    refused(run_app("demo", directory=tmp_path, **settings), tmp_path, code=2)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_app("demo", directory=tmp_path, port=port)
    assert refused(done, tmp_path) == (
        f"Port {port} on 127.0.0.1 cannot be used (Address already in use);"
        " set CANDOR_PORT to another, or to 0 for a free one."
    )


def test_a_port_that_is_not_ours(tmp_path: Path) -> None:
    """Below the bound is root's; where a machine sets it to 0, as for containers, every port is everybody's."""
    bound = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if bound.is_file() and int(bound.read_text("utf-8")) == 0:
        with started_server(tmp_path, port=1, prefix=unprivileged()) as server:
            assert server.url == "http://127.0.0.1:1"
        return
    done = run_app("demo", directory=tmp_path, port=1, prefix=unprivileged())
    assert refused(done, tmp_path, code=2).startswith(
        "Port 1 on 127.0.0.1 cannot be used (Permission denied)"
    )


def test_an_address_that_is_not_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    assert run_app("token", "ada", directory=tmp_path, tokens_file=file).returncode == 0
    done = run_app("demo", directory=tmp_path, host="192.0.2.1", tokens_file=file)
    assert refused(done, tmp_path).startswith("Port 0 on 192.0.2.1 cannot be used (")


def test_an_open_door_without_tokens(tmp_path: Path) -> None:
    done = run_app("demo", directory=tmp_path, host="0.0.0.0")
    assert refused(done, tmp_path, code=2).startswith(
        "CANDOR_HOST=0.0.0.0 can be reached from other"
    )
    assert not list(tmp_path.iterdir())
    done = run_app("demo", directory=tmp_path, host="0.0.0.0", tokens_file=tmp_path / "none")
    sentence = refused(done, tmp_path, code=2)
    assert sentence.startswith(f"The tokens file {tmp_path / 'none'} cannot be read")


@pytest.mark.parametrize("what", ["none", "a file"])
def test_a_model_of_vectors_that_is_not_there(tmp_path: Path, what: str) -> None:
    path = tmp_path / "model"
    if what == "a file":
        path.touch()
    given: dict[str, Any] = {"embedder": "onnx", "embeddings_path": path}
    sentence = refused(run_app("demo", directory=tmp_path, **given), tmp_path, code=2)
    assert sentence.startswith(f"CANDOR_EMBEDDINGS_PATH={path} is not a folder")
    assert not (tmp_path / "data").exists()
    found = run_app("doctor", directory=tmp_path, **given)
    assert found.returncode == 1
    assert f"fault  {sentence}" in found.stdout


PLACES = {
    "data_dir": "CANDOR_DATA_DIR",
    "log_dir": "CANDOR_LOG_DIR",
    "workspace": "CANDOR_WORKSPACE",
}


@pytest.mark.parametrize(
    ("place", "how"),
    [
        ("data_dir", "missing below a closed folder"),
        ("log_dir", "read-only"),
        ("workspace", "a file"),
    ],
)
def test_a_directory_that_cannot_be_used(tmp_path: Path, place: str, how: str) -> None:
    prefix = unprivileged()
    closed = tmp_path / "closed"
    if how == "a file":
        closed.write_text("no folder", "utf-8")
    else:
        closed.mkdir()
        closed.chmod(0o555)
    target = closed / "new" if how.startswith("missing") else closed
    try:
        done = run_app(
            "demo", directory=tmp_path, environ={PLACES[place]: str(target)}, prefix=prefix
        )
    finally:
        closed.chmod(0o755)
    sentence = refused(done, tmp_path, code=2)
    assert str(closed) in sentence
    assert PLACES[place] in sentence


def test_a_workspace_that_is_missing_is_made(tmp_path: Path) -> None:
    target = tmp_path / "not" / "yet" / "工作 区"
    with started_server(tmp_path, workspace=target, prewarmed_clients=0) as server:
        assert (target / "memory" / "README.md").is_file()
        assert (target / ".claude" / "skills" / "memory-capture" / "SKILL.md").is_file()
        assert server.workspace == target


def test_no_agent_program(tmp_path: Path) -> None:
    """The SDK as it comes for a system that it carries no program for, and none on the path."""
    package = Path(claude_agent_sdk.__file__).parent
    bare = tmp_path / "packages" / package.name
    shutil.copytree(package, bare, ignore=shutil.ignore_patterns("_bundled"))
    environ = {"PYTHONPATH": str(bare.parent), "PATH": str(tmp_path / "nothing")}
    done = run_app("demo", directory=tmp_path, environ=environ)
    assert refused(done, tmp_path).startswith("No agent program was found")
    examined = run_app("doctor", directory=tmp_path, environ=environ)
    assert examined.returncode == 1
    assert "fault  No agent program" in examined.stdout
    assert "Traceback" not in examined.stderr


async def test_a_second_server_on_the_same_data_is_refused_by_name(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, prewarmed_clients=0) as first,
        first.client() as client,
    ):
        told = await client.ask(script({"text": "First."}))
        agents = set(first.agents())
        port = int(first.url.rpartition(":")[2])
        for taken in (0, port):
            done = run_app("demo", directory=tmp_path, port=taken)
            assert (done.returncode, done.stdout) == (1, "")
            assert one_sentence(done.stderr).startswith(
                f"Another Candor server (process {first.process.pid} on {socket.gethostname()})"
                " uses this data directory; stop it, or give this one its own with CANDOR_DATA_DIR"
            )
        assert set(first.agents()) == agents, "the second took the first one's agents for orphans"
        again = await client.ask(script({"text": "Still."}), told["conversation_id"])
        assert again["reply"] == "Still."
    async with running_server(tmp_path, prewarmed_clients=0):
        pass  # the lock went with its server


@pytest.mark.parametrize("content", [b"no database at all" * 100, None], ids=["damaged", "newer"])
def test_a_database_that_cannot_be_used(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "candor.sqlite3"
    if content is None:
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA user_version=9999")
        database.close()
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    done = run_app("demo", directory=tmp_path)
    sentence = refused(done, tmp_path)
    assert sentence.startswith("The database ")
    assert sentence.endswith("Look at the directory of CANDOR_DATA_DIR.")
    assert file.read_bytes() == before


def make_newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version=99")


def damage(file: Path, start: int, end: int) -> None:
    content = bytearray(file.read_bytes())
    content[start:end] = random.Random(1).randbytes(end - start)
    file.write_bytes(content)


DAMAGED: Mapping[str, Callable[[Path], None]] = {
    "newer": make_newer,
    "its head": partial(damage, start=0, end=5_000),
    "its tables": partial(damage, start=20 * 4096, end=40 * 4096),
}


def run_doctor(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `doctor`, which may change no file of a database, nor make one beside it."""

    def contents() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in (directory / "data").glob("*.sqlite3*")}

    before = contents()
    done = run_app("doctor", directory=directory)
    assert contents() == before
    assert done.stderr == ""
    return done


@pytest.mark.parametrize("case", DAMAGED)
def test_doctor_says_why_a_start_would_refuse_the_file(tmp_path: Path, case: str) -> None:
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    assert run_doctor(tmp_path).returncode == 0
    DAMAGED[case](tmp_path / "data" / "candor.sqlite3")
    found = run_doctor(tmp_path)
    sentence = refused(run_app("demo", directory=tmp_path), tmp_path)
    assert found.returncode == 1
    assert f"fault  {sentence}\n" in found.stdout


def test_doctor_finds_damage_that_a_server_finds_after_its_start(tmp_path: Path) -> None:
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    file = tmp_path / "data" / "candor.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'conversations'"
        ).fetchone()
    damage(file, (page - 1) * 4096, page * 4096)
    found = run_doctor(tmp_path)
    assert found.returncode == 1
    assert "fault  The database is damaged. " in found.stdout


def test_doctor_says_why_memory_cannot_be_opened(tmp_path: Path) -> None:
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    damage(tmp_path / "data" / "memory.sqlite3", 0, 5_000)
    found = run_doctor(tmp_path)
    assert found.returncode == 1
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("fault")]
    with started_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=30) as http:
        server.tolerated.append("memory_not_opened")
        told = http.get("/readyz").json()["parts"]["memory"]["detail"]
    assert line.removeprefix("fault  Memory cannot be used as it is. ") == told.removeprefix(
        "Memory is off since the server's start. "
    )


def test_a_directory_that_may_not_be_searched_has_no_env_file(tmp_path: Path) -> None:
    """As one of an administrator who runs a command as the server's user."""
    (tmp_path / "closed").mkdir(mode=0)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom gateway.cli import main\n"
        "sys.exit(main(home=Path(__file__).with_name('closed')))\n"
    )
    done = run_app("memory", "list", directory=tmp_path, prefix=unprivileged(), program=program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("case", ["newer", "read-only", "its head"])
def test_a_memory_is_given_up_only_if_its_file_is_damaged(tmp_path: Path, case: str) -> None:
    """A person who is told to begin with an empty one takes it for lost."""
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    file = tmp_path / "data" / "memory.sqlite3"
    if case == "read-only":
        file.chmod(0o400)
    else:
        DAMAGED[case](file)
    done = run_app("doctor", directory=tmp_path, prefix=unprivileged())
    (line,) = [line for line in done.stdout.splitlines() if "Memory cannot be used" in line]
    assert ("begin with an empty memory" in line) == (case == "its head")
    assert line.endswith("then restart the server.")


def test_a_database_that_was_lost_beside_what_belongs_to_it(tmp_path: Path) -> None:
    """Nothing is begun anew over it, and `doctor` says the same."""
    with started_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=30) as http:
        asked = http.post("/chat", json={"message": script({"text": "Before."})})
        assert asked.json()["reply"] == "Before."
    for file in (tmp_path / "data").glob("candor.sqlite3*"):
        file.unlink()
    file = tmp_path / "data" / "candor.sqlite3"
    for state in ("missing", "empty"):
        if state == "empty":
            file.touch()
        sentence = refused(run_app("demo", directory=tmp_path), tmp_path)
        assert sentence.startswith(
            f"The database candor.sqlite3 is {state}, but there are agent sessions"
        )
        assert (file.stat().st_size if file.exists() else 0) == 0
        examined = run_app("doctor", directory=tmp_path)
        assert examined.returncode == 1
        assert f"fault  {sentence}" in examined.stdout


def test_a_new_database_beside_logs_of_earlier_turns_is_noted(tmp_path: Path) -> None:
    """They may be kept for longer than the data, or CANDOR_DATA_DIR is the wrong one."""
    log = tmp_path / "logs" / "2026-11-20" / f"trn_{'a' * 26}.jsonl"
    log.parent.mkdir(parents=True)
    log.touch()
    found = run_doctor(tmp_path)
    assert found.returncode == 0
    (note,) = [line for line in found.stdout.splitlines() if "logs of earlier turns" in line]
    assert note.startswith(" note  ")
    assert "CANDOR_DATA_DIR" in note
    with started_server(tmp_path) as server:
        (warned,) = [line for line in server.log() if line["event"] == "database_begun_anew"]
    assert warned["reason"] == note.removeprefix(" note  ")
    assert "logs of earlier turns" not in run_doctor(tmp_path).stdout


def by_nobody_known(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a container's made-up user, for whom the system has no name."""
    env = environment(directory, {}, {})
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        env.pop(name, None)
    program = directory / "program.py"
    program.write_text(
        "import pwd, sys\n"
        "def unknown(_): raise KeyError\n"
        "pwd.getpwuid = unknown\n"
        "import app\n"
        "sys.exit(app.main())\n",
        encoding="utf-8",
    )
    return run_program(arguments, env, program=program)


def test_a_user_whom_the_system_does_not_know(tmp_path: Path) -> None:
    """Such a user has no home directory that anybody could name."""
    done = by_nobody_known(tmp_path, "doctor")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_user_whom_the_system_does_not_know_is_an_actor_by_number(tmp_path: Path) -> None:
    done = by_nobody_known(tmp_path, "user", "add", "ada")
    assert (done.returncode, done.stderr) == (0, "")
    told = by_nobody_known(tmp_path, "audit", "--json").stdout
    assert json.loads(told)["actor"] == f"command:{os.getuid()}"


@pytest.mark.parametrize("to", ["a reader that left", "a full disk"])
def test_nobody_reads_what_a_start_prints(tmp_path: Path, to: str) -> None:
    """Standard output read no more, or full: no reason not to serve."""
    if to == "a full disk":
        out = os.open("/dev/full", os.O_WRONLY)
    else:
        read, out = os.pipe()
        os.close(read)
    env = environment(tmp_path, {"prewarmed_clients": 0}, {})
    with (tmp_path / "err").open("wb") as err:
        process = start_app("demo", env=env, out=out, err=err.fileno())
    os.close(out)
    until = time.monotonic() + 60
    try:
        while '"event":"serving"' not in (tmp_path / "err").read_text("utf-8"):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in {0, 1}
    finally:
        process.kill()
        process.wait()
    told = (tmp_path / "err").read_text("utf-8")
    assert "Traceback" not in told
    assert '"event":"stopped"' in told


def test_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with (tmp_path / "err").open("wb") as err:
        env = environment(tmp_path, {}, {})
        process = start_app("doctor", env=env, out=full, err=err.fileno())
    os.close(full)
    assert process.wait(60) == 1
    told = (tmp_path / "err").read_text("utf-8")
    assert one_sentence(told) == "the output cannot be used (No space left on device)."

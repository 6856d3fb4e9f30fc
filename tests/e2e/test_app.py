"""`python app.py …` as a person types it: what it prints, where, and with which exit code."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.version import VERSION
from tests.support.live_server import (
    LiveServer,
    script,
    start_server,
    started_server,
)
from tests.support.program import (
    ROOT,
    environment,
    one_sentence,
    run_app,
    run_code,
    run_program,
    start_app,
)

pytestmark = pytest.mark.e2e

COMMANDS = ("serve", "demo", "doctor", "logs", "mcp", "memory", "policy", "token")


def test_help_names_the_commands(tmp_path: Path) -> None:
    for arguments in (["--help"], ["-h"]):
        done = run_app(*arguments, directory=tmp_path, nonsense="x")
        assert (done.returncode, done.stderr) == (0, "")
        assert all(re.search(rf"^\s+{name}\s", done.stdout, re.MULTILINE) for name in COMMANDS)
    for name in COMMANDS:
        done = run_app(name, "--help", directory=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert name in done.stdout


@pytest.mark.parametrize(
    ("name", "inner"), [("mcp", ("list", "accept")), ("token", ("add", "list", "revoke"))]
)
def test_the_help_of_a_command_names_the_commands_in_it(
    name: str, inner: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_app(name, "--help", directory=tmp_path)
    assert all(word in done.stdout for word in inner)


def test_the_version_is_the_one_version(tmp_path: Path) -> None:
    done = run_app("--version", directory=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"candor {VERSION}\n", "")


def test_an_unknown_command_is_refused_by_name(tmp_path: Path) -> None:
    done = run_app("dance", directory=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "dance" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


WRONG = {
    "port": ("abc", "CANDOR_PORT='abc': it is not a whole number; it takes a whole number, 0 to 65535"),
    "prot": ("8000", "CANDOR_PROT is not a setting; did you mean CANDOR_PORT?"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_one_sentence(tmp_path: Path, name: str) -> None:
    value, sentence = WRONG[name]
    wrong: dict[str, Any] = {name: value}
    done = run_app("doctor" if name == "prot" else "demo", directory=tmp_path, **wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_sentence(done.stderr).startswith(sentence)


def copy_of_the_program(directory: Path, env: bytes) -> Path:
    """Put the entry somewhere else, with a `.env` beside it."""
    directory.mkdir()
    program = Path(shutil.copy(ROOT / "app.py", directory / "app.py"))
    (directory / ".env").write_bytes(env)
    return program


def test_the_env_file_beside_the_program_is_read(tmp_path: Path) -> None:
    """What stands in the environment goes before it; a byte order mark does not matter."""
    lines = (
        "\ufeffANTHROPIC_API_KEY=sk-ant-from-file\nCANDOR_MODEL='of the file'\nCANDOR_EXTRACT=on\n"
    )
    program = copy_of_the_program(tmp_path / "copy", lines.encode())
    env = environment(tmp_path, {"port": 0, "extract": "off"}, {})
    del env["CANDOR_MODEL"], env["CANDOR_LOG_DIR"]
    done = run_program(["doctor"], env, program=program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CANDOR_MODEL=of the file   (set)" in done.stdout
    assert "CANDOR_EXTRACT=off   (set)\n" in done.stdout
    log_dir = next(line for line in done.stdout.splitlines() if line.startswith("CANDOR_LOG_DIR="))
    assert not log_dir.endswith("(set)")
    assert "The model is reached through ANTHROPIC_API_KEY." in done.stdout
    assert "sk-ant-from-file" not in done.stdout


@pytest.mark.parametrize("line", [b"A=\xff\xfe\n", b"A=b\0\n"])
def test_an_env_file_that_is_no_text_is_told(tmp_path: Path, line: bytes) -> None:
    program = copy_of_the_program(tmp_path / "copy", line)
    done = run_app("demo", directory=tmp_path, program=program)
    assert done.returncode == 2
    assert str(program.with_name(".env")) in one_sentence(done.stderr)


@pytest.mark.parametrize(
    "line", ["CANDOR_APPROVALS: on", "CANDOR_APPROVALS:on", 'CANDOR_APPROVALS="on']
)
def test_a_setting_of_the_env_file_that_cannot_be_read_is_told(tmp_path: Path, line: str) -> None:
    """Left out, it would have the server ask nobody. What is not a setting is another program's."""
    text = f"if this then\n\n{line}\nCANDOR_EXTRACT=on\n"
    program = copy_of_the_program(tmp_path / "copy", text.encode())
    done = run_app("doctor", directory=tmp_path, program=program)
    assert (done.returncode, done.stdout) == (2, "")
    told = one_sentence(done.stderr)
    assert told.startswith(f"{program.with_name('.env')}, line 3: ")


def test_doctor_finds_a_good_set_up(tmp_path: Path) -> None:
    done = run_app("doctor", directory=tmp_path, port=0)
    assert (done.returncode, done.stderr) == (0, "")
    findings, settings = done.stdout.split("\n\n", 1)
    assert {line.split()[0] for line in findings.splitlines()} == {"ok", "note"}
    assert "The agent program is there." in findings
    assert "The demo model will answer (no credential)." in findings
    assert f"CANDOR_WORKSPACE={tmp_path / 'workspace'}   (set)" in settings
    assert "CANDOR_DOOM_LOOP_THRESHOLD=5\n" in settings


def test_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_app("doctor", directory=tmp_path, port=port)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"fault  Port {port} on 127.0.0.1 cannot be used (Address already in use)" in done.stdout
    done = run_app("doctor", directory=tmp_path, host="0.0.0.0", port=0)
    assert done.returncode == 1
    assert "fault  CANDOR_HOST=0.0.0.0 can be reached from other machines" in done.stdout


@pytest.mark.parametrize("command", ["doctor", "demo"])
def test_tools_from_outside_that_cannot_be_offered_keep_the_server_from_starting(
    tmp_path: Path, command: str
) -> None:
    file = tmp_path / "mcp.toml"
    file.write_text("[servers.x]\ncommand = ['no-such-program']\n", encoding="utf-8")
    for setting, said in (
        ({"mcp_file": file}, "The program no-such-program of the MCP server x is not found"),
        ({"web_fetch": "listed"}, "CANDOR_WEB_FETCH=listed needs exact hosts under [web]"),
    ):
        done = run_app(command, directory=tmp_path, port=0, **setting)
        assert done.returncode == (1 if command == "doctor" else 2)
        assert said in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_doctor_and_the_command_mcp_name_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "mcp.toml"
    file.write_text("[servers.heron]\ncommand = ['cat']\n", encoding="utf-8")
    done = run_app("doctor", directory=tmp_path, port=0, mcp_file=file)
    assert "ok  MCP servers: heron.\n" in done.stdout
    without_box = run_app("doctor", directory=tmp_path, port=0, mcp_file=file, sandbox="off")
    assert "note  These MCP servers run without a box: heron.\n" in without_box.stdout
    listed = run_app("mcp", "list", directory=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "No MCP server was seen yet" in listed.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("app")) as server:
        yield server


@pytest.mark.parametrize("command", ["doctor", "serve"])
def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path, command: str) -> None:
    name = "NODE_EXTRA_CA_CERTS" if command == "doctor" else "CLAUDE_CODE_CLIENT_CERT"
    environ = {"ANTHROPIC_API_KEY": "sk-ant-any", name: "no.pem"}
    done = run_app(command, directory=tmp_path, port=0, environ=environ)
    assert done.returncode == (1 if command == "doctor" else 2)
    assert f"{name}=no.pem cannot be used (No such file" in done.stdout + done.stderr


def test_doctor_takes_its_own_running_server_for_no_fault(server: LiveServer) -> None:
    for port in (int(server.url.rpartition(":")[2]), 1):
        done = run_app("doctor", directory=server.workspace.parent, port=port)
        assert (done.returncode, done.stderr) == (0, "")
        findings = done.stdout.split("\n\n", 1)[0]
        assert (
            f"ok  A Candor server (process {server.process.pid} on {socket.gethostname()})"
            f" runs on this data directory and answers at {server.url}." in findings
        )
        assert "The policy's rules can be read, the directories written." in findings
        assert ("note  It does not listen on CANDOR_PORT=1;" in findings) == (port == 1)


def test_doctor_finds_faults_beside_its_running_server(server: LiveServer, tmp_path: Path) -> None:
    """The server runs on; what the next start would stumble over is told all the same."""
    wrong = tmp_path / "policy.yaml"
    wrong.write_text("nonsense: [", encoding="utf-8")
    done = run_app("doctor", directory=server.workspace.parent, policy_file=wrong)
    assert done.returncode == 1
    assert "answers at" in done.stdout
    assert "fault  " in done.stdout
    assert str(wrong) in done.stdout


def test_what_a_start_prints(server: LiveServer) -> None:
    """The address on standard output, last; on standard error nothing but our own log, as JSON."""
    said = server.said().splitlines()
    assert said == [
        "Candor runs on its built-in demo model: the answers are scripted.",
        "Set ANTHROPIC_API_KEY (also in .env) to talk to a real one.",
        f"Open {server.url}",
    ]
    (row,) = [item for item in server.log() if item["event"] == "serving"]
    assert (row["address"], row["level"], row["version"]) == (server.url, "info", VERSION)
    assert not [item for item in server.log() if item["logger"].startswith("uvicorn")]


def test_on_a_terminal_the_log_is_for_people(tmp_path: Path) -> None:
    """Columns, and Ctrl-C ends it like any stop."""
    ours, theirs = pty.openpty()
    env = environment(tmp_path, {"prewarmed_clients": 0}, {"TERM": "xterm"})
    process = start_app("demo", env=env, out=theirs, err=theirs, given=theirs)
    os.close(theirs)
    told = b""
    try:
        while b"Open http" not in told:
            told += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        try:
            while more := os.read(ours, 4096):
                told += more
        except OSError:  # nobody holds the other end any more
            pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", told.decode())
    assert '{"ts"' not in text
    assert re.search(r"\[info\s*\] serving .*address=http://127\.0\.0\.1:\d+", text)
    assert re.search(r"\[info\s*\] stopping .*signal=SIGINT", text)
    assert "Traceback" not in text


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    return server.new_conversation()


async def test_a_reader_that_has_seen_enough_is_no_fault(
    server: LiveServer, conversation: str
) -> None:
    """`| head`, where more is to come than a pipe holds, and a reader that reads nothing at all."""
    async with server.client() as client:
        text = {"text": "many words " * 8_000, "delta_delay_ms": 0}
        result = await client.ask(script(text), conversation)
    env = environment(server.workspace.parent, {}, {"PYTHONUNBUFFERED": ""})
    commands = [
        f"logs show {result['turn_id']} --json | head -c 1",
        "logs | true",
    ]
    for command in commands:
        done = subprocess.run(  # noqa: ASYNC221  nothing else runs here
            ["bash", "-c", f'"$0" app.py {command}; echo "${{PIPESTATUS[0]}}"', sys.executable],
            cwd=ROOT,
            env=env,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.stderr, done.stdout[-2:-1]) == (b"", b"0"), command


async def test_logs_are_followed(server: LiveServer, conversation: str) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220  read without waiting below
        [sys.executable, ROOT / "app.py", "logs", "follow"],
        cwd=ROOT,
        env=environment(server.workspace.parent, {}, {}) | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    told = b""
    until = time.monotonic() + 40
    try:
        async with server.client() as client:
            while b"Followed." not in told and time.monotonic() < until:
                await client.ask(script({"text": "Followed."}), conversation)
                told += process.stdout.read() or b""
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
        assert b"Followed." in told + rest
        assert (process.returncode, errors) == (0, b"")
    finally:
        process.kill()
        process.wait()


def test_a_fault_of_the_program_is_in_the_log_and_one_sentence(tmp_path: Path) -> None:
    program = (
        "import sys, app, gateway.serve\n"
        "async def serve(*_, **__): raise RuntimeError('boom')\n"
        "gateway.serve.serve = serve\n"
        "sys.exit(app.main(['demo']))\n"
    )
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = run_program([], environment(tmp_path, {}, {}), program=file)
    assert (done.returncode, done.stdout) == (70, "")
    logged, told = done.stderr.splitlines()
    assert json.loads(logged)["event"] == "server_failed"
    assert "boom" in json.loads(logged)["exception"]
    assert one_sentence(told) == "The server failed; its log above says why."


def test_the_collector_never_looks_through_all_modules(tmp_path: Path) -> None:
    """All streams would stand still meanwhile; neither those of the start nor the vector index's."""
    program = """if True:
        import gc, os, signal, sys, app
        freeze, spared = gc.freeze, []
        def counting():
            freeze()
            spared.append(gc.get_freeze_count())
            if len(spared) == 2:
                os.kill(os.getpid(), signal.SIGTERM)
        gc.freeze = counting
        os.environ["CANDOR_EMBEDDER"] = "multilingual"
        code = app.main(["demo"])
        print(spared[0] > 100_000, "chromadb" in sys.modules, spared[1] > spared[0])
        sys.exit(code)
    """
    done = run_code(program, environment(tmp_path, {}, {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True True True"


def test_nobody_waits_for_a_last_collection(tmp_path: Path) -> None:
    """When all is closed the interpreter would go through all modules once more: seconds on a busy machine."""
    program = """if True:
        import gc, runpy, sys
        leave = sys.exit
        def leaving(code):
            gc.callbacks.append(lambda phase, told: print(phase, told, file=sys.stderr, flush=True))
            leave(code)
        sys.exit, sys.argv = leaving, ["app.py", "logs"]
        runpy.run_path("app.py", run_name="__main__")
    """
    done = run_code(program, environment(tmp_path, {}, {}))
    assert (done.returncode, done.stderr) == (0, "")


def test_relative_directories_lie_beside_the_program(tmp_path: Path) -> None:
    program = copy_of_the_program(tmp_path / "copy", b"")
    places: dict[str, Any] = {"workspace": "w", "data_dir": "d", "log_dir": "l", "tokens_file": "t"}
    done = run_app("token", "ada", directory=tmp_path, program=program, **places)
    assert done.returncode == 0
    assert (program.parent / "t").is_file()
    del places["tokens_file"]
    done = run_app("doctor", directory=tmp_path, program=program, **places)
    assert done.returncode == 0
    assert {"w", "d", "l"} <= {entry.name for entry in program.parent.iterdir()}


def test_the_installed_command_works_in_the_current_directory(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text("CANDOR_MODEL=of the file\n", encoding="utf-8")
    env = environment(tmp_path, {"port": 0}, {"PYTHONPATH": str(ROOT)})
    for name in ("MODEL", "WORKSPACE", "DATA_DIR", "LOG_DIR"):
        del env[f"CANDOR_{name}"]
    done = run_code("from gateway.cli import run; run()", env, "doctor", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CANDOR_MODEL=of the file   (set)" in done.stdout
    assert {path.name for path in home.iterdir()} == {".env", "workspace", ".candor", "logs"}


def test_a_start_and_a_stop_leave_no_process(tmp_path: Path) -> None:
    """Straight after the address was told, while agents are still being warmed; without a word or a key."""
    server = start_server(tmp_path, command=None, prewarmed_clients=2)
    assert server.said().startswith("Candor runs on its built-in demo model")
    assert server.stop() == 0
    assert not server.agents()
    assert not server.faults()

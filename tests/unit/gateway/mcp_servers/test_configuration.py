"""The operator's file of MCP servers: what it says, and each mistake in one sentence."""

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import StartError
from gateway.mcp_servers.configuration import (
    ServerConfig,
    load_servers_blocking,
    read_secrets_blocking,
)

ROOT = Path(__file__).resolve().parents[4]
WHOLE = """
[servers.files]
command = ["mcp-server-filesystem", "/srv/handbook"]
tools = ["read_file", "write_file"]
reading = ["read_file"]
ask = "always"
start_s = 20
call_s = 5.5
environment = { LANG = "C.UTF-8" }
secrets = { TOKEN = { env = "FILES_TOKEN" } }
programs = ["/opt/mcp"]
reads = ["/srv/handbook"]
writes = ["/srv/drafts"]
workspace = "read"
network = [443]

[servers.remote]
url = "https://mcp.example.com/mcp"
secrets = { Authorization = { file = "/run/secrets/remote", before = "Bearer " } }
"""
COMMAND = "[servers.x]\ncommand = ['x']\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mcp.toml"
    file.write_text(text, encoding="utf-8")
    return file


def fault(tmp_path: Path, text: str, **options: Any) -> str:
    """Return the sentence about a file, without its beginning."""
    file = written(tmp_path, text)
    with pytest.raises(StartError) as caught:
        load_servers_blocking(file, **options)
    said = str(caught.value)
    assert said.startswith(f"The MCP file {file}: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said.removeprefix(f"The MCP file {file}: ")


def test_a_server_is_what_the_file_says(tmp_path: Path) -> None:
    servers = load_servers_blocking(written(tmp_path, WHOLE))
    files = servers["files"]
    assert files.tools == ("read_file", "write_file")
    assert (files.start_s, files.call_s, files.workspace, files.network) == (
        20,
        5.5,
        "read",
        (443,),
    )
    assert (files.programs, files.reads, files.writes) == (
        (Path("/opt/mcp"),),
        (Path("/srv/handbook"),),
        (Path("/srv/drafts"),),
    )
    assert servers["remote"].url == "https://mcp.example.com/mcp"


def test_a_tool_that_the_file_does_not_call_reading_changes_something(tmp_path: Path) -> None:
    files = load_servers_blocking(written(tmp_path, WHOLE))["files"]
    read, write = files.rule_of("read_file"), files.rule_of("write_file")
    assert (read.changes, write.changes) == (False, True)
    assert (read.ask, write.ask) == ("always", "always")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[servers.x]\n", "servers.x: it must have either command or url."),
        (f"{COMMAND}url = 'https://a.example'", "servers.x: it must have either command or url."),
        (f"{COMMAND}tool = ['a']", "servers.x.tool is not known; did you mean tools."),
        ("[server.x]\n", "server is not known; did you mean servers."),
        (f"{COMMAND}reads = ['docs']", "servers.x: docs must be an absolute path."),
        (
            "[servers.x]\nurl = 'https://a.example'\nworkspace = 'read'",
            "servers.x: workspace is for servers with a command.",
        ),
        (
            f"{COMMAND}secrets = {{ A = {{ env = 'B', file = '/c' }} }}",
            "servers.x.secrets.A: it must name either env or file.",
        ),
        (
            f"{COMMAND}secrets = {{ A = {{ value = 'sesame-4711' }} }}",
            "servers.x.secrets.A.value is not known; known are before, env, file.",
        ),
        (
            f"{COMMAND}ask = 'sometimes'",
            "servers.x.ask: input should be 'changes', 'always' or 'never'.",
        ),
        ("[servers.memory]\ncommand = ['x']", "servers.memory: the name is taken; choose another."),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert fault(tmp_path, text) == said


def test_what_is_no_toml_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path, "servers = [").startswith("it is not TOML in UTF-8 (")
    assert fault(tmp_path, f"a = '{'x' * 300_000}'").startswith("it is larger than")


def test_a_name_with_what_tells_tools_apart_is_refused(tmp_path: Path) -> None:
    for name in ("a__b", "A", "a_b", "-a", "a.b"):
        assert "servers" in fault(tmp_path, f"[servers.'{name}']\ncommand = ['x']")


def test_a_file_that_the_agent_could_change_is_refused(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    inside = workspace / "mcp.toml"
    inside.write_text(COMMAND, encoding="utf-8")
    link = tmp_path / "link.toml"
    link.symlink_to(inside)
    for file in (inside, link):
        with pytest.raises(StartError, match="where the agent could change it"):
            load_servers_blocking(file, [workspace])


def test_secrets_come_from_where_the_file_says(tmp_path: Path) -> None:
    kept = tmp_path / "secret"
    kept.write_text("open-sesame\n", encoding="utf-8")
    text = WHOLE.replace("/run/secrets/remote", str(kept))
    servers = load_servers_blocking(written(tmp_path, text))
    environ = {"FILES_TOKEN": "token-4711"}
    assert read_secrets_blocking("files", servers["files"], environ) == {"TOKEN": "token-4711"}
    assert read_secrets_blocking("remote", servers["remote"], environ) == {
        "Authorization": "Bearer open-sesame"
    }


def test_a_secret_that_is_missing_or_of_two_lines_keeps_the_server_from_starting(
    tmp_path: Path,
) -> None:
    files = load_servers_blocking(written(tmp_path, WHOLE))["files"]
    for environ in ({}, {"FILES_TOKEN": " "}, {"FILES_TOKEN": "a\r\nX-Other: b"}):
        with pytest.raises(StartError, match="The secret TOKEN of the MCP server files is not in"):
            read_secrets_blocking("files", files, environ)


def test_the_documented_file_is_one_and_every_key_is_documented(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    sample = text.partition("```toml\n")[2].partition("```")[0]
    assert [*load_servers_blocking(written(tmp_path, sample))] == ["time", "git", "tickets"]
    rows = re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == {*ServerConfig.model_fields}

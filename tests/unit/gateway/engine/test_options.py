"""Options and environment of the agent process, and what is used of the SDK."""

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
from claude_agent_sdk._internal.query import Query

from gateway.engine.environment import DEFAULT_BASE_URL, KEEPS, PROVIDERS, agent_environment, pins
from gateway.engine.hooks import RunHooks
from gateway.engine.options import HOST_ROUTES, AgentSetup, advisory_schema, build_options
from gateway.engine.own_tools import OwnServer, OwnTool
from gateway.engine.private_sdk import MessageParseError, SubprocessCLITransport, parse_message
from gateway.engine.processes import MARK
from gateway.engine.protocol import ClientSpec, EngineUnavailable, SessionOrigin, WorkspaceUntrusted
from gateway.engine.sdk import SdkEngine
from gateway.trust import TrustReport
from memory.cases import tools
from policies.paths.workspace import ExtraDirectory

SETUP = AgentSetup(
    cli_path=Path("/agent"),
    workspace=Path("/ws"),
    config_dir=Path("/data/sessions"),
    tools=("Read", "Bash"),
    shell_commands=("cat", "ls"),
    owner="owner",
    model_env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
)
SPEC = ClientSpec(model="m")
HERONRY = OwnServer("heronry", (OwnTool("count", "Counts herons.", {"type": "object"}),), "heron")


def options(origin: SessionOrigin | None = None, **changes: Any) -> ClaudeAgentOptions:
    setup = replace(SETUP, **changes)
    return build_options(setup, SPEC, origin or SessionOrigin(), RunHooks(), "c1")


def test_only_the_projects_settings_and_the_named_tools_are_loaded() -> None:
    """Field log, problems 1 and 3: skills come with the project; user settings bring servers."""
    made = options()
    assert made.setting_sources == ["project"]
    assert made.strict_mcp_config is True
    assert made.mcp_servers == {}
    assert made.tools == ["Read", "Bash"]
    assert made.allowed_tools == []
    assert {"Agent", "Monitor", "Workflow", "CronCreate", "ToolSearch"} <= set(
        made.disallowed_tools
    )
    assert "Bash" not in options(tools=("Bash", "Agent")).disallowed_tools
    assert "Agent" not in options(tools=("Bash", "Agent")).disallowed_tools
    assert made.permission_mode is None


def test_a_sub_agent_has_the_tools_for_files_and_commands_and_no_person() -> None:
    persons = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
    made = options(tools=("Agent", "Bash", "Read", "TaskCreate", "TaskList", *persons))
    assert made.agents is not None
    (definition,) = made.agents.values()
    assert (definition.tools, definition.background) == (["Bash", "Read"], False)
    assert (definition.model, definition.mcpServers, definition.permissionMode) == (None,) * 3
    assert made.env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert made.env["CLAUDE_CODE_ENABLE_TASKS"] == "1"
    without = options(tools=("Bash",))
    assert (without.agents, without.env["CLAUDE_CODE_ENABLE_TASKS"]) == (None, "0")


def test_shared_projects_are_told_with_their_rights() -> None:
    book, plans = (ExtraDirectory(path=Path(path), writable=path == "/p") for path in ("/b", "/p"))
    made = options(tools=("Agent", "Read"), projects=(book, plans))
    assert made.agents is not None
    for told in (made.system_prompt, *made.agents.values()):
        assert "`/b` (read only), `/p`." in str(told)


def test_an_agent_is_told_whose_notes_it_writes() -> None:
    for is_users_own, told in ((False, "everybody in the workspace"), (True, "nobody else reads")):
        made = options(is_users_own=is_users_own)
        assert [words in str(made.system_prompt) for words in (told, "folder `memory/`")] == [
            True
        ] * 2


def test_every_call_is_asked_for_and_no_file_has_hooks() -> None:
    given = options().settings
    assert given is not None
    settings = json.loads(given)
    assert settings["permissions"] == {"ask": ["*"]}
    assert settings["disableAllHooks"] is True
    assert settings["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert settings["apiKeyHelper"] == settings["awsAuthRefresh"] == ""
    assert settings["enableAllProjectMcpServers"] is False
    assert [glob[:20] for glob in settings["claudeMdExcludes"]] == ["**/{.[eE][nN][vV]*,*"]
    assert settings["cleanupPeriodDays"] > 10_000


def test_the_gate_stands_twice_and_fails_closed_and_prompts_are_left_as_they_are() -> None:
    made = options()
    assert made.can_use_tool is not None
    assert made.hooks is not None
    (matcher,) = made.hooks["PreToolUse"]
    assert (matcher.matcher, matcher.on_failure, len(matcher.hooks)) == (None, "block", 1)
    assert (made.max_buffer_size or 0) >= 16 * 1024 * 1024
    assert made.include_partial_messages is True


ENVIRONMENTS: list[tuple[dict[str, Any], dict[str, str | None]]] = [
    ({}, {MARK: "owner:c1", "CLAUDE_CONFIG_DIR": "/data/sessions", HOST_ROUTES: "1"}),
    ({}, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}),
    ({"config_dir": None}, {"CLAUDE_CONFIG_DIR": None}),
    ({"workspace": Path("/a/b/ws")}, {"CLAUDE_CODE_AUTOMOUNT_ROOTS": "/a/b:/a:/"}),
    # the host rules the routes unless a person is logged in
    ({"takes_login": True}, {HOST_ROUTES: None}),
    # temporary files go where no other user can foresee their names
    ({"temp_dir": Path("/data/tmp")}, {"TMPDIR": "/data/tmp", "CLAUDE_CODE_TMPDIR": "/data/tmp"}),
]


def test_the_environment_says_what_the_process_may_know() -> None:
    for changes, expected in ENVIRONMENTS:
        env = options(**changes).env
        assert {name: env.get(name) for name in expected} == expected
        told = {name for name, value in expected.items() if value is not None}
        assert told <= set(env[KEEPS].split(" ")), "the launcher takes away what it is not told of"


def test_the_launcher_is_told_every_name_that_is_meant_for_the_agent() -> None:
    env = options(inherited=("LANG", "ANTHROPIC_API_KEY"), home=Path("/data/home")).env
    kept = set(env[KEEPS].split(" "))
    assert env.keys() - {KEEPS} <= kept
    assert {"LANG", "ANTHROPIC_API_KEY", "HOME", "PWD", "CLAUDE_CODE_ENTRYPOINT"} <= kept
    assert KEEPS not in kept
    assert (env["HOME"], env["SHELL"]) == ("/data/home", "/bin/bash")
    assert "LANG" not in env


def test_the_settings_repeat_no_secret() -> None:
    """They stand on the agent's command line."""
    made = options(
        inherited=("ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY"),
        model_env={"ANTHROPIC_API_KEY": "secret-4711", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
    )
    assert made.settings is not None
    assert "secret-4711" not in made.settings
    pinned = json.loads(made.settings)["env"]
    assert not {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HTTPS_PROXY"} & pinned.keys()
    assert pinned["HTTP_PROXY"] == pinned["BASH_ENV"] == ""


def test_a_skill_of_tools_of_our_own_is_off_for_a_client_without_them() -> None:
    setup = replace(SETUP, own_servers=(HERONRY,))
    for spec, hidden in ((SPEC, {"heron": "off"}), (replace(SPEC, servers=(HERONRY,)), {})):
        made = build_options(setup, spec, SessionOrigin(), RunHooks(), "c1")
        assert made.settings is not None
        assert json.loads(made.settings)["skillOverrides"] == hidden
        assert isinstance(made.mcp_servers, dict)
        assert list(made.mcp_servers) == [server.name for server in spec.servers]


def test_a_wrong_argument_reaches_the_tool_and_not_the_sdks_validator() -> None:
    for form in tools.TOOLS:
        names = list(form.input_schema["properties"])
        for value in (7, "x", [1], {"a": 1}, True, None):
            jsonschema.validate(dict.fromkeys(names, value), advisory_schema(form.input_schema))


def test_a_foreign_schema_is_shown_to_the_model_and_never_evaluated() -> None:
    hostile = {"type": "string", "pattern": "(a+)+$"}
    schema = advisory_schema({"type": "object", "properties": {"a": hostile}}, is_foreign=True)
    jsonschema.validate({"a": "a" * 40 + "!"}, schema)
    assert hostile in schema["properties"]["a"]["anyOf"]


def test_a_session_is_resumed_or_branched_off() -> None:
    fresh, resumed = options(), options(SessionOrigin(resume="s"))
    forked = options(SessionOrigin(resume="s", fork_at="e"))
    told = [
        (item.resume, item.fork_session, item.resume_session_at)
        for item in (fresh, resumed, forked)
    ]
    assert told == [(None, False, None), ("s", False, None), ("s", True, "e")]


def test_the_model_is_told_what_it_may_run_and_where_its_memory_is() -> None:
    made = options(tools=("Bash", "Read", "Skill"))
    prompt = made.system_prompt
    assert isinstance(prompt, dict)
    told = str(prompt.get("prompt"))
    assert "one plain command a call: cat, ls." in told
    assert "To read them use Read." in told
    assert "`memory/`" in told
    assert "In Bash" not in str(options(tools=("Read",)).system_prompt)
    assert "workspace" not in str(options(tools=()).system_prompt)


def test_an_agent_whose_commands_run_in_a_box_is_told_so_and_starts_them_there() -> None:
    made = options(shell_prefix=Path("/data/box/run"))
    assert made.env["CLAUDE_CODE_SHELL_PREFIX"] == "/data/box/run"
    settings = json.loads(str(made.settings))
    assert settings["env"]["CLAUDE_CODE_SHELL_PREFIX"] == "/data/box/run"
    assert json.loads(str(options().settings))["env"]["CLAUDE_CODE_SHELL_PREFIX"] == ""
    told = str(made.system_prompt)
    assert "any command line, in a sandbox" in told
    assert "There is no network." in told
    assert "one plain command a call" not in told
    networked = options(shell_prefix=Path("/data/box/run"), shell_hosts=["packages.example.org"])
    assert (
        "these hosts, over https and through the proxy of the environment: packages.example.org."
        in str(networked.system_prompt)
    )


def test_what_differs_once_connected_has_another_fingerprint() -> None:
    with_server = ClientSpec(model="m", servers=(HERONRY,))
    other_tools = ClientSpec(model="m", servers=(replace(HERONRY, revision="2"),))
    specs = (ClientSpec(), ClientSpec(model="a"), SPEC, with_server, other_tools)
    assert len({spec.fingerprint for spec in specs}) == 5
    assert ClientSpec(model="m").fingerprint == SPEC.fingerprint


def test_the_sdks_own_sandbox_is_on_if_asked_for_and_approves_nothing() -> None:
    assert options().sandbox is None
    assert options(sandboxed_bash=True).sandbox == {
        "enabled": True,
        "autoAllowBashIfSandboxed": False,
        "allowUnsandboxedCommands": False,
    }


UNWANTED = [
    *("OPENAI_API_KEY", "DATABASE_URL", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "CANDOR_TOKENS_FILE", "PYTHONPATH"),
    *("LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "PATH"),
    *("HOME", "CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS"),
]
ORDINARY = ["LANG", "LC_ALL", "TZ", "TERM", "TMPDIR"]
WANTED = [
    *("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "HTTPS_PROXY"),
    *("no_proxy", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES", "NODE_EXTRA_CA_CERTS"),
    *ORDINARY,
]


def test_what_is_on_the_list_is_kept_and_nothing_else() -> None:
    assert [*agent_environment(dict.fromkeys([*UNWANTED, *WANTED], "1"))] == WANTED
    environ = dict.fromkeys([*WANTED, "CLAUDE_CODE_USE_BEDROCK"], "1")
    assert [*agent_environment(environ, demo=True)] == ORDINARY, "the demo model needs no other"


@pytest.mark.parametrize("switch", PROVIDERS)
def test_a_clouds_own_variables_come_with_its_switch(switch: str) -> None:
    other = {"bedrock": "AWS_PROFILE"}
    named = {f"{prefix}X": "x" for prefix in PROVIDERS[switch]}
    environ = {switch: "1", **named, "OPENAI_API_KEY": "x", "DATABASE_URL": "x", **other}
    kept = agent_environment(environ)
    assert kept.keys() == {switch, *named}
    for off in ("", "0", "false"):
        assert not named.keys() & agent_environment({**environ, switch: off}).keys()


def test_keys_are_not_put_where_others_can_read_them() -> None:
    env = {"ANTHROPIC_API_KEY": "secret", "HTTPS_PROXY": "http://u:secret@p", "PATH": "/bin"}
    held = pins(env, ["ls"])
    assert "secret" not in json.dumps(held)
    assert "ANTHROPIC_API_KEY" not in held
    assert held["ANTHROPIC_AUTH_TOKEN"] == ""
    assert held["ANTHROPIC_BASE_URL"] == DEFAULT_BASE_URL
    assert held["PATH"] == "/bin"
    assert held["BASH_FUNC_ls%%"] == ""
    assert {"BASH_ENV", "ENV", "LD_PRELOAD", "NODE_OPTIONS", "CLAUDE_ENV_FILE"} <= held.keys()
    assert pins({"ANTHROPIC_BASE_URL": "http://own"}, [])["ANTHROPIC_BASE_URL"] == "http://own"


def test_what_is_used_of_the_sdks_own_parts_is_there() -> None:
    assert ClaudeSDKClient()._query is None  # noqa: SLF001
    assert "self._query = Query(" in inspect.getsource(ClaudeSDKClient)
    send = Query._send_control_request  # noqa: SLF001
    assert inspect.iscoroutinefunction(send)
    assert list(inspect.signature(send).parameters) == ["self", "request", "timeout"]
    source = inspect.getsource(SubprocessCLITransport)
    assert "self._stdout_stream = TextReceiveStream(" in source
    assert "self._process = await anyio.open_process(" in source
    assert "self._max_buffer_size" in source
    assert list(inspect.signature(SubprocessCLITransport).parameters)[:2] == ["prompt", "options"]
    assert list(inspect.signature(parse_message).parameters) == ["data"]
    assert MessageParseError("x", {"a": 1}).data == {"a": 1}


ATTACK = '{"mcpServers": {"x": {"command": "x"}}}'


def setup_below(root: Path) -> AgentSetup:
    workspace, program = root / "ws", root / "agent"
    workspace.mkdir()
    program.touch()
    approvals = root / "trusted.json"
    return replace(SETUP, cli_path=program, workspace=workspace, approvals_file=approvals)


async def test_it_is_well_until_a_start_fails_or_something_acts_that_nobody_approved(
    tmp_path: Path,
) -> None:
    setup = await anyio.to_thread.run_sync(setup_below, tmp_path)  # its program cannot be run
    async with anyio.create_task_group() as tasks:
        engine = SdkEngine(setup, tasks)
        assert await engine.ping() is None
        with pytest.raises(EngineUnavailable) as failed:
            await engine.connect(ClientSpec(), SessionOrigin())
        assert await engine.ping() == str(failed.value), "the failure of the last start is told"
        await anyio.Path(setup.workspace / ".mcp.json").write_text(ATTACK)
        assert "python app.py policy trust" in (await engine.ping() or "")
        with pytest.raises(WorkspaceUntrusted) as refused:
            await engine.connect(ClientSpec(), SessionOrigin())
        assert refused.value.detail == ".mcp.json: mcpServers"
        await anyio.Path(setup.workspace / ".mcp.json").unlink()
        await anyio.Path(setup.workspace / ".claude").symlink_to(tmp_path)
        assert "cannot be judged" in (await engine.ping() or "")


async def test_a_folder_that_cannot_be_looked_at_is_no_place_to_start(tmp_path: Path) -> None:
    setup = await anyio.to_thread.run_sync(setup_below, tmp_path)

    def fail(_workspace: Path, _approvals: Path | None) -> TrustReport:
        raise PermissionError(13, "Permission denied")

    async with anyio.create_task_group() as tasks:
        engine = SdkEngine(setup, tasks, review=fail)
        assert await engine.ping() == "The workspace's configuration could not be read."
        with pytest.raises(EngineUnavailable, match="could not be read"):
            await engine.connect(ClientSpec(), SessionOrigin())
        missing = SdkEngine(replace(setup, cli_path=tmp_path / "gone"), tasks)
        assert "agent program is missing" in (await missing.ping() or "")

"""Which of the server's environment reaches an agent."""

import json

import pytest

from gateway.engine.environment import (
    DEFAULT_BASE_URL,
    KEEPS,
    PROVIDERS,
    agent_environment,
    kept_names,
    pins,
)

SECRETS = {
    "OPENAI_API_KEY": "x",
    "DATABASE_URL": "postgres://u:p@h/d",
    "GITHUB_TOKEN": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x",
    "AZURE_CLIENT_SECRET": "x",
    "CANDOR_TOKENS_FILE": "/x",
    "SSH_AUTH_SOCK": "/x",
    "PYTHONPATH": "/x",
    "LD_PRELOAD": "/x",
    "BASH_ENV": "/x",
    "NODE_OPTIONS": "--require /x",
    "XDG_CONFIG_HOME": "/x",
    "GIT_CONFIG_GLOBAL": "/x",
    "CLAUDE_CODE_SHELL_PREFIX": "/x",
    "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS": "1",
    "PATH": "/x",
    "HOME": "/x",
}
WANTED = {
    "ANTHROPIC_API_KEY": "k",
    "ANTHROPIC_BASE_URL": "u",
    "ANTHROPIC_CUSTOM_HEADERS": "h",
    "CLAUDE_CODE_OAUTH_TOKEN": "t",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "HTTPS_PROXY": "p",
    "no_proxy": "n",
    "NODE_EXTRA_CA_CERTS": "c",
    "LANG": "zh_CN.UTF-8",
    "LC_ALL": "C",
    "TZ": "UTC",
    "TERM": "xterm",
    "TMPDIR": "/tmp",
}


def test_what_is_on_the_list_is_kept_and_nothing_else() -> None:
    assert agent_environment({**SECRETS, **WANTED}) == WANTED


@pytest.mark.parametrize("switch", PROVIDERS)
def test_a_clouds_own_variables_come_with_its_switch(switch: str) -> None:
    other = {"bedrock": "AWS_PROFILE"}
    named = {f"{prefix}X": "x" for prefix in PROVIDERS[switch]}
    environ = {switch: "1", **named, "OPENAI_API_KEY": "x", "DATABASE_URL": "x", **other}
    kept = agent_environment(environ)
    assert kept.keys() == {switch, *named}
    for off in ("", "0", "false"):
        assert not named.keys() & agent_environment({**environ, switch: off}).keys()


def test_the_demo_model_needs_none_of_it() -> None:
    kept = agent_environment({**WANTED, "CLAUDE_CODE_USE_BEDROCK": "1"}, demo=True)
    assert kept.keys() == {"LANG", "LC_ALL", "TZ", "TERM", "TMPDIR"}


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


def test_the_list_for_the_launcher_holds_what_is_set_and_inherited() -> None:
    kept = kept_names(["WANTED"], ["LC_ALL"]).split(" ")
    assert {"WANTED", "LC_ALL", "HOME", "PWD"} <= set(kept)
    assert KEEPS not in kept

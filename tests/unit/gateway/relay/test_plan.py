"""When the relay can stand in between, and what it then sends."""

from collections.abc import Mapping

import pytest

from gateway.credentials import Credential
from gateway.relay.plan import agent_variables, plan_relay, proxy_for
from gateway.relay.upstream import Target

URL = "https://api.example/base"
KEY = Credential(kind="key", found="ANTHROPIC_API_KEY")
SERVER = Credential(kind="server", found="ANTHROPIC_BASE_URL")

Environ = Mapping[str, str]


@pytest.mark.parametrize(
    ("credential", "environ", "headers"),
    [
        (KEY, {"ANTHROPIC_API_KEY": " k "}, [("x-api-key", "k")]),
        (KEY, {"ANTHROPIC_AUTH_TOKEN": "t"}, [("authorization", "Bearer t")]),
        (
            KEY,
            {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"},
            [("authorization", "Bearer t"), ("x-api-key", "k")],
        ),
        (SERVER, {}, [("x-api-key", "no-key")]),
        (
            KEY,
            {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_CUSTOM_HEADERS": "A: b:c\n\nno colon\nD:e"},
            [("A", "b:c"), ("D", "e"), ("x-api-key", "k")],
        ),
    ],
)
def test_it_sends_what_the_agent_program_would(
    credential: Credential, environ: Environ, headers: object
) -> None:
    target = plan_relay(URL, credential, environ)
    assert isinstance(target, Target)
    assert target.headers == headers


@pytest.mark.parametrize(
    ("credential", "environ", "reason"),
    [
        (Credential(kind="provider", found="CLAUDE_CODE_USE_BEDROCK"), {}, "sign in (CLAUDE_CODE"),
        (Credential(kind="login", found="a login"), {}, "sign in (a login)"),
        (Credential(kind="key", found="CLAUDE_CODE_OAUTH_TOKEN"), {}, "sign in (CLAUDE_CODE_OAUTH"),
        (KEY, {"ANTHROPIC_UNIX_SOCKET": "/run/x"}, "ANTHROPIC_UNIX_SOCKET"),
        (KEY, {"HTTPS_PROXY": "socks5://p:1080"}, "proxy"),
    ],
)
def test_where_it_cannot_stand_in_between_it_says_why(
    credential: Credential, environ: Environ, reason: str
) -> None:
    assert reason in str(plan_relay(URL, credential, environ))


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "p:3128", "HTTP_PROXY": "q"}, "http://p:3128"),
        ({"HTTPS_PROXY": "http://p", "https_proxy": "http://small"}, "http://small"),
        ({"ALL_PROXY": "http://p"}, "http://p"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "other, .example"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "API.example"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "pi.example,"}, "http://p"),
        ({"HTTPS_PROXY": "http://p", "no_proxy": "*"}, None),
    ],
)
def test_the_proxy_is_the_one_that_programs_take(environ: Environ, proxy: str | None) -> None:
    assert proxy_for(URL, environ) == proxy


def test_the_relay_is_reached_past_the_proxy() -> None:
    variables = agent_variables("http://127.0.0.1:5", {"NO_PROXY": "lan"})
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:5"
    assert variables["NO_PROXY"] == variables["no_proxy"] == "lan,127.0.0.1"

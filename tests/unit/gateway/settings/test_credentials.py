import json
from pathlib import Path

from gateway.credentials import Credential, find_credential, find_login_dir, secrets_of

NONE = Credential(kind="none", found="no credential")
LOGIN = Credential(kind="login", found="a login on this machine")
ORDER = [
    ("provider", "CLAUDE_CODE_USE_BEDROCK"),
    ("provider", "CLAUDE_CODE_USE_VERTEX"),
    ("provider", "CLAUDE_CODE_USE_FOUNDRY"),
    ("provider", "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
    ("provider", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD"),
    ("provider", "CLAUDE_CODE_USE_MANTLE"),
    ("key", "ANTHROPIC_AUTH_TOKEN"),
    ("key", "ANTHROPIC_API_KEY"),
    ("key", "CLAUDE_CODE_OAUTH_TOKEN"),
    ("server", "ANTHROPIC_BASE_URL"),
]


def log_in(home: Path, config: Path | None = None) -> None:
    directory = config or home / ".claude"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".credentials.json").write_text(
        json.dumps({"claudeAiOauth": {"accessToken": "t"}}), encoding="utf-8"
    )


def test_the_agents_own_order_of_preference_is_kept(tmp_path: Path) -> None:
    log_in(tmp_path)
    environ = {name: "1" for _, name in ORDER}
    for kind, name in ORDER:
        found = find_credential(environ, tmp_path)
        assert (found.kind, found.found) == (kind, name)
        alone = find_credential({name: "hunter2"}, tmp_path)
        assert (alone.kind, alone.found) == (kind, name)
        assert "hunter2" not in repr(alone)
        del environ[name]
    assert find_credential(environ, tmp_path) == LOGIN


def test_an_empty_variable_and_a_provider_that_is_switched_off_are_none(tmp_path: Path) -> None:
    for _, name in ORDER:
        for value in ("", " ", "\t"):
            assert find_credential({name: value}, tmp_path) == NONE
    for value in ("0", "false", "No", "OFF"):
        assert find_credential({"CLAUDE_CODE_USE_BEDROCK": value}, tmp_path) == NONE


def test_where_a_login_is_kept_is_named_only_if_a_file_holds_it(tmp_path: Path) -> None:
    """A keychain goes by the directory that was not named, so none may be named then."""
    assert (find_login_dir({}, tmp_path), find_credential({}, tmp_path)) == (None, NONE)
    log_in(tmp_path)
    assert find_login_dir({}, tmp_path) == tmp_path / ".claude"
    assert find_credential({}, tmp_path) == LOGIN
    own = tmp_path / "own"
    assert find_login_dir({"CLAUDE_CONFIG_DIR": str(own)}, tmp_path) == own


def test_a_login_whose_secret_is_in_a_keychain_is_found_by_its_account(tmp_path: Path) -> None:
    state = tmp_path / ".claude.json"
    state.write_text(json.dumps({"numStartups": 3}), encoding="utf-8")
    assert find_credential({}, tmp_path) == NONE
    state.write_text(json.dumps({"oauthAccount": {"emailAddress": "a@b"}}), encoding="utf-8")
    assert find_credential({}, tmp_path) == LOGIN


def test_a_configured_directory_takes_the_place_of_home(tmp_path: Path) -> None:
    home, config = tmp_path / "home", tmp_path / "配置"
    log_in(home)
    environ = {"CLAUDE_CONFIG_DIR": str(config)}
    assert find_credential(environ, home) == NONE
    log_in(home, config)
    assert find_credential(environ, home) == LOGIN
    (config / ".credentials.json").unlink()
    (config / ".claude.json").write_text('{"oauthAccount": {"x": 1}}', encoding="utf-8")
    assert find_credential(environ, home) == LOGIN


CONTENTS = [
    *(b"", b"{", b"null", b"7", b'"oauthAccount claudeAiOauth"', b"\xff\xfe", b"[" * 100_000),
    b'["oauthAccount", "claudeAiOauth"]',
    b'{"oauthAccount": null, "claudeAiOauth": null, "mcpOAuth": {"server": {}}}',
]


def test_a_file_that_holds_no_login_is_none(tmp_path: Path) -> None:
    files = [tmp_path / ".claude" / ".credentials.json", tmp_path / ".claude.json"]
    files[0].parent.mkdir()
    for content in CONTENTS:
        for file in files:
            file.write_bytes(content)
        assert find_credential({}, tmp_path) == NONE
    for file in files:
        file.unlink()
        file.mkdir()
    assert find_credential({}, tmp_path) == NONE
    (tmp_path / "home").touch()
    assert find_credential({}, tmp_path / "home") == NONE


def test_secrets_are_the_values_of_names_that_say_so() -> None:
    environ = {
        "ANTHROPIC_API_KEY": " key-0123456789 ",
        "aws_secret_access_key": "aws-0123456789",
        "DB_PASSWORD": "pass-0123456789",
        "GH_TOKEN": "key-0123456789",
        "ANTHROPIC_CUSTOM_HEADERS": "x-auth: 0123456789",
        "SHORT_TOKEN": "1234567",
        "CANDOR_TOKENS_FILE": "/etc/candor/tokens",
        "GOOGLE_CREDENTIALS_PATH": "/etc/google.json",
        "SECRETS_DIR": "/run/secrets",
        "PATH": "/usr/local/bin",
        "EMPTY_KEY": "",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20otel-0123456789, x-team = blue-team",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=trace%2D0123456789,nonsense,x=1",
        "CANDOR_DATABASE_URL": "postgresql://me:base%400123456789@db/candor",
    }
    assert secrets_of(environ) == [
        "key-0123456789",
        "aws-0123456789",
        "pass-0123456789",
        "x-auth: 0123456789",
        "otel-0123456789",
        "blue-team",
        "trace-0123456789",
        "base%400123456789",
        "base@0123456789",
    ]

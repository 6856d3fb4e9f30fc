"""The options of `candor acp` and `candor mcp`: refused before anything is sent to a server."""

import os
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.doors.bridge_options import read_options
from gateway.errors import StartError

HERE = "http://127.0.0.1:8000"


def read(*arguments: str) -> tuple[str, str | None] | int:
    return read_options(arguments, address=HERE, program="candor acp", about=None)


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8000", "localhost", "ftp://x", "http://", "http://a b", "http://a:0", ""),
        *("http://[::1", "http://:::8000", "http://127.0.0.1:99999", "http://a:port", "http://a\n"),
    ],
)
def test_what_is_no_address_of_a_server_is_a_usage_error(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read("--url", url) == 2
    assert "is not an address such as" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://[::1]:8000", "https://candor.example/here/", HERE])
def test_an_address_is_taken_as_it_is(url: str) -> None:
    assert read("--url", url) == (url, None)


@pytest.mark.parametrize(
    "content", ["", " \n", "one\ntwo\n", "one two", "schlüssel", "令牌", "a\0b"]
)
def test_a_file_that_holds_no_token_alone_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(StartError, match="must hold one token and nothing else"):
        read("--token-file", str(file))


def test_a_token_is_read_without_what_an_editor_put_around_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\ufeff 3f79bb7b-_.~+/= \r\n")
    assert read("--token-file", str(file)) == (HERE, "3f79bb7b-_.~+/=")


@pytest.mark.parametrize("command", ["acp", "mcp"])
@pytest.mark.parametrize(
    ("host", "told"),
    [("::1", "http://[::1]:8000"), ("::", "http://[::1]:8000"), ("0.0.0.0", HERE)],
)
def test_the_address_of_the_settings_is_one_that_can_be_asked(
    command: str,
    host: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in os.environ:
        if name.startswith("CANDOR_"):  # those of the tests are no settings
            monkeypatch.delenv(name)
    monkeypatch.setenv("CANDOR_HOST", host)
    assert main([command, "--help"], home=tmp_path) == 0
    assert told in capsys.readouterr().out

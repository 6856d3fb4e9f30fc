"""The file of secrets for hosts."""

from base64 import b64encode
from pathlib import Path

import pytest

from gateway.engine.box.host_secrets import read_host_secrets_blocking
from gateway.errors import StartError

SECRET = "token_4711"
HOSTS = ["git.example.org", "api.example.org"]


def read(folder: Path, text: str) -> dict[str, tuple[str, str]]:
    path = folder / "secrets.toml"
    path.write_text(text, encoding="utf-8")
    environ = {"TOKEN": SECRET, "EMPTY": ""}
    places = {"written": [folder / "ws"], "read": [folder / "handbook"]}
    return dict(read_host_secrets_blocking(path, HOSTS, environ, **places))


def test_a_secret_is_a_password_or_the_value_of_a_header(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k-2\n", encoding="utf-8")
    found = read(
        tmp_path,
        f"""
        [hosts."git.example.org"]
        env = "TOKEN"
        user = "x-access-token"
        [hosts."api.example.org"]
        file = "{tmp_path / "key"}"
        header = "X-Api-Key"
        """,
    )
    assert found == {
        "git.example.org": (
            "authorization",
            "Basic " + b64encode(f"x-access-token:{SECRET}".encode()).decode(),
        ),
        "api.example.org": ("x-api-key", "k-2"),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[hosts."other.example.org"]\nenv = "TOKEN"', "name it in CANDOR_SHELL_HOSTS"),
        ('[hosts."git.example.org"]\nenv = "EMPTY"', "is not in the variable EMPTY"),
        (f'[hosts."git.example.org"]\nenv = "{SECRET}"', "a variable: env must be the name"),
        (f'[hosts."git.example.org"]\nfile = "{SECRET}"', "a file: file must be the path"),
        (
            '[hosts.git.example.org]\nenv = "TOKEN"',
            r'in quotation marks: \[hosts."git.example.org"',
        ),
        ('hosts.git.example.org.env = "TOKEN"', r'in quotation marks: \[hosts."git.example.org"'),
        ('[hosts."git.example.org"]\nenv = "TOKEN"\nheader = "Host"', "cannot carry a secret"),
        ('[hosts."git.example.org"]\nenv = "TOKEN"\nuser = "u"\nbefore = "x"', "neither before"),
        ('[hosts."git.example.org"]\nenv = "TOKEN"\nhaeder = "x"', "header"),
        ('[hosts."git.example.org"]\nenv = "TOKEN"\nbefore = "a\\r\\nb: "', "before must be"),
        ('[hosts."git.example.org"]\nenv = "TOKEN"\nuser = "a:b"', "no colon"),
        ('[hosts."git.example.org"]', "either env or file"),
        ("[hosts", "not TOML"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(StartError, match=told) as caught:
        read(tmp_path, text)
    assert SECRET not in str(caught.value)


def test_the_file_lies_out_of_the_agents_reach(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    with pytest.raises(StartError, match="where the agent could change it"):
        read_host_secrets_blocking(
            tmp_path / "ws/secrets.toml", HOSTS, {}, written=[tmp_path / "ws"]
        )


def test_a_secret_lies_out_of_the_agents_reach(tmp_path: Path) -> None:
    """Not even where they can only read."""
    for folder in ("ws", "handbook"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "key").write_text("k-2", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "ws/key")
    for file in (tmp_path / "ws/key", tmp_path / "link", tmp_path / "handbook/key"):
        with pytest.raises(StartError, match="where commands could read it"):
            read(tmp_path, f'[hosts."git.example.org"]\nfile = "{file}"')

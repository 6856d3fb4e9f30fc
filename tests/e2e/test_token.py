"""`python app.py token`: the tokens file it makes; tests/browser/test_tokens.py signs in with such tokens."""

import re
import stat
from pathlib import Path

import pytest

from tests.support.program import one_sentence, run_app

pytestmark = pytest.mark.e2e


def test_token_makes_a_file_for_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "who" / "tokens"
    done = run_app("token", "ada", directory=tmp_path, tokens_file=file)
    assert (done.returncode, done.stderr) == (0, "")
    sentence, token = done.stdout.splitlines()
    assert "ada" in sentence
    assert re.fullmatch(r"candor_[\w-]{43}", token)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text("utf-8")
    assert before.startswith("ada ")
    assert token not in before

    again = run_app("token", "ada", directory=tmp_path, tokens_file=file)
    assert (again.returncode, again.stdout) == (1, "")
    assert "ada has a token" in one_sentence(again.stderr)
    assert file.read_text("utf-8") == before

    file.write_text(before.rstrip("\n"), "utf-8")
    other = run_app("token", "bob", directory=tmp_path, tokens_file=file)
    assert other.returncode == 0
    assert [line.split()[0] for line in file.read_text("utf-8").splitlines()] == ["ada", "bob"]


def test_token_says_what_is_missing_or_wrong(tmp_path: Path) -> None:
    done = run_app("token", "ada", directory=tmp_path)
    assert done.returncode == 1
    assert "CANDOR_TOKENS_FILE" in one_sentence(done.stderr)
    done = run_app("token", "no spaces", directory=tmp_path, tokens_file=tmp_path / "t")
    assert done.returncode == 1
    assert one_sentence(done.stderr).startswith("A user's name is ")
    assert not (tmp_path / "t").exists()
    done = run_app("token", "ada", directory=tmp_path, tokens_file=tmp_path)
    assert done.returncode == 1
    assert str(tmp_path) in one_sentence(done.stderr)
    (tmp_path / "open").write_text("ada " + "0" * 64 + "\n", "utf-8")
    (tmp_path / "open").chmod(0o644)
    done = run_app("token", "bob", directory=tmp_path, tokens_file=tmp_path / "open")
    assert done.returncode == 2
    assert "chmod 600" in one_sentence(done.stderr)

"""A mistake in the person's own rules: the server does not start on it, and `doctor` tells it, too."""

from pathlib import Path

import pytest

from tests.support.program import one_sentence, run_app

pytestmark = pytest.mark.fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[commands]\nallow = [\n  'gerp',  # 查找\n]\n",
            ", line 3: the command gerp is not known; did you mean grep.",
        ),
        (
            "[directories]\nread_write = ['{data}']\n",
            ", line 2: {data} overlaps with the server's own",
        ),
    ],
)
def test_a_mistake_is_told_and_nothing_is_made(tmp_path: Path, text: str, said: str) -> None:
    data = str(tmp_path / "data")
    (tmp_path / "data").mkdir()
    file = tmp_path / "规则.toml"
    file.write_text(text.replace("{data}", data), encoding="utf-8")
    start = run_app("demo", directory=tmp_path, policy_file=file)
    assert (start.returncode, start.stdout) == (2, "")
    sentence = one_sentence(start.stderr)
    assert sentence.startswith(f"The policy file {file}{said.replace('{data}', data)}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", file.name]
    assert not list((tmp_path / "data").iterdir())

    examined = run_app("doctor", directory=tmp_path, policy_file=file)
    assert examined.returncode == 1
    assert f"fault  {sentence}" in examined.stdout

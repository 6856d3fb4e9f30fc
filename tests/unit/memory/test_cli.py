"""The command line on a real memory, without a server beside it."""

import io
import json
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.assemble import Memory, MemoryPlan, open_memory
from memory.cli import BAD_ARGUMENTS, FAILED, MemoryCommand
from memory.clock import utc_now
from memory.embeddings.minilm import ModelMissing
from policies.secrets import mask_secrets

IMPORT: dict[str, Any] = {
    "episode_type": "bugfix",
    "title": "Nightly import failed",
    "tags": ["import"],
    "scope": {"project_id": "billing"},
    "sections": {"pitfalls": "The proxy cuts connections after 60 s.", "recipe": "Set keepalive."},
}
DEPLOY: dict[str, Any] = {
    "episode_type": "howto",
    "title": "部署网关",
    "sections": {"recipe": "部署前先运行检查，再重启网关。"},
}


class Shell:
    """Runs commands on one memory after another process has left it."""

    def __init__(self, directory: Path, fetch: Any = None) -> None:
        self._plan = MemoryPlan(
            data_dir=directory,
            workspace=directory / "workspace",
            mask=mask_secrets,
            serves_vectors=False,
        )
        self._fetch = fetch or (lambda: None)

    def __call__(self, *args: str, given: Any = "") -> tuple[int, str]:
        out = io.StringIO()
        text = given if isinstance(given, str) else json.dumps(given)
        opening = partial(open_memory, self._plan, now=utc_now, draw=lambda: 0.0)
        command = MemoryCommand(
            open_memory=_opened(opening), owner_id="local", fetch_model=self._fetch
        )
        code = command.run(args, source=io.BytesIO(text.encode()), out=out)
        return code, out.getvalue()


def _opened(opening: Any) -> Any:
    def again() -> AbstractAsyncContextManager[Memory]:
        manager: AbstractAsyncContextManager[Memory] = opening()
        return manager

    return again


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_what_is_written_is_found_in_both_languages(shell: Shell) -> None:
    assert shell("write", given=IMPORT)[0] == 0
    assert shell("write", given=DEPLOY)[0] == 0
    code, out = shell("search", "nightly", "import")
    assert (code, out.count("Nightly import failed")) == (0, 1)
    assert "部署" not in out
    (line,) = shell("search", "怎么部署", "--json")[1].splitlines()
    assert json.loads(line)["title"] == "部署网关"


def test_the_context_is_what_a_prompt_would_get(shell: Shell) -> None:
    shell("write", given=IMPORT)
    code, out = shell("context", "nightly import", "--budget", "1200")
    assert code == 0
    assert "Nightly import failed" in out
    assert len(out) <= 1201
    assert "Nothing" in shell("context", "photosynthesis")[1]


def test_other_owners_see_nothing(shell: Shell) -> None:
    shell("write", "--owner", "ada", given=IMPORT)
    assert "Nothing was found." in shell("search", "nightly")[1]
    assert "epi_" in shell("--owner", "ada", "search", "nightly")[1]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x1e"])
def test_what_ends_a_line_elsewhere_ends_none_of_an_export(
    shell: Shell, tmp_path: Path, separator: str
) -> None:
    recipe = f"first{separator}第二行"
    shell("write", given={**IMPORT, "sections": {"recipe": recipe}})
    lines = shell("export")[1]
    (tmp_path / "other").mkdir()
    other = Shell(tmp_path / "other")
    assert other("import", given=lines) == (0, "Read 1: 1 stored.\n")
    assert other("export")[1] == lines


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_moment_that_utc_cannot_tell_is_refused(shell: Shell, moment: str) -> None:
    shell("write", given=IMPORT)
    line = json.loads(shell("export")[1])
    code, out = shell("import", given=json.dumps({**line, "occurred_at": moment}))
    assert (code, out) == (FAILED, "Line 1 is no episode that was exported here.\n")


def test_what_was_exported_is_read_elsewhere_once(shell: Shell, tmp_path: Path) -> None:
    shell("write", given=IMPORT)
    shell("write", given=DEPLOY)
    lines = shell("export")[1]
    assert len(lines.splitlines()) == 2
    (tmp_path / "other").mkdir()
    other = Shell(tmp_path / "other")
    assert other("import", given=lines) == (0, "Read 2: 2 stored.\n")
    other("import", given=lines)
    assert other("export")[1] == lines
    (tmp_path / "third").mkdir()
    third = Shell(tmp_path / "third")
    third("import", "--owner", "ada", given=lines)
    assert "epi_" in third("search", "部署", "--owner", "ada")[1]


def test_a_line_that_is_no_episode_is_named_and_nothing_is_written(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    good = shell("export")[1]
    code, out = shell("import", given=good + '{"format": "other"}\n')
    assert (code, out) == (FAILED, "Line 2 is no episode that was exported here.\n")


def test_a_rebuild_finds_the_same_again(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    code, out = shell("rebuild")
    assert (code, out.splitlines()[0]) == (0, "The words of 1 items were indexed anew.")
    assert "epi_" in shell("search", "部署")[1]


def test_deliveries_are_listed_and_made_due(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    code, out = shell("outbox", "--status", "pending")
    assert (code, out.count("→ vectors")) == (0, 1)
    number = out.split()[0]
    assert shell("retry", number)[0] == 0
    assert shell("retry", "99") == (FAILED, "There is no delivery 99.\n")
    assert shell("retry", "--dead") == (0, "Nothing was given up.\n")


def test_the_worthless_is_refused_with_the_reason(shell: Shell) -> None:
    code, out = shell(
        "write", given={"episode_type": "howto", "title": "hi", "sections": {"context": "ok"}}
    )
    assert code == FAILED
    assert out.startswith("It was refused: ")


@pytest.mark.parametrize(
    ("args", "given", "words"),
    [
        (["write"], "no json", "no JSON"),
        (["write"], "[]", "JSON object"),
        (["write"], {**DEPLOY, "episode_type": "novel"}, "must be one of"),
        (["write"], {**DEPLOY, "title": " "}, "`title`"),
        (["write"], {**DEPLOY, "tags": [1]}, "`tags`"),
        (["write"], {**DEPLOY, "sections": {"secrets": "x"}}, "`sections`"),
        (["write"], {**DEPLOY, "scope": {"owner_id": "ada"}}, "`scope`"),
        (["search"], "", "required"),
        (["search", "x", "--limit", "0"], "", "not a number"),
        (["retry", "x"], "", "numbers"),
        (["sing"], "", "invalid choice"),
        (["outbox", "--status", "lost"], "", "invalid choice"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    shell: Shell, args: list[str], given: Any, words: str
) -> None:
    code, out = shell(*args, given=given)
    assert code == BAD_ARGUMENTS
    assert words in out
    assert len(out.splitlines()) == 1


def test_help_names_every_command(shell: Shell) -> None:
    code, out = shell("--help")
    assert code == 0
    for name in ("search", "context", "write", "outbox", "retry", "rebuild", "export", "import"):
        assert f"python app.py memory {name}" in out


def test_a_model_that_cannot_be_fetched_is_told(tmp_path: Path) -> None:
    def fail() -> None:
        raise ModelMissing("The model could not be fetched.")

    assert Shell(tmp_path, fail)("fetch-model") == (FAILED, "The model could not be fetched.\n")
    assert Shell(tmp_path)("fetch-model")[0] == 0

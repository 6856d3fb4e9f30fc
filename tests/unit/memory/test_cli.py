"""The command line on a real memory, without a server beside it."""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.http.memory_bodies import read_episode
from memory.cli import BAD_ARGUMENTS, FAILED, MemoryCommand
from memory.clock import utc_now
from memory.service.assemble import open_memory
from memory.service.plan import MemoryPlan
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
        directory.mkdir(exist_ok=True)
        self._plan = MemoryPlan(
            data_dir=directory,
            workspace=directory / "workspace",
            mask=mask_secrets,
            serves_vectors=False,
            served_elsewhere=["vectors"],
        )
        self._fetch = fetch or (lambda: None)

    def __call__(self, *args: str, given: Any = "") -> tuple[int, str]:
        out = io.StringIO()
        text = given if isinstance(given, str) else json.dumps(given)
        command = MemoryCommand(
            open_memory=partial(open_memory, self._plan, now=utc_now, draw=lambda: 0.0),
            owner_id="local",
            read_episode=read_episode,
        )
        code = command.run(args, source=io.BytesIO(text.encode()), out=out)
        return code, out.getvalue()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_what_is_written_is_found_in_both_languages_by_its_owner_also_after_a_rebuild(
    shell: Shell,
) -> None:
    for given in (IMPORT, DEPLOY):
        assert shell("write", "--owner", "ada", given=given)[0] == 0
    assert "Nothing was found." in shell("search", "nightly")[1]
    for _ in range(2):
        code, out = shell("--owner", "ada", "search", "nightly", "import")
        assert (code, out.count("Nightly import failed")) == (0, 1)
        assert "部署" not in out
        (line,) = shell("--owner", "ada", "search", "怎么部署", "--json")[1].splitlines()
        assert json.loads(line)["title"] == "部署网关"
        code, out = shell("rebuild")
        assert (code, out.splitlines()[0]) == (0, "The words of 2 items were indexed anew.")


def test_the_context_is_what_a_prompt_would_get(shell: Shell) -> None:
    shell("write", given=IMPORT)
    code, out = shell("context", "nightly import", "--budget", "1200")
    assert code == 0
    assert "Nightly import failed" in out
    assert len(out) <= 1201
    assert "Nothing" in shell("context", "photosynthesis")[1]


def test_what_is_remembered_is_listed_shown_and_forgotten(shell: Shell) -> None:
    shell("write", given=IMPORT)
    shell("write", given=DEPLOY)
    listed = shell("list")[1].splitlines()
    assert ["  episode  " in line for line in listed] == [True, False, True, False]
    assert ("部署网关" in listed[0], "Nightly import failed" in listed[2]) == (True, True)
    assert len(shell("list", "NIGHTLY", "proxy")[1].splitlines()) == 2
    assert shell("list", "--kind", "note")[1] == "There is nothing.\n"
    assert "a larger --limit" in shell("list", "--limit", "1")[1]
    (line,) = shell("search", "nightly", "--json")[1].splitlines()
    item_id = json.loads(line)["id"]
    assert "The proxy cuts connections" in shell("show", item_id)[1]
    assert shell("forget", item_id) == (0, f"forgotten: {item_id}\n")
    for command in ("show", "forget"):
        assert shell(command, item_id) == (FAILED, f"There is no item {item_id}.\n")
    assert len(shell("list")[1].splitlines()) == 2


def test_a_fact_is_added_corrected_and_in_the_profile(shell: Shell) -> None:
    assert shell("profile") == (0, "The profile is empty.\n")
    said, fact_id, text = shell("add", "--lasting", "I live", "in Graz")[1].split(maxsplit=2)
    assert (said, text) == ("remembered:", "I live in Graz\n")
    corrected = f"corrected: {fact_id}  I live in Rome\n"
    assert shell("correct", fact_id, "I live", "in Rome") == (0, corrected)
    assert shell("profile") == (0, "- I live in Rome\n")
    assert "I live in Rome" in shell("show", fact_id)[1]
    refused = (FAILED, f"There is no fact {fact_id}.\n")
    assert shell("--owner", "ada", "correct", fact_id, "I live in Wien") == refused


def read_in(count: int, known: int) -> tuple[int, str]:
    return 0, f"Read {count + known}: {count} stored, {known} there already, 0 refused.\n"


def test_a_lasting_fact_is_refused_when_the_profile_is_full(shell: Shell) -> None:
    code, _ = shell("add", "--lasting", "x" * 1990)
    assert code == 0
    code, out = shell("add", "--lasting", "I like tea")
    assert (code, out.startswith("The profile is full (2,000 characters)")) == (FAILED, True)


def test_what_was_exported_is_read_once_elsewhere_and_under_ids_of_its_own_by_another_owner(
    shell: Shell, tmp_path: Path
) -> None:
    for given in (IMPORT, DEPLOY):
        shell("write", given=given)
    lines = shell("export")[1]
    assert len(lines.splitlines()) == 2
    other = Shell(tmp_path / "other")
    assert other("import", given=lines) == read_in(2, 0)
    assert other("import", given=lines) == read_in(0, 2)
    assert other("export")[1] == lines
    mine = shell("search", "nightly", "--json")[1]
    for told in (read_in(2, 0), read_in(0, 2)):
        assert shell("import", "--owner", "bob", given=lines) == told
    (his,) = shell("search", "nightly", "--json", "--owner", "bob")[1].splitlines()
    assert json.loads(his)["id"] != json.loads(mine)["id"]
    assert shell("search", "nightly", "--json")[1] == mine
    assert len(shell("export")[1].splitlines()) == 4


def test_a_line_that_is_no_episode_is_named_and_nothing_is_written(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    good = shell("export")[1]
    note = '{"format": "candor-item-1", "kind": "note"}\n'
    assert "Read 1: 0 stored, 1 there" in shell("import", given=good + note)[1]
    code, out = shell("import", given=good + '{"format": "other"}\n')
    assert (code, out) == (FAILED, "Line 2 is not an exported line.\n")


def test_what_merging_had_made_comes_back_as_it_was(shell: Shell, tmp_path: Path) -> None:
    shell("write", given=IMPORT)
    shell("write", given=IMPORT)
    more = {"pitfalls": "部署时代理也会断开。", "recipe": "Set keepalive to 20 s."}
    assert shell("write", given={**IMPORT, "sections": more})[1].startswith("merged")
    (line,) = shell("export")[1].splitlines()
    value = json.loads(line)
    assert (len(value["variants"]), value["repeats"]) == (1, 1)
    other = Shell(tmp_path / "other")
    for _ in range(2):
        assert other("import", given=line)[0] == 0
        assert other("export")[1] == f"{line}\n"
    assert "epi_" in other("search", "代理断开")[1]
    older = {**value, "variants": [variant["text"] for variant in value["variants"]]}
    del older["repeats"]
    third = Shell(tmp_path / "third")
    third("import", given=json.dumps(older))
    (back,) = map(json.loads, third("export")[1].splitlines())
    assert [variant["text"] for variant in back["variants"]] == older["variants"]
    assert back["sections"] == value["sections"]


def test_a_fact_of_an_export_is_not_cut(shell: Shell) -> None:
    shell("add", "I live in Graz")
    good = shell("export")[1]
    bad = json.dumps({**json.loads(good), "id": "fac_long", "body": "I live in Graz. " * 126})
    said = "Line 2 has a fact of more than 2000 characters.\n"
    assert shell("import", given=f"{good}{bad}\n") == (FAILED, said)
    assert shell("export")[1] == good


NOT_EXPORTED, NUL = "is not an exported line.", "has a NUL character."
NO_ID, NO_OWNER = "has an `episode_id` that is none", "has an `owner_id` that no user has."
REFUSED_LINES: list[tuple[dict[str, Any], str]] = [
    *(
        ({"episode_id": name}, NO_ID)
        for name in ("../../evil", "epi_", "epi_a/b", "cas_abc", "epi_a\n", 5, None)
    ),
    ({"turn_id": {}}, NOT_EXPORTED),
    ({"repeats": -1}, NOT_EXPORTED),
    ({"title": 5}, NOT_EXPORTED),
    ({"scope": {"project_id": None}}, NOT_EXPORTED),
    ({"scope": {"project_id": "\ud800"}}, NOT_EXPORTED),
    ({"variants": [5]}, NOT_EXPORTED),
    ({"title": "half\0title"}, NUL),
    ({"sections": {"recipe": "half\0"}}, NUL),
    ({"tags": ["a", "\0"]}, NUL),
    ({"variants": ["a\0"]}, NUL),
    ({"scope": {"project_id": "a\0"}}, NUL),
    ({"owner_id": "a\0"}, NUL),
    *(({"owner_id": name}, NO_OWNER) for name in ("", " ", "*workspace")),
]


def test_what_may_not_be_stored_is_refused_by_its_line(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    good = shell("export")[1]
    for change, said in REFUSED_LINES:
        bad = json.dumps({**json.loads(good), "episode_id": "epi_n", **change})
        code, out = shell("import", given=f"{good}{bad}\n")
        assert (code, len(out.splitlines())) == (FAILED, 1), change
        assert out.startswith(f"Line 2 {said}"), change
    assert shell("export")[1] == good


def test_deliveries_are_listed_and_made_due(shell: Shell) -> None:
    shell("write", given=DEPLOY)
    code, out = shell("outbox", "--status", "pending")
    assert (code, out.count("→ vectors")) == (0, 1)
    number = out.split()[0]
    assert shell("retry", number)[0] == 0
    assert shell("retry", "99") == (FAILED, "There is no delivery 99.\n")
    assert shell("retry", "--dead") == (0, "Nothing was given up.\n")


def test_sentences_that_are_never_saved_are_told_when_writing_and_importing(shell: Shell) -> None:
    call = "mcp__ata__q takes {topic: string}."
    code, out = shell("write", given={**DEPLOY, "sections": {"recipe": f"先检查。\n{call}"}})
    assert code == 0
    assert out.splitlines()[1].startswith("1 sentence was left out: how a tool is called ")
    code, out = shell("write", given={**DEPLOY, "sections": {"recipe": call}})
    assert code == FAILED
    assert out.startswith("It was refused: never_saved. 1 sentence was left out: ")
    (line,) = shell("export")[1].splitlines()
    value = json.loads(line)
    value |= {"episode_id": "epi_other", "title": "别的", "sections": {"recipe": f"别的。\n{call}"}}
    both = "\n".join([line, json.dumps(value)])
    out = shell("import", given=both)[1]
    assert out.splitlines() == [
        "Read 2: 1 stored, 1 there already, 0 refused.",
        "Left out as never saved: 1 sentence.",
    ]
    out = shell("import", given=both)[1]
    assert out == "Read 2: 0 stored, 2 there already, 0 refused.\n"


MISTAKES: list[tuple[str, Any, str]] = [
    ("write", "no json", "not JSON"),
    ("write", " ", "nothing to read"),
    ("write", {**DEPLOY, "episode_type": "novel"}, "must be one of"),
    ("write", {**DEPLOY, "title": " "}, "`title`"),
    ("write", {**DEPLOY, "tags": [1]}, "`tags.0`"),
    ("write", {**DEPLOY, "sections": {"secrets": "x"}}, "`sections.secrets`"),
    ("search", "", "required"),
    ("search x --limit 0", "", "not a number"),
    ("retry x", "", "numbers"),
    ("retry 12345678901234567890", "", "numbers"),
    ("add !", "", "a letter or digit"),
    ("sing", "", "invalid choice"),
    ("outbox --status lost", "", "invalid choice"),
    ("list --kind novel", "", "not some of"),
]


def test_what_cannot_be_is_told_in_a_sentence(shell: Shell) -> None:
    for args, given, words in MISTAKES:
        code, out = shell(*args.split(), given=given)
        assert (code, len(out.splitlines()), words in out) == (BAD_ARGUMENTS, 1, True), out


def test_help_names_every_command(shell: Shell) -> None:
    code, out = shell("--help")
    assert code == 0
    names = "search context add correct profile write outbox retry rebuild export import"
    for name in names.split():
        assert f"candor memory {name}" in out


def test_the_fields_of_an_intent_are_listed_and_an_unknown_key_is_refused(shell: Shell) -> None:
    assert shell("fields", "tool.{tool_name}.ok") == (0, "")
    code, told = shell("fields", "tool.Bash.won")
    assert (code, "not a registered intent" in told) == (FAILED, True)

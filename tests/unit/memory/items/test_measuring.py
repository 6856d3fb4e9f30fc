"""The benchmark reads what it measures rightly, and writes and asks as the gateway does."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import locomo, recall_madial
from bench.filled_memory import fill
from bench.person.corpus import read
from bench.recall_memory import open_memory
from bench.recall_plain import PLAIN, PlainIndex
from gateway.ids import LOCAL_USER
from memory.items.scope import Scope

DIALOGUE = Path(locomo.__file__).with_name("recall_dialogue.json")


def test_a_dialogue_is_read_turn_by_turn_with_its_usable_questions() -> None:
    (dialogue,) = locomo.read(DIALOGUE)
    assert [turn.id for turn in dialogue.turns] == ["D1:1", "D1:2", "D1:3", "D1:4", "D2:1", "D2:2"]
    assert dialogue.turns[1].text == (
        "Jonas: I took the early ferry and climbed the lighthouse. a photo of a red lighthouse"
    )
    assert dialogue.turns[0].at.isoformat() == "2023-05-08T13:56:01+00:00"
    assert [question.gold for question in dialogue.questions] == [
        {"D1:2"},
        {"D1:4"},
        {"D2:1", "D2:2"},
    ]


async def test_turns_that_answer_are_found_with_their_neighbours() -> None:
    """The question's words stand in the line before the answer: only the neighbour column finds it."""
    figures = await locomo.measure(locomo.read(DIALOGUE))
    assert figures["turns"]["Candor"]["@5"] == 100.0
    assert figures["turns"]["Candor"]["MRR@10"] > figures["turns"]["unicode61"]["MRR@10"]
    assert set(figures["Candor, turns, by category"]) == {"1", "4"}


@pytest.fixture
def madial(tmp_path: Path) -> Path:
    def write(name: str, lines: list[Any]) -> None:
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    events = {"1": "Bart在晚会上跳舞", "2": "Bart去海边放风筝", "3": "Lisa去海边放风筝"}
    memories = [
        {i: {"time": "2023-12-25", "event": text, "user-id": 1 + (i == "3")}}
        for i, text in events.items()
    ]
    asked = {
        "dialogue": ["<BOD>", "今天去海边，想放风筝", "你去年跳舞了"],
        "test-turn": [2],
        "relevant-id": [2],
        "user-id": 1,
        "id": 0,
    }
    for language, names in recall_madial.FILES.items():
        write(names[0], memories)
        write(names[1], [asked if language == "zh" else {k: asked[k] for k in asked if k != "id"}])
        write(names[2], [{"id": 0, "top_20_ids": [1, 2]}])
    return tmp_path


async def test_only_what_was_said_before_is_asked_and_only_the_persons_own_is_found(
    madial: Path,
) -> None:
    part = recall_madial.read(madial, "zh")
    assert part.asked[0].text == "<BOD>今天去海边，想放风筝"
    assert {owner: set(texts) for owner, texts in part.memories.items()} == {
        "user1": {"1", "2"},
        "user2": {"3"},
    }
    figures = await recall_madial.measure(part)
    assert figures["Candor, full text"]["@1"] == 100.0
    assert figures["given vectors alone"]["@1"] == 0.0
    assert figures["Candor, fused"]["@5"] == 100.0


def test_a_plain_index_finds_what_its_tokenizer_can() -> None:
    for name in PLAIN:
        index = PlainIndex(name, {"a": "the payment service 支付服务", "b": "nothing else"})
        assert index.find('payment "NEAR(', 5) == ["a"]
        assert index.find("支付", 5) == (["a"] if name == "unigram+bigram" else [])
        assert index.find("?", 5) == []


async def test_a_filled_memory_is_made_once_and_searched_by_the_user_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    contents, files = [], set()
    for name in ("first", "second"):
        await fill(tmp_path / name, 50)
        (made,) = (tmp_path / "cache" / "candor-bench").iterdir()
        files.add(made.stat().st_ino)
        async with open_memory(tmp_path / name) as memory:
            rows = await memory.database.rows("SELECT id, kind, body FROM items ORDER BY id")
            contents.append({row["id"]: row["kind"] for row in rows})
            found = await memory.search().search(
                rows[-1]["body"][:80], scope=Scope(owner_id=LOCAL_USER), limit=5
            )
            assert found.hits
    assert contents[0] == contents[1]
    kinds = list(contents[0].values())
    assert (kinds.count("episode"), kinds.count("turn")) == (20, 30)
    assert len(files) == 1


@pytest.mark.parametrize(
    ("field", "value", "mistake"),
    [
        ("answers", [{"source": "memory/a.md", "contains": "tea"}], "is not in the set"),
        ("answers", [], "has no answers"),
        ("half", "tuning", "half"),
    ],
)
def test_a_persons_set_whose_answers_are_not_in_it_is_refused(
    tmp_path: Path, field: str, value: object, mistake: str
) -> None:
    note = {"path": "memory/a.md", "text": "coffee", "modified": "2026-11-01T08:00:00Z"}
    answers = [{"source": "memory/a.md", "contains": "coffee"}]
    question = {"id": "q", "text": "tea?", "lang": "en", "kind": "same", "answers": answers}
    (tmp_path / "notes.jsonl").write_text(json.dumps(note), encoding="utf-8")
    (tmp_path / "episodes.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
    assert read(tmp_path).questions[0].answers[0].contains == "coffee"
    wrong = json.dumps({**question, field: value})
    (tmp_path / "questions.jsonl").write_text(wrong, encoding="utf-8")
    with pytest.raises(ValueError, match=mistake):
        read(tmp_path)

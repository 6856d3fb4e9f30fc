"""What is sent as a case: what may be written is cleaned, the rest is named, nonsense is refused."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.case_rows import read_case as read_row
from memory.cases.case_rows import write_case
from memory.cases.input import (
    MAX_CHARS,
    MAX_NAME_CHARS,
    MAX_NAMES,
    WRITABLE,
    SentCase,
    new_content,
    read_case,
)
from memory.cases.results import CaseRefused
from tests.conformance.suites.case_values import case

WHOLE: dict[str, Any] = {
    "symptom_summary": "checkout answers 503",
    "diagnosis": "the pool is exhausted",
    "resolution": "raise the pool",
    "root_cause": "a leak of connections",
    "confidence": 0.8,
    "metadata": {
        "failure_layer": "db",
        "runtime": "jdk17",
        "related_services": ["checkout", "orders"],
        "middleware": "mysql",
        "application_name": "shop",
        "region": "eu-1",
        "tags": ["pool", "连接池"],
    },
}
KEY = "sk-ant-" + "api03-" + "Zq8" * 12
TOKENS = [
    *("", "  \n", "unknown", "N/A", "n/a.", "None", "null", "-", "--", "TODO", "tbd"),
    *("待补充", "未知", "无", "（无）", "**unknown**", "？？", "待补充。"),
]


def refused(sent: object) -> str | None:
    read = _read(sent)
    if isinstance(read, CaseRefused) and len(str(read)) < 200:
        return read.code
    return None


def test_everything_that_may_be_written_is_read() -> None:
    assert read_case(WHOLE) == SentCase(
        case_id=None,
        texts={
            name: WHOLE[name]
            for name in ("symptom_summary", "diagnosis", "resolution", "root_cause")
        },
        confidence=0.8,
        metadata=CaseMetadata(
            **WHOLE["metadata"]
            | {"related_services": ("checkout", "orders"), "tags": ("pool", "连接池")}
        ),
    )


@pytest.mark.parametrize("name", ["symptom_summary", "diagnosis", "resolution", "confidence"])
@pytest.mark.parametrize("value", [None, "  ", "unknown", "待补充", "…"], ids=range(5))
def test_a_new_case_without_real_words_is_refused_by_name(name: str, value: str | None) -> None:
    sent = {**WHOLE, name: None if name == "confidence" else value}

    with pytest.raises(CaseRefused) as caught:
        new_content(read_case(sent))
    assert caught.value.code == "INVALID_CASE"
    assert f"`{name}`" in str(caught.value)


WRONG: dict[str, list[Any]] = {
    "symptom_summary": [7],
    "diagnosis": [["a"]],
    "case_id": [7],
    "metadata": [
        ["a"],
        {"runtime": 17},
        {"tags": [1]},
        {"tags": {"a": 1}},
        {"related_services": 7},
        {"failure_layer": 7},
    ],
    "confidence": ["0.8", True, 1.01, -0.1, math.nan, 10**400],
}


def test_what_is_not_what_it_should_be_is_refused_in_one_sentence() -> None:
    fields = [{**WHOLE, name: value} for name, values in WRONG.items() for value in values]
    sent = ["a text", 7, [WHOLE], True, *fields]
    assert [case for case in sent if refused(case) != "INVALID_CASE"] == []


@pytest.mark.parametrize("value", TOKENS)
def test_a_placeholder_counts_as_not_sent(value: str) -> None:
    known = {"region": value, "tags": [value], "failure_layer": value}
    sent = read_case({"case_id": value, "root_cause": value, "metadata": known})
    assert sent == SentCase(case_id=None)


@pytest.mark.parametrize("value", ["none of the pods is ready", "无法连接数据库", "N/A → 503", "0"])
def test_what_only_begins_like_a_placeholder_is_kept(value: str) -> None:
    assert read_case({"root_cause": value}).texts == {"root_cause": value}


def test_what_only_the_server_may_write_is_left_out_and_told() -> None:
    forged = {
        "fb": {"global": {"h": 99}},
        "feedback": 1,
        "similar_cases": [],
        "lifecycle": "accepted",
        "reports": 7,
        "history": [],
        "scope": {"app_code": "bank"},
        "app_code": "bank",
        "environment": "x",
        "conversation_id": "cnv_forged",
        "source_conv_id": "cnv_forged",
        "owner_id": "bob",
        "color": "blue",
    }
    known = {"fb": 1, "similar_cases": 2, "case_context": {"app_code": "bank"}}
    sent = read_case({**WHOLE, **forged, "metadata": {**WHOLE["metadata"], **known}})

    assert sent.stripped == (*forged, *(f"metadata.{name}" for name in known))
    assert replace(sent, stripped=()) == read_case(WHOLE)


def test_secrets_are_masked_everywhere_and_counted() -> None:
    sent = read_case(
        {
            **WHOLE,
            "diagnosis": f"it said password: hunter22-very and {KEY}",
            "metadata": {"tags": [KEY, "pool"], "region": "known-secret-1"},
            KEY: 1,
        },
        known_secrets=["known-secret-1"],
    )
    assert KEY not in repr(sent)
    assert "hunter22" not in repr(sent)
    assert "known-secret-1" not in repr(sent)
    assert sent.redacted == 5


PRIVATE_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----",
    "MIIEowIBAAKCAQEAwJx7Zq3Vb9Y2kQn4T8sLrXh0uFgPj5dKe1NcMaZoBvWiy6EtRl2",
    "-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize(
    ("names", "inside"),
    [
        ("\n".join(PRIVATE_KEY), PRIVATE_KEY[1]),
        (["oom", "\n".join(PRIVATE_KEY)], PRIVATE_KEY[1]),
        (["oom", *PRIVATE_KEY], PRIVATE_KEY[1]),
        ("oom, DB_PASSWORD=Xk9wq,vB2qL7ttx9", "vB2qL7ttx9"),
        ("堆内存、postgres://svc:pa、ss0rdX9@db.example.com/x", "ss0rdX9"),
    ],
    ids=["one text", "one name", "a line each", "a comma", "chinese"],
)
def test_a_secret_that_a_list_would_part_is_masked_first(names: object, inside: str) -> None:
    sent = read_case({"metadata": {"tags": names, "related_services": names}})

    told = f"{sent.metadata}"
    assert inside not in told
    assert sent.redacted == 2


def test_a_secret_is_masked_before_anything_is_cut() -> None:
    limit = MAX_CHARS["symptom_summary"]
    sent = read_case({**WHOLE, "symptom_summary": "x " * (limit // 2 - 8) + KEY})

    assert KEY[:14] not in sent.texts["symptom_summary"]
    assert sent.redacted == 1


def test_too_long_texts_and_lists_are_cut_with_a_note() -> None:
    sent = read_case(
        {
            **WHOLE,
            "diagnosis": "长" * 200_000,
            "metadata": {"tags": [f"t{n}" for n in range(5000)], "runtime": "r" * 9999},
        }
    )
    assert len(sent.texts["diagnosis"]) == MAX_CHARS["diagnosis"]
    assert len(sent.metadata.tags) == MAX_NAMES
    assert sent.metadata.runtime is not None
    assert len(sent.metadata.runtime) == MAX_NAME_CHARS
    assert sent.notes == (
        "`diagnosis` was cut to 20000 characters.",
        "`metadata.tags` was cut to 20 names.",
    )


def test_what_no_store_and_no_page_can_hold_is_taken_out() -> None:
    sent = read_case({**WHOLE, "diagnosis": "a\x00b\x1b[31m\r\nc \ud800", "case_id": " cas_1 "})

    assert sent.texts["diagnosis"] == "ab[31m\nc ?"
    assert sent.case_id == "cas_1"
    assert len(sent.notes) == 1
    assert sent.notes[0].startswith("`diagnosis` held characters that are no text")
    tagged = read_case({**WHOLE, "metadata": {"tags": ["a\0b", "c\udfff"]}})
    assert tagged.metadata.tags == ("ab", "c?")
    assert [note.split(" ")[0] for note in tagged.notes] == ["`metadata.tags`"]
    assert read_case({**WHOLE, "diagnosis": "\x1b[31mred 🧑‍🚀"}).notes == ()


def test_names_are_lines_without_doubles_and_a_text_is_read_as_a_list() -> None:
    known = {"tags": "oom, 堆内存、oom；gc", "related_services": ["a\nb", "a b"]}
    sent = read_case({"metadata": known})

    assert sent.metadata.tags == ("oom", "堆内存", "gc")
    assert sent.metadata.related_services == ("a b",)


@pytest.mark.parametrize(("told", "layer"), [("K8S", "k8s"), ("unknown", None), ("", None)])
def test_a_failure_layer_is_read_by_its_name(told: str, layer: str | None) -> None:
    sent = read_case({**WHOLE, "metadata": {"failure_layer": told}})
    assert (sent.metadata.failure_layer, sent.metadata.tags, sent.notes) == (layer, (), ())


def test_a_word_that_names_no_layer_is_kept_as_a_tag() -> None:
    sent = read_case({**WHOLE, "metadata": {"failure_layer": "billing", "tags": ["pay"]}})
    assert (sent.metadata.failure_layer, sent.metadata.tags) == (None, ("pay", "billing"))
    (note,) = sent.notes
    assert "jvm, k8s, network" in note


TEXTS = st.text(max_size=400) | st.sampled_from(["unknown", "无", "a\ud800b", "\x00", "x" * 30_000])
NUMBERS = st.integers() | st.floats()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    [
        *WRITABLE,
        *("failure_layer", "runtime", "related_services", "middleware", "region", "tags", "fb"),
    ]
)
LIKELY = st.dictionaries(KNOWN, TEXTS | NUMBERS | st.lists(TEXTS, max_size=30) | JSON, max_size=9)


@given(JSON | LIKELY | st.builds(lambda case, known: {**case, "metadata": known}, LIKELY, LIKELY))
def test_anything_is_read_or_refused(sent: Any) -> None:
    read = _read(sent)
    if isinstance(read, CaseRefused):
        assert read.code in {"MISSING_CASE", "INVALID_CASE"}
        assert 10 < len(str(read)) < 200
        return
    known = read.metadata
    for name, limit in MAX_CHARS.items():
        assert len(read.texts.get(name, "")) <= limit
    for names in (known.tags, known.related_services):
        assert len(names) <= MAX_NAMES
        assert all(0 < len(name) <= MAX_NAME_CHARS for name in names)
    whole = case(content=CaseContent(**{**_texts(), **read.texts}, metadata=known))
    assert read_row(write_case(whole)) == whole
    assert write_case(whole).encode()
    again = read_case(
        {
            **read.texts,
            "confidence": read.confidence,
            "metadata": json.loads(json.dumps(_fields(known))),
        }
    )
    assert (again.texts, again.metadata, again.stripped) == (read.texts, known, ())


def _read(sent: Any) -> SentCase | CaseRefused:
    try:
        return read_case(sent)
    except CaseRefused as exc:
        return exc


def _texts() -> dict[str, Any]:
    return {"symptom_summary": "s", "diagnosis": "d", "resolution": "r"}


def _fields(known: Any) -> dict[str, Any]:
    return {name: getattr(known, name) for name in known.__dataclass_fields__}

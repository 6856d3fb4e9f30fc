"""Whatever is sent as a case is read or refused in words: nothing else comes of it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.cases.case import CaseContent
from memory.cases.input import MAX_CHARS, MAX_NAME_CHARS, MAX_NAMES, WRITABLE, SentCase, read_case
from memory.cases.results import CaseRefused
from memory.stores.sqlite.case_rows import read_case as read_row
from memory.stores.sqlite.case_rows import write_case
from tests.conformance.suites.case_values import case

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


@settings(max_examples=60, deadline=None)
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

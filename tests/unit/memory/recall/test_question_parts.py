"""Which parts of a long message are asked."""

import pytest

from memory.recall.question_parts import question_parts

ASKED = "which server is the primary"
LOG = "\n".join(f"12:00:{n:02} INFO pool: connection {n} acquired" for n in range(60)) * 6


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize("pasted", [LOG, LOG.replace("\n", "\n\n"), "长文。" * 2000])
def test_what_stands_before_or_after_what_was_pasted_is_asked_by_itself(
    pasted: str, gap: str
) -> None:
    for message in (f"{ASKED}{gap}{pasted}", f"{pasted}{gap}{ASKED}"):
        parts = question_parts(message)
        assert ASKED in parts
        assert sum(map(len, parts)) < 2000


@pytest.mark.parametrize("question", ["Why is the primary slow?", "主库为什么慢？"])
def test_a_question_amid_a_long_message_is_asked(question: str) -> None:
    assert question in question_parts(f"{LOG}\n{question}\n{LOG}")


@pytest.mark.parametrize("quoted", ["```\nKeyError: 'x'\n```", "> KeyError: 'x'"])
def test_a_short_message_is_asked_whole_and_without_what_it_quotes(quoted: str) -> None:
    message = f"{ASKED}\n\n{quoted}"
    assert question_parts(message) == [ASKED, message]
    assert question_parts(ASKED) == [ASKED]

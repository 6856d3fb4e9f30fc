"""Episodes before they are stored: secrets, addresses, bounds, and what is refused."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.episodes.clipping.clip import MAX_EPISODE_CHARS
from memory.episodes.episode import SECTIONS, Episode, EpisodeDraft, Kept, Sections, Variant
from memory.episodes.preparation import MAX_TAG_CHARS, MAX_TAGS, Prepared, prepare
from memory.episodes.redact import redact
from memory.items.scope import Scope
from tests.support.tables import read_rows

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TOKEN = "sk-ant-api03-" + "Zx9" * 25


def draft(title: str = "Payments", **fields: Any) -> EpisodeDraft:
    names = {name: fields.pop(name) for name in SECTIONS if name in fields}
    return EpisodeDraft(
        **{
            "episode_type": "run",
            "title": title,
            "scope": Scope(owner_id="ann"),
            "sections": Sections.of(names),
            **fields,
        }
    )


def prepared(one: EpisodeDraft) -> Prepared:
    return prepare(one, episode_id="epi_1", now=AT, known_secrets=["hunter2-prod"])


def kept(title: str = "Payments", **fields: Any) -> Episode:
    """Return the episode that a draft becomes."""
    episode = prepared(draft(title, **fields)).episode
    assert episode is not None
    return episode


def test_secrets_and_inner_addresses_go_from_every_field_and_are_counted() -> None:
    made = prepared(
        draft(
            f"Rotate {TOKEN}",
            context="db at 10.0.0.7",
            actions="login with hunter2-prod",
            tags=("db.corp", "pay"),
        )
    )
    assert made.episode is not None
    text = repr(made.episode)
    for secret in ("Zx9Zx9", "10.0.0.7", "hunter2", "db.corp"):
        assert secret not in text
    assert made.redacted == 4
    assert made.episode.sections.context == "db at [internal address]"


def test_a_secret_is_not_cut_in_two_by_clipping() -> None:
    """The bound falls into the token: its rest would not be known as one."""
    words = "\n".join(f"line {chr(97 + n % 26)} of the output" for n in range(90))
    for shift in range(0, 4200, 60):
        text = f"{'x' * shift}\n{words}\npassword: {TOKEN}\n{'z y ' * 1500}"
        assert "Zx9" not in kept(actions=text).sections.actions.replace("[masked]", "")


def test_the_worthless_is_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "empty"),
        ({"context": " \n"}, "empty"),
        ({"context": "你好"}, "greeting"),
        ({"context": "thanks!", "decisions": "ok"}, "greeting"),
        ({"actions": "heartbeat ok"}, "heartbeat"),
        ({"actions": "\r10%\r".join(["Downloading model "] * 3) + " 100%"}, "progress"),
        ({"recipe": "mcp__ata__q parameter schema: {topic: string}."}, "never_saved"),
        ({"recipe": "失败的调用：mcp__ata__q(topic)。"}, "never_saved"),
    ]
    for fields, reason in refused:
        found = prepared(draft(**fields))
        assert (found.episode, found.reason) == (None, reason), fields


def test_of_the_decisions_what_was_recalled_goes_and_what_differs_is_kept() -> None:
    first, second = NOTE.split("\n")
    for news in (
        first.replace("8443", "9443"),
        first.replace("is owned", "is not owned"),
        second.replace("张三", "李四"),
        "We moved the nightly job to 3 a.m. because of the lock.",
    ):
        told = f"- {first}\n{news} {second}"
        episode = kept(decisions=told, recalled_texts=(NOTE,))
        assert episode.sections.decisions == news


CONTACTS = {
    "ask ann.lee+x@shop-mail.co.uk, please": "ask [e-mail], please",
    "联系王工：wang@example.cn。": "联系王工：[e-mail]。",
    "call +44 20 7946 0958 or (555) 123-4567": "call [phone] or [phone]",
    "手机13812345678，座机 010-62345678": "手机[phone]，座机 [phone]",
    'account: ann.lee, login="bob7"': 'account: [account], login="[account]"',
    **{
        text: text
        for text in (
            "git@github.com:shop/pay.git",
            "npm i @scope/pkg@1.2.3",
            "took 1700000000000 ms, order 20261120120000, v1.2.3",
            "at 2026-11-20 12:00:00.123, 127.0.0.1:8000, 12345-6789",
            "the account is closed; login failed: timeout after 30 s",
        )
    },
}


def test_contacts_go_unless_they_are_kept_and_what_only_looks_like_one_stays() -> None:
    assert {text: redact(text).text for text in CONTACTS} == CONTACTS
    assert [text for text in CONTACTS.values() if redact(text).count] == []
    assert [text for text in CONTACTS if redact(text, keeps_contacts=True).text != text] == []


def test_user_and_password_before_a_host_go() -> None:
    text = "scp deploy:Hunter2x!@files.shop.com:/a and mysql://root:s3cretPw@db.internal/x"
    cleaned = redact(text).text
    assert not [word for word in ("Hunter2x", "s3cretPw", "db.internal") if word in cleaned]
    assert "[internal credentials]@files.shop.com" in cleaned


def test_what_must_never_be_saved_goes_and_the_rest_stays() -> None:
    owner = "The on-call owner is the platform team."
    guess = "Guessed call format of mcp__ata__q: {a: string}."
    fix = "Workaround confirmed: page with a cursor in mcp__ata__q, its page parameter fails above 10."
    episode = kept(pitfalls=f"{owner}\n{guess}\n{fix}", context="接口超时")
    assert episode.sections.pitfalls == f"{owner}\n{fix}"


def test_a_variant_that_comes_back_is_held_to_the_same() -> None:
    texts = ("mcp__ata__q takes {topic: string}.", "Slow again. mcp__ata__q takes {topic: string}.")
    earlier = Kept(variants=tuple(Variant(occurred_at=AT, text=text) for text in texts))
    made = prepared(draft(context="The import is slow.", kept=earlier))
    assert made.episode is not None
    assert [variant.text for variant in made.episode.variants] == ["Slow again."]
    assert (made.left_out, made.episode.revision) == (2, 2)


@pytest.mark.parametrize("tool", ["Read", "Bash", "mcp__k8s__get_pods", "WebFetch"])
def test_what_a_turn_did_is_told_whatever_words_its_commands_and_outputs_have(tool: str) -> None:
    """The very words of schemas and calls, in what programs say and are asked: none of it is a tool's."""
    actions = (
        "- Bash `grep -rn 'parameters' src`: ok\n  src/api.py: parameters: list of Parameter\n"
        "  input_schema: string\n- Bash `pytest -q`: failed\n  TypeError: missing required "
        "argument 'id'\n"
        "- Read `docs/schema.md`: ok\n- a tool of k8s: ok"
    )
    made = prepared(draft(actions=actions, tools=("Bash", "Read", tool)))
    assert made.episode is not None
    assert (made.episode.sections.actions, made.left_out) == (actions, 0)


def test_titles_and_tags_are_lines_and_bounded() -> None:
    tags = (*(f"t{n}" for n in range(99)), "", "w" * 99)
    episode = kept("a\n b" + "c" * 900, context="x y z", tags=tags)
    assert "\n" not in episode.title
    assert len(episode.title) == 200
    assert len(episode.tags) == MAX_TAGS
    assert max(map(len, episode.tags)) <= MAX_TAG_CHARS
    assert kept("", context="begins so\nand goes on").title == "begins so and goes on"


def test_a_decision_that_was_only_recalled_makes_no_decision() -> None:
    fact = "We decided to keep the ledger in SQLite because it is one file."
    one = partial(kept, episode_type="decision", actions="ran the job", decisions=fact)
    assert one(recalled_texts=(fact,)).episode_type == "run"
    assert one().episode_type == "decision"


@given(
    st.dictionaries(st.sampled_from(SECTIONS), st.text(max_size=300), max_size=7),
    st.text(max_size=50),
)
def test_any_text_is_prepared_within_bounds(texts: dict[str, str], title: str) -> None:
    made = prepared(draft(title, **texts))
    if made.episode is not None:
        assert sum(map(len, made.episode.sections.named().values())) <= MAX_EPISODE_CHARS
        made.episode.sections.text.encode("utf-8")
    assert (made.episode is None) == (made.reason is not None)


NOTE = (
    "The payments service listens on port 8443 and is owned by the platform team.\n"
    "支付服务的值班群是 #pay-oncall，负责人是张三。"
)


@pytest.mark.parametrize(("text", "redacted"), read_rows("inner-addresses"))
def test_inner_addresses_go_and_others_stay(text: str, redacted: str) -> None:
    if "printer.lan" in text:
        redacted = "[internal host] and [internal host]."
    assert redact(text, keeps_contacts=True).text == redacted

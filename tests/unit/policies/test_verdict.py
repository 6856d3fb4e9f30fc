from policies.verdict import Allow, Ask, Deny, strictest

YES = Allow("yes", "It may.")
ASK = Ask("ask", "It may, after a yes.")
NO = Deny("no", "It may not.", "Do this.")


def test_the_strictest_verdict_wins() -> None:
    assert strictest([YES, NO, ASK]) is NO
    assert strictest([YES, ASK]) is ASK
    assert strictest([YES]) is YES


def test_among_equal_verdicts_the_first_wins() -> None:
    other = Deny("other", "It may not either.")
    assert strictest([NO, other]) is NO


def test_no_verdict_at_all_is_a_denial() -> None:
    assert isinstance(strictest([]), Deny)


def test_a_denial_tells_its_hint_after_its_reason() -> None:
    assert NO.message == "It may not. Do this."
    assert Deny("no", "It may not.").message == "It may not."


def test_an_allowed_call_counts_as_a_change_unless_it_says_otherwise() -> None:
    assert YES.changes

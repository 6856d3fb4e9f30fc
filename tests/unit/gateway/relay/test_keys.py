"""Keys that the service repeats are hidden, however the answer is cut, and nothing else waits."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.relay.keys import KeyFilter, KeyMask

KEYS = ("abab-abac-secret", "secret-of-the-team", "aaaaaaaa")
PARTS = st.sampled_from(
    [*KEYS, "abab-abab-abac-secret", "aba", "secret-of-", "aaaa", "s", "\n", "x"]
)


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(0, 60), max_size=20))
def test_no_key_passes_whatever_the_cuts(text: str, cuts: list[int]) -> None:
    data, mask = text.encode(), KeyMask(KEYS)
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    keys = KeyFilter(mask)
    shown = b"".join(keys.take(data[start:end]) for start, end in pairwise(bounds))
    shown += keys.end()
    assert len(shown) == len(data)
    assert mask.hidden(shown) == shown
    if len(bounds) == 2:
        assert shown == mask.hidden(data)


def test_only_the_beginning_of_a_key_waits() -> None:
    keys = KeyFilter(KeyMask(KEYS))
    assert keys.take(b"data: abab\n\n") == b"data: abab\n\n"
    assert keys.take(b"no secret-of") == b"no "
    assert keys.take(b"-a kind") == b"secret-of-a kind"
    assert (keys.take(b"s"), keys.end(), keys.end()) == (b"", b"s", b"")
    assert KeyFilter(KeyMask()).take(b"secret") == b"secret"

"""Reading `Host` and `Origin`."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.http.hosts import Authority, is_loopback, own_hosts, read_authority

READ = {
    "localhost": Authority("localhost", None),
    "LocalHost:80": Authority("localhost", 80),
    "127.0.0.1:": Authority("127.0.0.1", None),
    "[::1]": Authority("::1", None),
    "[0:0:0:0:0:0:0:1]:8000": Authority("::1", 8000),
    "a-b_c.example:65535": Authority("a-b_c.example", 65535),
}
NOT_READ = [
    *("", ":80", "::1", "[::1", "[]", "[localhost]", "[127.0.0.1]", "[::1]x", "a:b", "a:0"),
    *("a:65536", "a:+1", "a:٣", "a b", "a@b", "a/b", "a\n", "a,b", "[fe80::1%eth0]", "häuser"),
]


def test_an_authority_is_read_or_refused() -> None:
    assert {text: read_authority(text) for text in READ} == READ
    assert [text for text in NOT_READ if read_authority(text) is not None] == []


@given(st.text())
def test_reading_never_fails(text: str) -> None:
    found = read_authority(text)
    assert found is None or found.host


def test_loopback_is_known_and_nothing_else_is_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.0.1", "8.8.8.8", "127.0.0.1.evil"]))


def test_the_address_that_is_listened_on_is_ours_and_no_other_number() -> None:
    own = own_hosts("192.168.0.7")
    assert own.holds("192.168.0.7")
    assert own.holds("localhost")
    assert not own.holds("192.168.0.8")


def test_on_a_wildcard_address_every_number_is_ours_and_no_other_name() -> None:
    """A number cannot be rebound to another machine; a name can."""
    for wildcard in ("0.0.0.0", "::"):
        own = own_hosts(wildcard)
        assert own.holds("192.168.0.8")
        assert own.holds("2001:db8::1")
        assert not own.holds("evil.example")
        assert not own.holds("127.0.0.1.evil")

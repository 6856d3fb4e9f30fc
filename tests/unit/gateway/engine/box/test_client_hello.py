"""The server's name in the first bytes of TLS."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.box.client_hello import NoHello, is_complete, server_name


def hello(name: str | None) -> bytes:
    """Return what Python's own TLS sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_the_name_that_a_client_asks_for_is_read() -> None:
    assert server_name(hello("packages.example.org")) == b"packages.example.org"
    assert server_name(hello(None)) is None


def test_a_record_is_complete_when_all_of_it_is_there() -> None:
    data = hello("packages.example.org")
    assert [n for n in range(len(data) + 1) if is_complete(data[:n])] == [len(data)]


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n", b"\x16\x02", b"\x15\x03\x01", b"\x16\x03\x01\xff\xff", b"\x80\x2e\x01"],
)
def test_what_is_no_beginning_of_tls_is_refused(data: bytes) -> None:
    with pytest.raises(NoHello):
        is_complete(data)


def test_two_names_are_none() -> None:
    data = hello("packages.example.org")
    name = b"\x00\x00\x14packages.example.org"
    entry = len(name).to_bytes(2, "big") + name
    extension = b"\x00\x00" + len(entry).to_bytes(2, "big") + entry
    assert extension in data
    doubled = (2 * len(name)).to_bytes(2, "big") + 2 * name
    changed = data.replace(extension, b"\x00\x00" + len(doubled).to_bytes(2, "big") + doubled)
    grown = len(changed) - len(data)
    assert server_name(_lengthen(changed, grown)) is None


def _lengthen(data: bytes, by: int) -> bytes:
    """Add to the lengths of the record, the message and the extensions."""
    record = int.from_bytes(data[3:5], "big") + by
    message = int.from_bytes(data[6:9], "big") + by
    at = 9 + 34
    at += 1 + data[at]
    at += 2 + int.from_bytes(data[at : at + 2], "big")
    at += 1 + data[at]
    extensions = int.from_bytes(data[at : at + 2], "big") + by
    head = data[:3] + record.to_bytes(2, "big") + data[5:6] + message.to_bytes(3, "big")
    return head + data[9:at] + extensions.to_bytes(2, "big") + data[at + 2 :]


@given(st.binary(max_size=400), st.integers(0, 600))
def test_no_bytes_do_anything_but_give_a_name_or_refuse(junk: bytes, at: int) -> None:
    data = hello("packages.example.org")
    for bent in (data[:at] + junk, data[:at] + junk + data[at + len(junk) :]):
        try:
            if is_complete(bent):
                server_name(bent)
        except NoHello:
            pass

"""Whose socket it is, read from texts that a kernel wrote."""

import os
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.peers import (
    Endpoint,
    LocalUsers,
    ask_kernel,
    find_owner,
    local_users_blocking,
    read_table,
)

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
TCP = HEAD + (
    "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 635 1 0 100 0 0 10 0\n"
    "   1: 0100007F:D3BE 0100007F:1F40 01 00000000:00000000 00:00000000 00000000  1000        0 7101 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:1F40 0100007F:D3BE 01 00000000:00000000 00:00000000 00000000     0        0 7102 1 0 20 4 30 10 -1\n"
    "   3: 0200007F:D3CA 0100007F:1F40 01 00000000:00000000 00:00000000 00000000 65534        0 7103 1 0 20 4 30 10 -1\n"
    "   4: 0100007F:D3CE 0100007F:1F40 05 00000000:00000000 03:00000F05 00000000     0        0 0 3 0\n"
    "   5: 0100007F:D3D0 0100007F:1F40 06 00000000:00000000 03:00000F05 00000000     0        0 0 3 0\n"
    "   6: 0100007F:D3D2 0100007F:1F40 05 00000000:00000000 00:00000000 00000000  1001        0 7104 1 0\n"
)
TCP6 = HEAD + (
    "   0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 700 1 0\n"
    "   1: 00000000000000000000000001000000:A001 00000000000000000000000001000000:1F40 01 00000000:00000000 00:00000000 00000000  1000        0 701 1 0\n"
    "   2: 0000000000000000FFFF00000100007F:A002 0000000000000000FFFF00000100007F:1F40 01 00000000:00000000 00:00000000 00000000  1002        0 702 1 0\n"
)
pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the texts are of a little-endian machine"
)
V4: Endpoint = ("127.0.0.1", 8000)
V6: Endpoint = ("::1", 8000)


OWNERS: list[tuple[str, Endpoint, Endpoint, int | None]] = [
    (TCP, ("127.0.0.1", 0xD3BE), V4, 1000),
    (TCP, ("127.0.0.2", 0xD3CA), V4, 65534),
    (TCP, ("127.0.0.1", 0xD3D2), V4, 1001),  # it will send no more, and still reads
    (TCP6, ("::1", 0xA001), V6, 1000),
    (TCP6, ("::ffff:127.0.0.1", 0xA002), ("::ffff:127.0.0.1", 8000), 1002),
    # our own end of the connection is another row, and so is the listening socket
    (TCP, V4, ("127.0.0.1", 0xD3BE), 0),
    (TCP, ("127.0.0.1", 0xD3BE), ("127.0.0.1", 8001), None),
    (TCP, ("127.0.0.1", 0x3BE), V4, None),
    (TCP, V4, ("0.0.0.0", 0), 0),
    # no process holds these any more: the kernel writes root for them
    (TCP, ("127.0.0.1", 0xD3CE), V4, None),
    (TCP, ("127.0.0.1", 0xD3D0), V4, None),
    (TCP, ("::1", 0xA001), V6, None),
    ("", ("127.0.0.1", 1), V4, None),
    (HEAD + "   1: 0100007F:0001 0100007F:1F40 01", ("127.0.0.1", 1), V4, None),
    (HEAD + "   1: 0100007F:0001 0100007F:1F40 01 torn", ("127.0.0.1", 1), V4, None),
]


def test_the_owner_of_a_connection_is_found_by_both_its_ends() -> None:
    for table, peer, own, uid in OWNERS:
        assert find_owner(table, peer, own) == uid, (peer, own)


@given(st.binary(min_size=4, max_size=4), st.integers(1, 65535))
def test_an_address_that_differs_in_one_bit_is_another(raw: bytes, port: int) -> None:
    address = ".".join(map(str, raw))
    row = f"   1: {raw[::-1].hex().upper()}:{port:04X} 0100007F:1F40 01 0:0 00:0 0  7  0 7101 1\n"
    other = ".".join(map(str, (*raw[:3], raw[3] ^ 1)))
    assert find_owner(row, (address, port), V4) == 7
    assert find_owner(row, (other, port), V4) is None
    assert find_owner(row, (address, port % 65535 + 1), V4) is None


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs the socket table of the Linux kernel"
)
def test_the_kernel_knows_the_owner_of_a_connection_by_both_its_ends() -> None:
    for reached_at, host in (("127.0.0.1",) * 2, ("::1",) * 2, ("127.0.0.1", "::ffff:127.0.0.1")):
        family = socket.AF_INET6 if ":" in reached_at else socket.AF_INET
        with socket.create_server((reached_at, 0), family=family) as listener:
            own: Endpoint = (host, listener.getsockname()[1])
            with socket.create_connection((reached_at, own[1])) as client, listener.accept()[0]:
                peer: Endpoint = (host, client.getsockname()[1])
                found = [ask_kernel(*ends) for ends in ((peer, own), (peer, peer), (own, peer))]
                assert found == [os.getuid(), None, os.getuid()]
                assert ask_kernel(own, (host, 1)) is None, "the listening socket's owner is no peer"
                client.close()
                assert ask_kernel(peer, own) is None, "no process holds it any more"


def test_a_peer_whose_table_is_gone_is_not_served(tmp_path: Path) -> None:
    users = LocalUsers(frozenset({0, os.getuid()}), (partial(read_table, tmp_path / "missing"),))
    assert not users.serves_blocking(("127.0.0.1", 1), V4)


def test_where_the_system_does_not_tell_nothing_is_looked_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for text in (None, "", HEAD):
        if text is not None:
            (tmp_path / "tcp").write_text(text, encoding="ascii")
        assert local_users_blocking((partial(read_table, tmp_path / "tcp"),)) is None
    assert [record.message for record in caplog.records] == ["peers_not_checked"] * 3

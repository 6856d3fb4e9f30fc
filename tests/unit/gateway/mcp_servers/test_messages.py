"""Which messages of an MCP server are parsed."""

from gateway.mcp_servers.messages import MAX_MESSAGE_BYTES, is_readable


def test_a_long_text_is_read_whatever_stands_in_it() -> None:
    for text in (b"a" * 3_000_000, b"[1, 2], " * 100_000, b'\\"[' * 500_000):
        assert is_readable(b'{"text": "' + text + b'"}')


def test_what_would_be_parsed_for_seconds_is_not() -> None:
    for parts in (b"[]," * 100_000, b'{"a":1},' * 100_000, b"1," * 100_000, b'"",' * 100_000):
        assert not is_readable(b"[" + parts + b"1]")
    assert not is_readable(b'"' + b"a" * MAX_MESSAGE_BYTES + b'"')

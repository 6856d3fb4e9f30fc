"""WebFetch: plain `https` addresses of public names, compared as they will be opened."""

from dataclasses import replace
from pathlib import Path

import pytest

from policies.calls import ToolCall
from policies.rules import shipped_rules
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Refused, Verdict
from policies.web import HTTP_AND_HTTPS, check_url, is_public_address, read_listed_host
from tests.support.tables import read_table_text
from tests.unit.policies.judging import allow_call, read_list


def _fetch(root: Path, url: str, *hosts: str) -> Verdict:
    call = ToolCall(name="WebFetch", input={"url": url, "prompt": "x"}, cwd="/")
    rules = replace(shipped_rules(), web_hosts=frozenset(hosts))
    return ToolGate(root, rules=rules).judge(call)


def test_no_host_is_fetched_from_unless_it_is_listed(shared_workspace: Path) -> None:
    url = "https://docs.python.org/3/?a=b#c"
    assert isinstance(_fetch(shared_workspace, url), Deny)
    assert isinstance(_fetch(shared_workspace, url, "docs.python.org"), Allow)
    assert isinstance(_fetch(shared_workspace, url, "*"), Allow)
    assert isinstance(_fetch(shared_workspace, url, "python.org"), Deny)


REFUSED = read_table_text("web-refused")


def test_only_plain_https_addresses_of_public_names_are_fetched(shared_workspace: Path) -> None:
    urls = [*read_list(REFUSED), f"https://example.com/{'a' * 2100}"]
    assert [url for url in urls if not isinstance(_fetch(shared_workspace, url, "*"), Deny)] == []


PUBLIC = r"""
https://example.com/a?b=c#d ¦ HTTPS://Example.COM/ ¦ https://example.com:443/
https://中文.example/路径 ¦ https://xn--fiq228c.example/ ¦ https://localhost.example.com/
https://lan.example/x?to=http://127.0.0.1/ ¦ https://example.com/it's?a='b'#'
https://zh.example/O'Reilly/书 ¦ https://ec2-54-12-3-4.compute.example.com/
https://1.2.3.4.5.example.com/ ¦ https://r3---sn-abc.example.com/
https://300.1.1.1.example.com/ ¦ https://svc.example.com/
"""


def test_a_public_name_is_fetched_by_the_shipped_rules(shared_workspace: Path) -> None:
    for url in read_list(PUBLIC):
        allow_call(shared_workspace, "WebFetch", url=url, prompt="x")


def test_a_list_of_hosts_holds_for_exactly_those(shared_workspace: Path) -> None:
    for url in (
        "https://docs.python.org.evil.example/",
        "https://evil-docs.python.org/",
        "https://docs.python.org@evil.example/",
        "https://evil.example/docs.python.org",
        "https://evil.example/?docs.python.org",
        "https://a.docs.python.org/",
    ):
        assert isinstance(_fetch(shared_workspace, url, "docs.python.org"), Deny)
    assert isinstance(
        _fetch(shared_workspace, "https://DOCS.python.org/x", "docs.python.org"), Allow
    )


OPENED = (
    ("https://fußball.de/", "xn--fuball-cta.de", "fussball.de"),
    ("https://Fußball.DE/", "fußball.de", "fussball.de"),
    ("https://βόλος.com/", "xn--nxasmm1c.com", "βόλοσ.com"),
    ("https://ΒΌΛΟΣ.com/", "xn--nxasmq6b.com", "βόλος.com"),
    ("https://𡭪.example/", "xn--1v6i.example", "㡭.example"),
    ("https://ÜBER.中文.example/", "über.中文.example", "uber.中文.example"),
    ("https://日本。example/", "日本.example", "日.example"),
)
"""An address, the host that it opens, and a host that it does not open."""


def test_a_host_is_compared_as_it_will_be_opened(shared_workspace: Path) -> None:
    for url, opened, other in OPENED:
        listed = {host: read_listed_host(host) for host in (opened, other)}
        assert None not in listed.values()
        assert isinstance(_fetch(shared_workspace, url, str(listed[opened])), Allow), url
        assert isinstance(_fetch(shared_workspace, url, str(listed[other])), Deny), url


def test_a_host_that_programs_read_differently_is_not_listed() -> None:
    assert read_listed_host("FU\u1e9eBALL.de") is None
    assert read_listed_host("[v1.x]") is None
    assert read_listed_host("10.0.0.1.evil.example") is None


def test_http_is_for_those_who_check_the_connection_themselves() -> None:
    assert check_url("http://Example.com/a", ["example.com"], HTTP_AND_HTTPS) == "example.com"
    for url in ("http://example.com:443/", "https://example.com:80/", "ftp://example.com/"):
        with pytest.raises(Refused):
            check_url(url, ["*"], HTTP_AND_HTTPS)
    with pytest.raises(Refused):
        check_url("http://example.com/", ["*"])


def test_an_address_is_public_only_if_all_that_stands_in_it_is() -> None:
    public = "93.184.216.34 2606:2800:220:1::1 ::ffff:93.184.216.34 64:ff9b::5db8:d822"
    inner = (
        "0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.255.0.9 169.254.169.254 172.16.0.1 192.168.0.1 "
        "192.0.0.192 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 fc00::1 "
        "fe80::1 fe80::1%eth0 ff02::1 fec0::1 2001:db8::1 ::ffff:10.0.0.1 ::10.0.0.1 "
        "::ffff:169.254.169.254 64:ff9b::a00:1 64:ff9b:1::1 2002:a00:1:: "
        "2001:0:4136:e378:8000:63bf:3fff:fdd2"
    )
    assert [address for address in public.split() if not is_public_address(address)] == []
    assert [address for address in inner.split() if is_public_address(address)] == []

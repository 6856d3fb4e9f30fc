"""WebFetch: plain `https` addresses of public names, compared as they will be opened."""

from dataclasses import replace
from pathlib import Path

from policies.rules import shipped_rules
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from policies.web import read_listed_host
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


REFUSED = r"""
http://example.com/ ¦ //example.com/x ¦ https://user@example.com/
https://example.com\@127.0.0.1/ ¦ https://exa mple.com/ ¦ https://example.com:8443/
https://example.com:x/ ¦ https://localhost/ ¦ https://127.0.0.1/ ¦ https://127.1/
https://0x7f000001/ ¦ https://[::1]/ ¦ https://①②⑦.0.0.1/ ¦ https://10.0.0.1/
https://intranet/ ¦ https://printer.local/ ¦ https://metadata.google.internal/
https://example.com./ ¦ https://127.0.0.1.nip.io/ ¦ https://10-0-0-1.sslip.io/
https://localtest.me/ ¦ https://a.b.LVH.me/ ¦ https://db.home.arpa/ ¦ https://router.lan/
https://x.onion/ ¦ https://1.0.0.127.in-addr.arpa/ ¦ https://127.0.0.1:443/
https://example.com:443@127.0.0.1/ ¦ https://example.com#@127.0.0.1:8000\ ¦ https:example.com
https:/example.com/ ¦ https:///example.com/ ¦ https://[::ffff:127.0.0.1]/
https://[fe80::1%25eth0]/ ¦ https://017700000001/ ¦ https://2130706433/
https://127.0.0.1%2f.example.com/ ¦ https://%6c%6f%63%61%6c%68%6f%73%74/ ¦ https://ⓛocalhost/
https://example。local/ ¦ https://exam{U+0009}ple.com/ ¦ https://example.com/{U+202E}
ftp://example.com/ ¦ file:///etc/passwd ¦ data:text/html,x ¦ javascript:alert(1)
view-source:https://example.com/ ¦ https://-a.example.com/ ¦ https://a..example.com/ ¦ https://
https://127.0.0.1.evil.example/ ¦ https://10.0.0.1.xip.name/
https://app-169-254-169-254.evil.example/ ¦ https://1.2.127.0.0.1.evil.example/
https://a192.168.000.001.evil.example/ ¦ https://239.1.1.1.evil.example/
https://127。0。0。1.中文.example/ ¦ https://kubernetes.default.svc/ ¦ https://wiki.intern/
https://fritz.box/ ¦ https://a.localhost.direct/ ¦ https://metadata.tencentyun.com/
https://[v1.x]/ ¦ https://exa'mple.com/ ¦ https://a..中文.example/ ¦ https://FUẞBALL.de/
https://ｌｏｃａｌｈｏｓｔ.例え.local/
"""


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

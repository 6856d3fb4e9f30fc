"""Which addresses a webhook may have."""

import pytest

from gateway.errors import UnprocessableEntity
from gateway.webhooks.address import Address, check_address

LISTED = ("127.0.0.1:9000", "ci.internal", "[::1]:8080")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://hooks.example.org/a?b=c", Address("hooks.example.org", is_listed=False)),
        ("https://hooks.example.org:443/", Address("hooks.example.org", is_listed=False)),
        ("https://Bücher.example/", Address("xn--bcher-kva.example", is_listed=False)),
        ("http://127.0.0.1:9000/hook", Address("127.0.0.1", is_listed=True)),
        ("http://ci.internal/hook", Address("ci.internal", is_listed=True)),
        ("https://CI.internal:8443/hook", Address("ci.internal", is_listed=True)),
        ("http://[::1]:8080/", Address("::1", is_listed=True)),
    ],
)
def test_public_hosts_over_https_and_listed_ones_are_delivered_to(
    url: str, address: Address
) -> None:
    assert check_address(url, LISTED) == address


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "https://hooks.example.org:8443/",
        "https://me:secret@hooks.example.org/",
        "https://93.184.216.34/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://localhost/",
        "https://metadata.google.internal/",
        "https://169.254.169.254/latest/meta-data",
        "https://10-0-0-1.nip.io/",
        "http://127.0.0.1:9001/hook",
        "http://127.0.0.1/hook",
        "http://me@ci.internal/",
        "ftp://ci.internal/",
        "http://ci.internal/a b",
        "http://ci.internal\\@elsewhere.example/",
        "http://ci.internal@elsewhere.example/",
        "http://2130706433:9000/",
        "https://hooks.example.org/" + "a" * 2048,
        "http://ci.internal/" + "a" * 2048,
        "http://ci.internal:0/",
        "http://ci.internal:65536/",
        "http://ci.internal:-1/",
        "https://hooks.example.org:99999/",
        "hooks.example.org",
        "https://",
    ],
)
def test_no_other_address_is_delivered_to(url: str) -> None:
    with pytest.raises(UnprocessableEntity) as refused:
        check_address(url, LISTED)
    assert refused.value.details == {"field": "url"}
    assert "`url`" in refused.value.message


@pytest.mark.parametrize(
    "url",
    ["http://ci.internal/钩", "http://ci.internal/#a", "https://me:secret@hooks.example.org/"],
)
def test_an_address_of_an_allowed_host_is_refused_for_its_form(url: str) -> None:
    with pytest.raises(UnprocessableEntity, match="no user or password"):
        check_address(url, LISTED)

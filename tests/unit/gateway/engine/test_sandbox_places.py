"""What an agent needs of the machine: no more than is listed, and what its environment names."""

from pathlib import Path

import pytest

from gateway.engine.sandbox.places import (
    PROGRAMS,
    READABLE,
    AgentPlaces,
    places_named_in,
    ports_named_in,
)

PORTS: dict[str, tuple[dict[str, str], list[int]]] = {
    "nothing": ({}, [443]),
    "a server of one's own": ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9000/v1"}, [443, 9000]),
    "without a port": ({"ANTHROPIC_BASE_URL": "http://model.lan"}, [80, 443]),
    "by https": ({"ANTHROPIC_BASE_URL": " https://model.lan "}, [443]),
    "IPv6": ({"ANTHROPIC_BASE_URL": "http://[::1]:8088"}, [443, 8088]),
    "a proxy": ({"HTTPS_PROXY": "http://user:word@proxy.lan:3128"}, [443, 3128]),
    "a proxy without a scheme": ({"https_proxy": "proxy.lan:3128"}, [443, 3128]),
    "a socks proxy": ({"ALL_PROXY": "socks5h://proxy.lan"}, [443, 1080]),
    "another service": ({"AWS_ENDPOINT_URL": "https://aws.lan:4566"}, [443, 4566]),
    "no proxy": ({"NO_PROXY": "localhost,127.0.0.1:5432"}, [443]),
    "no address": ({"A": "http://[", "B": "http://x:99999", "C": "file:///etc:22", "D": ""}, [443]),
}


@pytest.mark.parametrize("name", PORTS)
def test_the_ports_are_those_of_the_addresses_in_the_environment(name: str) -> None:
    environ, ports = PORTS[name]
    assert ports_named_in(environ) == ports


def test_certificates_and_keys_that_the_environment_names_are_read() -> None:
    environ = {
        "NODE_EXTRA_CA_CERTS": "/opt/ca/corp.pem",
        "GOOGLE_APPLICATION_CREDENTIALS": "/srv/key.json",
        "SSL_CERT_FILE": "",
        "SSL_CERT_DIR": "relative/certs",
        "HOME": "/home/ada",
        "DATABASE_FILE": "/srv/db",
    }
    named = [Path("/srv/key.json"), Path("/opt/ca/corp.pem")]
    assert places_named_in(environ) == named


def test_no_list_holds_a_home_a_key_or_a_whole_tree_of_others() -> None:
    listed = {*PROGRAMS, *READABLE}
    assert listed.isdisjoint(
        {"/", "/etc", "/home", "/root", "/var", "/tmp", "/run", "/dev", "/mnt"}
    )
    assert not [item for item in listed if "private" in item or "shadow" in item]


def test_what_is_the_servers_and_lies_in_the_workspace_is_told(tmp_path: Path) -> None:
    inside, beside = tmp_path / "ws" / ".candor", tmp_path / "ws-data"
    extra = tmp_path / "extra" / "logs"
    places = AgentPlaces(
        program=Path("/agent"),
        workspace=tmp_path / "ws",
        own=(inside / "sessions",),
        writable=(tmp_path / "extra",),
        private=(inside, beside, extra),
    )
    assert places.exposed() == [inside, extra]

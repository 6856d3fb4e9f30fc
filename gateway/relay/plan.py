"""Whether the relay can stand between the agents and the model's service, and what it needs for
that. Pure.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from gateway.credentials import Credential
from gateway.relay.upstream import Target
from policies.secrets import names_secret

CREDENTIALS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"),
)
"""Variables that the relay uses in place of the agents, which do not get them."""

_CERTIFICATES = ("NODE_EXTRA_CA_CERTS", *CREDENTIALS[3:])
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_OTHER_WAYS = ("ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_PROFILE")
_NOT_OWN = ("host", "content-length", "transfer-encoding", "connection")
_SHORTEST_SECRET = 8
_NO_KEY = "no-key"
"""Sent to a server without a key; some refuse requests without the header."""


def plan_relay(url: str, credential: Credential, environ: Mapping[str, str]) -> Target | str:
    """Return what the relay needs to reach the service at `url`, or why it cannot be used."""
    if credential.kind not in {"key", "server"} or credential.found == "CLAUDE_CODE_OAUTH_TOKEN":
        return f"the agent program itself must sign in ({credential.found})"
    if other := next((name for name in _OTHER_WAYS if environ.get(name, "").strip()), None):
        return f"{other} names another way to the service"
    proxy = proxy_for(url, environ)
    if proxy and urlsplit(proxy).scheme not in {"http", "https"}:
        return "the proxy of the environment is no HTTP proxy"
    if urlsplit(url).scheme not in {"http", "https"}:
        return "ANTHROPIC_BASE_URL is no http or https address"
    try:
        _ = urlsplit(url).port, urlsplit(proxy or "").port
    except ValueError as exc:
        return f"an address is wrong: {exc}"
    named = {name: environ[name] for name in _CERTIFICATES if environ.get(name, "").strip()}
    headers = _headers(environ)
    # values of other headers, such as "production", are words that the model may use
    values = [value for name, value in headers if names_secret(name)]
    values = [value.removeprefix("Bearer ").removeprefix("Basic ") for value in values]
    secrets = [value for value in values if len(value) >= _SHORTEST_SECRET]
    return Target(url=url, proxy=proxy, headers=headers, secrets=secrets, certificates=named)


def _headers(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the credential and the operator's own headers, as the agent program
    would send them.
    """
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    token = environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    own = [line.partition(":") for line in environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()]
    named = [(name.strip(), value.strip()) for name, colon, value in own if colon and name.strip()]
    headers = [(name, value) for name, value in named if name.lower() not in _NOT_OWN]
    if token:
        headers.append(("authorization", f"Bearer {token}"))
    if key or not token:
        headers.append(("x-api-key", key or _NO_KEY))
    return headers


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy that the environment names for an address, or None."""
    split = urlsplit(url)
    # a name in small letters precedes
    names = sorted(environ, key=str.islower)
    found = {name.lower(): environ[name].strip() for name in names if environ[name].strip()}
    passed = found.get("no_proxy", "").replace("*.", ".")
    if proxy_bypass_environment(split.netloc.rpartition("@")[2], {"no": passed}):
        return None
    proxy = found.get(f"{split.scheme}_proxy") or found.get("all_proxy")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def agent_variables(url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that lead an agent to the relay at `url`, past the environment's
    proxies.

    The proxies stay for the agent's commands, without user name and password, which the relay has.
    """
    led = {"ANTHROPIC_BASE_URL": url}
    for name in ("NO_PROXY", "no_proxy"):
        kept = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        led[name] = ",".join(filter(None, (kept, "127.0.0.1")))
    for name, proxy in environ.items():
        if name.lower() in _PROXIES and "@" in proxy:
            scheme, separator, rest = proxy.rpartition("://")
            led[name] = scheme + separator + rest.rpartition("@")[2]
    return led

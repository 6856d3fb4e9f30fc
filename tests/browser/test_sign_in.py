"""Sign-in through a real provider in a real browser: there and back, who is signed in, and out."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import SETTINGS, OpenPage
from tests.support.live_server import DEADLINE_S, LiveServer, started_server
from tests.support.oidc_provider import running_provider
from tests.support.ports import lasting_port

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def server(browser: Browser, tmp_path: Path) -> Iterator[LiveServer]:
    """A server behind a provider; it is told its own address, so its port is chosen before."""
    port = lasting_port()
    with running_provider() as provider:
        sign_on = {
            "users": "on",
            "oidc_issuer": provider.url,
            "oidc_client_id": "candor",
            "oidc_client_secret": "hush-hush-hush",
            "public_url": f"http://127.0.0.1:{port}",
        }
        with started_server(tmp_path, port=port, **sign_on, **SETTINGS) as one:
            yield one


def test_a_person_signs_in_sees_their_name_works_and_signs_out(
    open_page: OpenPage, server: LiveServer
) -> None:
    chat = open_page(url=server.url)
    page, way_in = chat.page, chat.get("provider-sign-in")
    expect(way_in).to_be_focused()
    way_in.click()
    page.get_by_placeholder("sub").fill("ada")
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{server.url}/**")
    expect(chat.get("sign-in")).to_have_count(0)
    assert chat.witness.complaints == []
    chat.witness.forget()  # the refused requests, and the provider's page
    chat.ask("/i-am-signed-in")

    page.reload()
    expect(chat.turn.message).to_have_text("/i-am-signed-in")
    chat.get("open-settings").click()
    expect(chat.get("signed-in-as")).to_have_text("Signed in as ada")
    kept = {one["name"]: one for one in page.context.cookies()}
    session = kept["candor_session"]
    assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
    assert "candor_sign_in" not in kept
    assert page.evaluate("document.cookie") == ""

    chat.witness.network_may_fail = True
    chat.get("end-session").click()
    expect(chat.get("sign-in")).to_be_visible()
    headers = {"Cookie": f"candor_session={session['value']}"}
    url = f"{server.url}/session"
    answer = httpx.get(url, headers=headers, timeout=DEADLINE_S, trust_env=False)
    assert answer.status_code == 401


def test_a_draft_does_not_outlive_the_session_of_its_user(
    open_page: OpenPage, server: LiveServer
) -> None:
    chat = open_page(url=server.url)
    chat.witness.network_may_fail = True

    def come_in(name: str) -> None:
        chat.get("provider-sign-in").click()
        chat.page.get_by_placeholder("sub").fill(name)
        chat.page.get_by_role("button", name="Authorize").click()
        chat.page.wait_for_url(f"{server.url}/**")
        expect(chat.get("demo-banner")).to_be_visible()

    come_in("ada")
    chat.composer.fill("a draft of Ada")
    chat.get("open-settings").click()
    chat.get("end-session").click()
    come_in("ada")
    expect(chat.composer).to_have_value("")
    chat.composer.fill("a draft of Ada")
    chat.page.context.clear_cookies(name="candor_session")  # as if it had expired
    chat.page.reload()
    come_in("ben")

    expect(chat.composer).to_have_value("")
    assert chat.page.evaluate("sessionStorage.getItem('candor.owner')").endswith("ben")
    chat.witness.forget()  # the provider's page
    chat.witness.network_may_fail = True


def test_a_sign_in_that_fails_is_told_on_the_page(open_page: OpenPage, server: LiveServer) -> None:
    chat = open_page(url=server.url, locale="zh-CN")
    expect(chat.get("provider-sign-in")).to_have_text("使用你的账号登录")
    chat.get("provider-sign-in").click()
    chat.page.get_by_role("button", name="Deny").click()
    expect(chat.get("sign-in-failed")).to_have_text(
        "登录被拒绝。请重新登录，或询问此服务器的管理者。"
    )
    expect(chat.get("provider-sign-in")).to_be_visible()
    assert "sign_in" not in chat.page.url
    assert chat.witness.complaints == []
    chat.witness.forget()
    chat.witness.network_may_fail = True

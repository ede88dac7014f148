"""Who may enter: keys, cookies, and where requests come from."""

import httpx
import pytest

from api import create_app
from console import sessions
from service.embedded import free_port
from tests.builders.api import serving
from tests.builders.browser import console_of
from tests.builders.console import Visitor
from tests.builders.service import HandClock
from tests.builders.waiting import PATIENCE_S
from tests.console.conftest import KEY

pytestmark = pytest.mark.redis


def test_a_wrong_key_is_refused_and_a_right_one_opens_a_session(visitor):
    assert visitor.get("/").headers["location"] == "/login?next=%2F"
    refused = visitor.log_in("fs_0000000000000000_wrong")
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    assert visitor.log_in(KEY).status_code == 303
    assert "Overview" in visitor.text("/")


@pytest.mark.parametrize("key", ["\u043a\u043b\u044e\u0447", "\u201cabc\u201d", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused(visitor, key):
    refused = visitor.log_in(key)
    assert refused.status_code == 403
    assert "not an API key" in refused.text


def test_a_login_with_a_known_key_builds_no_second_client(monkeypatch):
    keys = []

    class Client:
        def __init__(self, url, key):
            keys.append(key)

    monkeypatch.setattr(sessions, "Api", Client)
    opened = sessions.Sessions()
    assert opened.api("http://a", "k") is opened.api("http://a", "k")
    assert opened.api("http://a", None) is not opened.api("http://a", "k")
    assert keys == ["k", None]


def test_the_key_stays_on_the_server(visitor):
    cookie = visitor.log_in(KEY).headers["set-cookie"]
    assert KEY not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    for path in ("/", "/alerts", "/editor"):
        assert KEY not in visitor.text(path)


def test_logging_in_leads_to_the_wanted_page_of_this_console_only(visitor):
    for path, followed in (("/alerts?stream=a", "/alerts?stream=a"), ("//evil.example", "/"), ("https://evil", "/")):
        answer = visitor.submit_raw("/login", key=KEY, next=path)
        assert answer.headers["location"] == followed


def test_a_page_of_another_site_cannot_change_anything(reader, orders):
    path = "/patterns/p"
    token = reader.token()
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        answer = reader.post(path, content=f"token={token}&action=pause".encode(), headers=headers)
        assert answer.status_code == 403
    assert reader.submit_raw(path, token="guessed", action="pause").status_code == 403
    assert reader.submit_raw(path, action="pause").status_code == 403
    assert orders.get("/patterns/p").json()["state"] == "active"
    assert reader.submit_raw(path, token=token, action="pause").status_code == 303
    assert orders.get("/patterns/p").json()["state"] == "paused"


def test_logging_in_from_another_site_is_refused(visitor):
    answer = visitor.post("/login", content=f"key={KEY}".encode(), headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_link_from_another_site_leads_to_its_page(reader):
    """A browser keeps a strict cookie back at first: the page asks again, as this site."""
    cookie = reader.cookies.get("forestall_console")
    stranger = httpx.get(
        f"{reader.base_url}/alerts", headers={"Sec-Fetch-Site": "cross-site"}, verify=False, timeout=PATIENCE_S
    )
    assert (stranger.status_code, 'http-equiv="refresh"' in stranger.text) == (200, True)
    assert cookie


def test_a_name_that_is_not_the_consoles_is_refused(reader):
    """A name of an attacker may lead to this machine (DNS rebinding)."""
    answer = reader.get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert "FORESTALL_CONSOLE_HOSTS" in answer.text


def test_logging_out_ends_the_session(reader):
    token, cookie = reader.token(), reader.cookies.get("forestall_console")
    reader.submit_raw("/logout", token=token)
    answer = reader.get("/", headers={"Cookie": f"forestall_console={cookie}"})
    assert answer.headers["location"] == "/login?next=%2F"


def test_a_revoked_key_ends_its_session(visitor, http):
    key = http.post("/keys", json={"name": "guest", "scopes": ["read"]}).json()
    visitor.log_in(key["token"])
    assert "guest" in visitor.text("/alerts")
    assert http.delete(f"/keys/{key['id']}").status_code == 204
    assert visitor.get("/alerts?key=1").headers["location"].startswith("/login")


def test_pages_say_that_the_api_does_not_answer_until_it_does(settings, stores):
    port = free_port()
    with console_of(f"http://127.0.0.1:{port}") as address, Visitor(address) as visitor:
        assert "does not answer" in visitor.log_in(KEY).text
        with serving(create_app(settings, HandClock()), port):
            assert visitor.log_in(KEY).status_code == 303
            visitor.text("/alerts")
        gone = visitor.get("/alerts")
        assert (gone.status_code, "data-retry" in gone.text) == (503, True)
        assert visitor.get("/live/alerts").status_code == 503
        with serving(create_app(settings, HandClock()), port):
            visitor.text("/alerts")


def test_every_answer_has_a_strict_policy(reader, address):
    for path in ("/", "/login", "/nothing", "/alerts"):
        answer = reader.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert " on" not in {part[:3] for part in answer.text.split("<")}

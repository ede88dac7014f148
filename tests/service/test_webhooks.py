import base64
import socket
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from service.errors import WebhookRefused
from service.webhooks import Message, check_target, signed_headers

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def resolving_to(monkeypatch, *addresses):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_the_reference_implementation_accepts_the_signature():
    now_us = round(datetime.now(tz=UTC).timestamp() * 1_000_000)
    body = '{"id":"a1","key":"Zoë"}'.encode()
    headers = signed_headers(Message(id="a1", url="http://x", secret=SECRET, body=body, sent_us=now_us))
    assert Webhook(SECRET).verify(body, headers) == {"id": "a1", "key": "Zoë"}
    assert headers["webhook-id"] == "a1"
    assert headers["webhook-timestamp"] == str(now_us // 1_000_000)


def test_the_signature_is_that_of_the_specification():
    """The example of the Standard Webhooks specification."""
    message = Message(
        id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        url="http://x",
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        body=b'{"test": 2432232314}',
        sent_us=1614265330 * 1_000_000,
    )
    assert signed_headers(message)["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://user:password@example.org/",
        "http://example.org:99999/",
        "http://[::1/",
        "http://example.org/" + "x" * 2000,
        "http://exa mple.org/",
    ],
)
@pytest.mark.parametrize("allow_private", [True, False])
def test_what_is_no_address_is_refused(url, allow_private):
    with pytest.raises(WebhookRefused):
        check_target(url, allow_private=allow_private)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
    ],
)
def test_private_addresses_are_refused_unless_allowed(monkeypatch, address):
    resolving_to(monkeypatch, "93.184.216.34", address)
    with pytest.raises(WebhookRefused, match="private or reserved"):
        check_target("https://example.org/", allow_private=False)
    check_target("https://example.org/", allow_private=True)


def test_public_addresses_are_taken(monkeypatch):
    resolving_to(monkeypatch, "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")
    check_target("https://example.org/alerts", allow_private=False)


def test_a_host_that_does_not_exist_is_told(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(WebhookRefused, match="cannot be resolved"):
        check_target("https://nowhere.invalid/", allow_private=False)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1"])
def test_odd_spellings_of_loopback_are_refused(host):
    with pytest.raises(WebhookRefused):
        check_target(f"http://{host}/", allow_private=False)

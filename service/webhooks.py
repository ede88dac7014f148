"""One attempt to deliver, as Standard Webhooks has it: signed, without redirects, to a permitted address.

Delivery is at-least-once. The header ``webhook-id`` is the id of the alert, correction or deviation that is sent, the
same over all attempts; receivers that must act once keep the ids that they have seen.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

import httpx
from standardwebhooks import Webhook

from service.errors import WebhookRefused

SECRET_PREFIX = "whsec_"

_SECRET_BYTES = (24, 64)
_LONGEST_URL = 2_000
_LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one attempt sends.

    Attributes:
        id: Of the alert, correction or deviation.
        url: Where to.
        secret: What it is signed with.
        body: What is sent, as JSON.
        sent_us: When, microseconds UTC.
    """

    id: str
    url: str
    secret: str
    body: bytes
    sent_us: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one attempt.

    Attributes:
        status: HTTP status, if there was an answer.
        error: Why the attempt failed; None when the receiver took the alert.
    """

    status: int | None
    error: str | None


async def send(client: httpx.AsyncClient, message: Message, *, timeout_s: float, allow_private: bool) -> Reply:
    """Send a message once; success is a 2xx answer within ``timeout_s``. The answer's body is not read."""
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.to_thread(check_target, message.url, allow_private=allow_private)
            request = client.stream(
                "POST", message.url, content=message.body, headers=signed_headers(message), follow_redirects=False
            )
            async with request as response:
                status = response.status_code
    except TimeoutError:
        return Reply(None, f"no answer within {timeout_s:g} s")
    except WebhookRefused as error:
        return Reply(None, error.message)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Reply(None, f"{type(error).__name__}: {error}"[:_LONGEST_ERROR])
    return Reply(status, None if 200 <= status < 300 else f"the receiver answered {status}")


def signed_headers(message: Message) -> dict[str, str]:
    """The headers of a message, its signature included."""
    moment = datetime.fromtimestamp(message.sent_us // 1_000_000, tz=UTC)
    return {
        "content-type": "application/json",
        "user-agent": "forestall",
        "webhook-id": message.id,
        "webhook-timestamp": str(message.sent_us // 1_000_000),
        "webhook-signature": Webhook(message.secret).sign(message.id, moment, message.body.decode()),
    }


def check_secret(secret: str) -> None:
    """Refuse a signing secret that receivers could not use.

    Raises:
        WebhookRefused: Not ``whsec_`` and base64 of 24 to 64 bytes.
    """
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    fewest, most = _SECRET_BYTES
    if not (secret.startswith(SECRET_PREFIX) and fewest <= size <= most):
        raise WebhookRefused(
            f"a webhook's secret is {SECRET_PREFIX!r} and base64 of {fewest} to {most} random bytes; "
            "leave it out to have one made",
            field="secret",
        )


def check_target(url: str, *, allow_private: bool) -> None:
    """Refuse an address that alerts must not be sent to; resolves the host unless private ones are allowed.

    Raises:
        WebhookRefused: Not an http or https URL, with credentials in it, unknown, or in a private or loopback range.
    """
    host, port = _host_and_port(url)
    if allow_private:
        return
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WebhookRefused(f"the webhook's host {host!r} cannot be resolved: {error}", field="url") from error
    for *_, address in found:
        if not _is_public(str(address[0])):
            raise WebhookRefused(
                f"the webhook's host {host!r} has the address {address[0]}, which is private or reserved; "
                "set FORESTALL_WEBHOOKS__ALLOW_PRIVATE_TARGETS=true to allow that",
                field="url",
            )


def _host_and_port(url: str) -> tuple[str, int]:
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or len(url) > _LONGEST_URL:
        raise WebhookRefused(
            f"a webhook's address is an http or https URL of at most {_LONGEST_URL} characters, "
            "such as https://example.org/alerts",
            field="url",
        )
    if parts.username is not None or parts.password is not None:
        raise WebhookRefused("a webhook's address holds no user name and password", field="url")
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _split(url: str) -> SplitResult | None:
    if " " in url or not url.isprintable():
        return None
    try:
        httpx.URL(url)
        parts = urlsplit(url)
        _ = parts.port  # raises where it is out of range
    except (ValueError, httpx.InvalidURL):
        return None
    return parts


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast

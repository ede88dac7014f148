"""Delivery attempts to webhooks, according to the specification Standard Webhooks.

Messages are signed and are sent to permitted addresses only. Redirects are not followed. Delivery is at-least-once. All
attempts have the same header ``webhook-id``, which is the id of the result, so that a receiver can drop repetitions.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version

import httpcore
import orjson
from standardwebhooks import Webhook

from service.delivery.outbound import Outbound
from service.delivery.templates import fill
from service.errors import WebhookRefused
from service.stores import RegisteredWebhook
from service.targets import parse_target

SECRET_PREFIX = "whsec_"
USER_AGENT = f"forestall/{version('forestall')}"

_SECRET_BYTES = (24, 64)
_LONGEST_ERROR = 300
_MOST_DIGITS = 12

_MOST_HEADERS = 10
_LONGEST_VALUE = 2_000
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[!-~]([ !-~]*[!-~])?")  # visible ASCII, with blanks inside, but no line ends or other controls
_RESERVED_HEADERS = {
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
}
_RESERVED_PREFIXES = ("webhook-", "proxy-", "sec-", "x-forwarded-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The message of one attempt.

    Attributes:
        headers: Further HTTP headers from the configuration of the webhook.
        traceparent: Trace context of the attempt's span, or None if the attempt is not traced. It replaces a
            configured header ``traceparent``.
    """

    id: str
    kind: str
    url: str
    secrets: Sequence[str]
    body: bytes
    sent_us: int
    headers: Mapping[str, str] = field(default_factory=dict)
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one attempt.

    Attributes:
        status: HTTP status of the answer, or None without an answer.
        error: Reason for the failure, or None if the attempt succeeded.
        retry_after_s: Pause of any length that the receiver requested with an error, or None without such a request.
    """

    status: int | None
    error: str | None
    duration_ms: int = 0
    retry_after_s: float | None = None


async def send(outbound: Outbound, message: Message, *, timeout_s: float) -> Reply:
    """Send a message once. The attempt succeeds if the receiver answers with a 2xx status within ``timeout_s``."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    status: int | None = None
    retry_after_s: float | None = None
    try:
        async with asyncio.timeout(timeout_s):
            status, retry_after = await _post(outbound, message, timeout_s)
        error = _fault(status)
        retry_after_s = None if error is None else pause_asked_for(retry_after, message.sent_us)
    except TimeoutError:
        error = f"no answer within {timeout_s:g} s"
    except WebhookRefused as refused:
        error = refused.message
    except _FAILURES as failure:
        error = error_text(failure)
    return Reply(status, error, round((loop.time() - began_s) * 1000), retry_after_s)


def error_text(failure: Exception) -> str:
    """Return the error text for an exception: its class and the beginning of its message."""
    return f"{type(failure).__name__}: {failure}"[:_LONGEST_ERROR]


def signed_headers(message: Message) -> dict[str, str]:
    """Return the HTTP headers of a message.

    The header ``webhook-signature`` has one signature for each secret, separated by blanks.
    """
    moment = datetime.fromtimestamp(message.sent_us // 1_000_000, tz=UTC)
    body = message.body.decode()
    traced = {} if message.traceparent is None else {"traceparent": message.traceparent}
    return {
        **{name: value for name, value in message.headers.items() if name.lower() not in traced},
        **traced,
        "content-type": "application/json",
        "webhook-id": message.id,
        "webhook-kind": message.kind,
        "webhook-timestamp": str(message.sent_us // 1_000_000),
        "webhook-signature": " ".join(Webhook(secret).sign(message.id, moment, body) for secret in message.secrets),
    }


def message_of(webhook: RegisteredWebhook, kind: str, item: str, body: bytes, now_us: int) -> Message:
    """Build the message that delivers a result or digest to a webhook. ``item`` is the id of the result or digest.

    The message is signed with the secrets that are valid at ``now_us``. If the webhook's template makes the body too
    long, raise ``BodyTooLong``.
    """
    return Message(
        id=item,
        kind=kind,
        url=webhook.url,
        secrets=webhook.secrets_at(now_us),
        body=body if webhook.template is None else fill(webhook.template, orjson.loads(body)),
        sent_us=now_us,
        headers=webhook.headers,
    )


def check_secret(secret: str) -> None:
    """Raise ``WebhookRefused`` unless a signing secret is ``whsec_`` followed by the base64 of 24 to 64 bytes."""
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    fewest, most = _SECRET_BYTES
    if not (secret.startswith(SECRET_PREFIX) and fewest <= size <= most):
        raise WebhookRefused(
            f"a webhook's secret is {SECRET_PREFIX!r} and base64 of {fewest} to {most} random bytes; "
            "leave it out to have one generated",
            field="secret",
        )


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ``WebhookRefused`` if a webhook has too many, invalid, repeated or reserved headers."""
    if len(headers) > _MOST_HEADERS:
        raise _refused_headers(f"a webhook adds at most {_MOST_HEADERS} headers, not {len(headers)}")
    if len({name.lower() for name in headers}) < len(headers):
        raise _refused_headers("a header is given twice; upper and lower case are the same")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise _refused_headers(f"{name[:100]!r} is not the name of a header; write letters, digits and hyphens")
        if name.lower() in _RESERVED_HEADERS or name.lower().startswith(_RESERVED_PREFIXES):
            raise _refused_headers(f"the header {name!r} cannot be set by a webhook")
        if not _VALUE.fullmatch(value) or len(value) > _LONGEST_VALUE:
            raise _refused_headers(
                f"the value of the header {name!r} is not 1 to {_LONGEST_VALUE} visible ASCII characters, with spaces "
                "between"
            )


def _refused_headers(message: str) -> WebhookRefused:
    return WebhookRefused(message, field="headers")


_FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
)


def pause_asked_for(retry_after: str, now_us: int) -> float | None:
    """Parse a ``Retry-After`` header, which is a number or a date, into a pause in seconds.

    If the text is neither, return None.
    """
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:_MOST_DIGITS])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, until.timestamp() - now_us / 1_000_000)


async def _post(outbound: Outbound, message: Message, timeout_s: float) -> tuple[int, str]:
    """Post a message. Return the status and the ``Retry-After`` header of the answer without reading its body."""
    target = parse_target(message.url)
    headers = {
        "user-agent": USER_AGENT,
        **signed_headers(message),
        "host": target.netloc.decode(),
        "content-length": str(len(message.body)),
    }
    url = httpcore.URL(scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path or b"/")
    limits = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
    request = outbound.pool.stream(
        "POST", url, headers=list(headers.items()), content=message.body, extensions={"timeout": limits}
    )
    async with request as response:
        headers_of_answer = {name.lower(): value for name, value in response.headers}
        return int(response.status), headers_of_answer.get(b"retry-after", b"").decode("latin-1")


def _fault(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"the receiver answered {status}, a redirect; they are not followed, so change the webhook's url"
    return f"the receiver answered {status}"

"""A webhook's own headers: only a few, which cannot change the meaning of a message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from service.errors import WebhookRefused

_MOST = 10
_LONGEST = 2_000
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[!-~]([ !-~]*[!-~])?")  # visible ASCII, blanks inside: neither line ends nor other controls
_OURS = {
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
_OUR_PREFIXES = ("webhook-", "proxy-", "sec-", "x-forwarded-")


def check_headers(headers: Mapping[str, str]) -> None:
    """Check a webhook's headers: not too many, valid, not repeated, and none that the service sets."""
    if len(headers) > _MOST:
        raise _refused(f"a webhook adds at most {_MOST} headers, not {len(headers)}")
    if len({name.lower() for name in headers}) < len(headers):
        raise _refused("a header is given twice; upper and lower case are the same")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise _refused(f"{name[:100]!r} is not the name of a header; write letters, digits and hyphens")
        if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
            raise _refused(f"the header {name!r} cannot be set by a webhook")
        if not _VALUE.fullmatch(value) or len(value) > _LONGEST:
            raise _refused(
                f"the value of the header {name!r} is not 1 to {_LONGEST} visible ASCII characters, with spaces between"
            )


def _refused(message: str) -> WebhookRefused:
    return WebhookRefused(message, field="headers")

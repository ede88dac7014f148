"""Headers of a webhook's own cannot change what the message means."""

import pytest

from service.delivery.attempts import check_headers
from service.errors import WebhookRefused


def test_usual_headers_are_taken():
    check_headers({})
    check_headers({"Authorization": "Bearer abc.def", "X-Tenant": "shop 7", "x-api-key": "~"})


@pytest.mark.parametrize(
    "name",
    [
        "",
        "X Y",
        "X:Y",
        "X\r\nY",
        "X\n",
        "Ü",
        "X\x00",
        "(x)",
        "webhook-signature",
        "Webhook-Id",
        "webhook-timestamp",
        "Host",
        "CONTENT-LENGTH",
        "Transfer-Encoding",
        "Content-Type",
        "Connection",
        "Proxy-Authorization",
        "TE",
        "User-Agent",
    ],
)
def test_names_that_are_none_or_the_services_own_are_refused(name):
    with pytest.raises(WebhookRefused) as caught:
        check_headers({name: "x"})
    assert caught.value.details["field"] == "headers"


@pytest.mark.parametrize(
    "value", ["", " ", " x", "x ", "a\r\nX-Other: 1", "a\nb", "a\rb", "a\x00b", "a\tb", "ü", "\x7f", "x" * 2_001]
)
def test_values_with_controls_or_line_ends_are_refused(value):
    with pytest.raises(WebhookRefused, match="'X-One'"):
        check_headers({"X-One": value})


def test_they_are_few_and_each_is_there_once():
    with pytest.raises(WebhookRefused, match="at most 10"):
        check_headers({f"X-{number}": "x" for number in range(11)})
    with pytest.raises(WebhookRefused, match="twice"):
        check_headers({"X-One": "x", "x-one": "y"})

"""Refreshes: pages of a key share answers, what has not changed is not sent again, and changes are seen at once."""

import httpx
import pytest

from tests.builders.browser import console_of
from tests.builders.console import Visitor
from tests.builders.waiting import PATIENCE_S
from tests.console.conftest import KEY

pytestmark = pytest.mark.redis

OFTEN = {"X-Refresh": "10"}  # answers may be 7.5 s old
ALWAYS = {"X-Refresh": "0.001"}


@pytest.fixture
def address(api_url):
    """A console that has no answers yet."""
    with console_of(api_url) as address:
        yield address


@pytest.fixture
def asked(api_url, http):
    """The number of requests that the API has answered."""

    def count() -> int:
        lines = httpx.get(
            f"{api_url}/metrics", headers={"Authorization": f"Bearer {KEY}"}, verify=False, timeout=PATIENCE_S
        ).text
        return int(
            sum(
                float(line.split()[-1])
                for line in lines.splitlines()
                if line.startswith("forestall_http_request_seconds_count")
            )
        )

    return count


def refreshed(visitor, path, **headers):
    return visitor.get(path, headers=OFTEN | headers)


@pytest.mark.parametrize("path", ["/", "/patterns/p", "/incidents", "/webhooks", "/streams?stream=orders"])
def test_pages_of_a_key_share_what_they_refresh(address, reader, orders, asked, path):
    with Visitor(address) as other:
        other.log_in(KEY)
        refreshed(reader, path)
        before = asked()
        for visitor in (reader, other) * 4:
            assert refreshed(visitor, path).status_code == 200
        assert asked() - before <= 5  # the count itself; a slow machine refreshes some


def test_a_refresh_sends_nothing_if_nothing_has_changed(reader, orders):
    path = "/patterns/p"
    tag = reader.get(path, headers=ALWAYS).headers["etag"]
    answer = reader.get(path, headers=ALWAYS | {"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    orders.post("/patterns/p/pause")
    answer = reader.get(path, headers=ALWAYS | {"If-None-Match": tag})
    assert answer.status_code == 200
    assert "paused" in answer.text


def test_who_changes_something_sees_it_at_once(reader, orders):
    assert "state-active" in refreshed(reader, "/patterns/p").text
    reader.submit("/patterns/p", action="pause")
    assert "state-paused" in refreshed(reader, "/patterns/p").text


@pytest.mark.parametrize("period", ["", "nan", "-1", "1e999", "soon"])
def test_a_period_that_is_none_is_no_error(reader, orders, period):
    assert reader.get("/", headers={"X-Refresh": period}).status_code == 200

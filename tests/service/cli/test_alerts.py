"""``forestall alerts`` against the real API."""

import orjson
import pytest

from api import create_app
from service import AlertSink, Stores
from service.client import Client
from tests.builders.api import serving
from tests.builders.service import HandClock, empty_client, private_server, settings_for, sink_row

pytestmark = pytest.mark.redis


def row(number, pattern="p"):
    time = "2026-01-01T00:00:00Z"
    body = {"type": "alert", "id": f"a{number}", "stream": "s", "pattern": pattern, "version": 1, "key": "k\x1b[1m"}
    body |= {"start": time, "end": time, "detected_at": time, "bindings": {}, "why": "e1 is A a"}
    return sink_row(kind="alert", stream="s", id=f"a{number}", body=orjson.dumps(body))


@pytest.fixture(scope="module")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def write(server_url):
    with empty_client(server_url) as client:
        stores = Stores(client, server_url, settings_for(server_url))
        yield lambda *rows: AlertSink(stores, HandClock())(rows, 0)


@pytest.fixture
def url(server_url, write):
    with serving(create_app(settings_for(server_url), HandClock())) as found:
        yield found


def test_alerts_are_listed(call, url, write):
    write(row(1), row(2, "q"), row(3))
    status, out, _ = call("alerts", "list", "--url", url, "--pattern", "p")
    assert status == 0
    assert out == "2026-01-01T00:00:00Z  s  p  k\\x1b[1m  e1 is A a\n" * 2
    _, out, _ = call("alerts", "list", "--url", url, "--after", "1", "--limit", "1", "--json")
    assert orjson.loads(out)["id"] == "a2"
    _, out, err = call("alerts", "list", "--url", url, "--limit", "2", "--json")
    assert [orjson.loads(line)["id"] for line in out.splitlines()] == ["a3", "a2"]
    assert err == "more: --after d2\n"
    _, out, err = call("alerts", "list", "--url", url, "--after", "d2", "--json")
    assert ([orjson.loads(line)["id"] for line in out.splitlines()], err) == (["a1"], "")
    _, out, _ = call("alerts", "list", "--url", url, "--oldest-first", "--limit", "1", "--json")
    assert orjson.loads(out)["id"] == "a1"
    _, out, _ = call("alerts", "list", "--url", url, "--until", "2026-01-01T00:00:00Z", "--unacknowledged")
    assert out == ""


def test_alerts_are_followed(call, url, write):
    write(row(1), row(2), row(3))
    status, out, _ = call("alerts", "tail", "--url", url, "--after", "1", "--limit", "2", "--json")
    assert (status, [orjson.loads(line)["id"] for line in out.splitlines()]) == (0, ["a2", "a3"])


def test_who_follows_goes_on_when_the_service_comes_back(server_url, write):
    settings = settings_for(server_url)
    with serving(create_app(settings, HandClock())) as url:
        port = int(url.rpartition(":")[2])
        client = Client(url, patience_s=30.0)
        write(row(1))
        events = client.alerts.live(after="0")
        assert next(events).data["id"] == "a1"
    write(row(2))
    with client, serving(create_app(settings, HandClock()), port=port):
        assert next(events).data["id"] == "a2"
        del events

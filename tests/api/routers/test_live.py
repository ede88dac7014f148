"""Alerts by server-sent events, over a real connection."""

import threading

import httpx
import orjson
import pytest
from httpx_sse import connect_sse

from api import create_app
from service import AlertSink
from tests.builders.api import serving
from tests.builders.service import settings_for, sink_row
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis


def row(number, pattern="p"):
    body = {
        "type": "alert",
        "id": f"a{number}",
        "stream": "orders",
        "pattern": pattern,
        "version": 1,
        "key": "k\nj",
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-01-01T00:00:00Z",
        "detected_at": "2026-01-01T00:00:00Z",
        "bindings": {},
        "why": "",
    }
    return sink_row(kind="alert", stream="orders", id=f"a{number}", body=orjson.dumps(body))


@pytest.fixture
def write(orders, stores, clock):
    """Writes alerts as the pipeline does."""
    return lambda *rows: AlertSink(stores, clock)(rows, 0)


def taken(http, count, query="", **headers):
    """The first events of an answer."""
    with connect_sse(http, "GET", f"/v1/alerts/live{query}", headers=headers) as source:
        assert source.response.status_code == 200
        events = source.iter_sse()
        return [next(events) for _ in range(count)]


def test_alerts_come_with_their_cursors(orders, write):
    write(row(1), row(2))
    begin, *alerts = taken(orders, 3, "?after=0")
    assert (begin.id, begin.retry, begin.data) == ("0", 2_000, "")
    assert [(event.event, event.id, event.json()["id"]) for event in alerts] == [
        ("alert", "1", "a1"),
        ("alert", "2", "a2"),
    ]
    assert alerts[0].json() == orders.get("/v1/alerts?order=asc").json()["items"][0]


def test_a_listener_that_comes_back_goes_on_where_it_was(orders, write):
    write(row(1), row(2), row(3))
    begin, alert = taken(orders, 2, "?after=0", **{"Last-Event-ID": "2"})
    assert (begin.id, alert.id) == ("2", "3")


def test_what_comes_while_somebody_listens_is_told(orders, write):
    write(row(1))
    with connect_sse(orders, "GET", "/v1/alerts/live?stream=orders&pattern=q") as source:
        assert source.response.status_code == 404
    with connect_sse(orders, "GET", "/v1/alerts/live?stream=orders") as source:
        events = source.iter_sse()
        assert next(events).id == "1"
        write(row(2))
        assert next(events).json()["id"] == "a2"


def test_alerts_are_chosen_by_pattern(orders, write):
    write(row(1), row(2, "q"))
    assert [event.id for event in taken(orders, 2, "?after=0&pattern=q")] == ["0", "2"]


@pytest.mark.parametrize("headers", [{"Last-Event-ID": "x"}, {}])
def test_wrong_cursors_are_refused(orders, check_problem, headers):
    check_problem(orders.get("/v1/alerts/live?after=1-0", headers=headers), 400, "invalid-cursor")


def test_so_many_may_listen_and_no_more(server_url, stores, clock, check_problem):
    app = create_app(settings_for(server_url, limits={"live_listeners": 1}), clock)
    with (
        serving(app) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as http,
        connect_sse(http, "GET", "/v1/alerts/live") as source,
    ):
        events = source.iter_sse()
        assert next(events).id == "0"
        answer = http.get("/v1/alerts/live")
        check_problem(answer, 503, "too-many-listeners")
        assert answer.headers["retry-after"] == "1"


def test_an_open_answer_ends_when_the_server_stops(server_url, stores, clock):
    with httpx.Client(verify=False, timeout=PATIENCE_S) as http:
        with serving(create_app(settings_for(server_url), clock)) as url:
            listens = threading.Event()
            told = []

            def listen():
                with connect_sse(http, "GET", f"{url}/v1/alerts/live") as source:
                    for event in source.iter_sse():
                        told.append(event.id)
                        listens.set()

            listener = threading.Thread(target=listen)
            listener.start()
            assert listens.wait(240)
        listener.join(240)
        assert not listener.is_alive()
    assert told == ["0"]

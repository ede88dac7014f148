"""A log that is full: refuse, drain, accept; nothing that was acknowledged is lost."""

import time
from dataclasses import replace
from types import SimpleNamespace

import httpx
import orjson
import pytest

from api import create_app
from service.client import Client, ServiceOverloaded
from service.sending import send_events
from streams import Event, EventBatch
from tests.builders.api import serving
from tests.builders.service import settings_for, stats_row
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

LIMIT = 100


@pytest.fixture
def small_url(server_url, stores, clock):
    limits = {"max_backlog_events": LIMIT}
    with serving(create_app(settings_for(server_url, limits=limits), clock)) as url:
        httpx.post(
            f"{url}/v1/streams", json={"name": "orders", "key": "data.id"}, verify=False, timeout=PATIENCE_S
        ).raise_for_status()
        yield url


def batch(name, count):
    return [
        {"id": f"{name}-{n}", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": f"k{n % 5}"}}
        for n in range(count)
    ]


def post(url, name, count):
    return httpx.post(
        f"{url}/v1/events?stream=orders",
        json=batch(name, count),
        headers={"Idempotency-Key": name},
        verify=False,
        timeout=PATIENCE_S,
    )


def entries(stores, shard):
    return [entry for entry in stores.log.read_range(shard) if entry.kind == "events"]


def logged(stores):
    return {
        event.id
        for shard in range(3)
        for entry in entries(stores, shard)
        for event in EventBatch.from_bytes(entry.body).to_events()
    }


def drain(stores):
    """Let every shard be matched to its end."""
    ends = {shard: entries(stores, shard) for shard in range(3)}
    stores.pipeline_status.note([stats_row(shard, found[-1].position) for shard, found in ends.items() if found])


def test_a_full_log_is_a_429_that_says_what_is_full_and_when_to_come_back(small_url, stores, check_problem):
    assert post(small_url, "first", 80).status_code == 202
    answer = post(small_url, "second", 40)
    body = check_problem(answer, 429, "log-full")
    assert int(answer.headers["retry-after"]) == body["retry_after_s"] == 10
    assert (body["full"], body["backlog"], body["limit"]) == ("events", 80, LIMIT)
    assert "80 events wait to be matched" in body["detail"]
    assert "FORESTALL_LIMITS__MAX_BACKLOG_EVENTS" in body["detail"]
    assert len(logged(stores)) == 80


def test_what_was_acknowledged_is_there_and_what_was_refused_is_taken_later_once(small_url, stores):
    acknowledged, refused = set(), []
    for number in range(12):
        name = f"b{number}"
        if post(small_url, name, 20).status_code == 202:
            acknowledged |= {event["id"] for event in batch(name, 20)}
        else:
            refused.append(name)
    assert len(refused) == 7
    assert logged(stores) == acknowledged
    while refused:
        drain(stores)
        assert logged(stores) >= acknowledged
        for name in list(refused):
            if post(small_url, name, 20).status_code == 202:
                acknowledged |= {event["id"] for event in batch(name, 20)}
                refused.remove(name)
    assert logged(stores) == acknowledged
    assert len(acknowledged) == 240
    again = post(small_url, "b11", 20)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    assert stores.backlog.read().appended.events == 240


def test_a_batch_that_was_taken_is_answered_as_before_while_the_log_is_full(small_url):
    first = post(small_url, "b", LIMIT).json()
    again = post(small_url, "b", LIMIT)
    assert again.status_code == 202
    assert (again.json(), again.headers["idempotency-replayed"]) == (first, "true")
    assert post(small_url, "c", 1).status_code == 429


def test_control_is_taken_while_the_log_is_full(small_url):
    post(small_url, "b", LIMIT)
    pattern = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"}
    assert httpx.post(f"{small_url}/v1/patterns", json=pattern, verify=False, timeout=PATIENCE_S).status_code == 201
    assert httpx.get(f"{small_url}/v1/patterns/p", verify=False, timeout=PATIENCE_S).status_code == 200


def test_bytes_are_a_429_too(server_url, stores, clock, check_problem):
    with serving(create_app(settings_for(server_url, limits={"max_log_bytes": 4_000}), clock)) as url:
        httpx.post(
            f"{url}/v1/streams", json={"name": "orders", "key": "data.id"}, verify=False, timeout=PATIENCE_S
        ).raise_for_status()
        assert post(url, "a", 1).status_code == 202
        answers = [post(url, f"b{number}", 1) for number in range(10)]
    full = [answer for answer in answers if answer.status_code != 202]
    body = check_problem(full[0], 429, "log-full")
    assert body["full"] == "bytes"
    assert "FORESTALL_LIMITS__MAX_LOG_BYTES" in body["detail"]


def test_the_client_comes_back_when_it_is_told_to(small_url, stores, monkeypatch):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        drain(stores)

    monkeypatch.setattr("service.client.synchronous.time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    events = [Event(id=f"e{n}", type="A", time_us=n, key=f"k{n}", data={"id": f"k{n}"}) for n in range(60)]
    with Client(small_url) as client:
        for start in range(0, 60, 10):
            assert send_events(client, "orders", events[start : start + 10], f"{start}")["accepted"] == 10
        others = [replace(event, id=f"again-{event.id}") for event in events]
        assert send_events(client, "orders", others, "all")["accepted"] == 60
    assert pauses == [10.0]
    assert stores.backlog.read().appended.events == 120


def test_the_client_gives_up_when_nothing_drains(small_url):
    with Client(small_url, overload_patience_s=5.0) as client:
        client.post("/events", batch("a", LIMIT), stream="orders")
        with pytest.raises(ServiceOverloaded, match="wait to be matched"):
            client.post("/events", batch("b", 1), stream="orders")


def test_a_server_without_memory_is_a_507_in_words(small_url, stores, client_of_stores, check_problem):
    post(small_url, "a", 1)
    client_of_stores.config_set("maxmemory", "1")
    try:
        answer = post(small_url, "b", 1)
    finally:
        client_of_stores.config_set("maxmemory", "0")
    body = check_problem(answer, 507, "store-full")
    assert "raise maxmemory" in body["detail"]
    assert answer.headers["retry-after"] == "1"
    assert post(small_url, "b", 1).json() == {"accepted": 1, "rejected": [], "duplicates": 0}


@pytest.fixture
def client_of_stores(stores):
    return stores.client


def test_the_description_tells_of_the_429(http):
    answers = http.get("/openapi.json").json()["paths"]["/v1/events"]["post"]["responses"]
    example = answers["429"]["content"]["application/problem+json"]["example"]
    assert orjson.dumps(example).startswith(b'{"type":"urn:forestall:problem:log-full"')
    assert "507" in answers

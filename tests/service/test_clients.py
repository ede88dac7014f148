"""Both clients against the real API: pages, server-sent events with resumption, and errors from problem documents."""

import asyncio
from contextlib import contextmanager, suppress
from copy import copy
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import httpx
import pytest

from api import create_app
from service.client import (
    AccessDenied,
    AsyncClient,
    Client,
    InvalidRequest,
    ResourceChanged,
    ResourceConflict,
    ResourceMissing,
    ServiceOverloaded,
    ServiceUnavailable,
    ServiceUnreachable,
    UnexpectedAnswer,
)
from service.embedded import free_port
from tests.builders.api import serving
from tests.builders.service import answering, settings_for

KEY = "a-key-for-tests"
SHORT = {"patience_s": 0.5, "overload_patience_s": 0.5}


@pytest.fixture
def api_url(server_url, stores, clock):
    with serving(create_app(settings_for(server_url, api_key=KEY), clock)) as url:
        yield url


class Waited:
    """The asynchronous client behind the methods of the synchronous client, so that one test is about both."""

    def __init__(self, url, key=None, **options):
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(url, key, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._wait(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _wait(self, coroutine):
        return self._loop.run_until_complete(coroutine)

    def with_key(self, key):
        twin = copy(self)
        twin._client = self._client.with_key(key)
        return twin

    def request(self, *arguments, **options):
        return self._wait(self._client.request(*arguments, **options))

    def find(self, path, **query):
        return self._wait(self._client.find(path, **query))

    def pages(self, path, **options):
        return self._iterated(self._client.pages(path, **options))

    def live(self, path, **options):
        return self._iterated(self._client.live(path, **options))

    def _iterated(self, items):
        with suppress(StopAsyncIteration):
            while True:
                yield self._wait(anext(items))


@contextmanager
def cutting(api_url):
    """A way to the API that ends each answer with server-sent events after three events."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            headers = {name: self.headers[name] for name in ("authorization", "last-event-id") if name in self.headers}
            with httpx.stream("GET", f"{api_url}{self.path}", headers=headers, verify=False, timeout=300) as answer:
                self.send_response(answer.status_code)
                self.send_header("content-type", answer.headers["content-type"])
                self.end_headers()
                seen = 0
                for line in answer.iter_lines():
                    self.wfile.write(line.encode() + b"\n")
                    self.wfile.flush()
                    seen += line.startswith("data:")
                    if seen == 3 and not line:
                        break
            self.close_connection = True

    with answering(Handler) as url:
        yield url


@pytest.fixture(params=[Client, Waited])
def kind(request):
    return request.param


@pytest.fixture
def caller(kind, api_url):
    with kind(api_url, KEY, patience_s=60) as caller:
        yield caller


def sent(caller, first, count):
    events = [
        {"id": f"e{n}", "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k"} for n in range(first, first + count)
    ]
    return caller.request("POST", "/events", query={"stream": "orders"}, body=events)


def declared(caller):
    return caller.request(
        "POST", "/streams", body={"name": "orders", "key": "key", "mapping": {"id": "id", "type": "type"}}
    )


def test_requests_have_json_texts_or_nothing_as_content(caller):
    assert declared(caller)["name"] == "orders"
    assert caller.request("GET", "/v1/streams/orders")["name"] == "orders"
    assert "forestall_" in caller.request("GET", "/metrics")
    key = caller.request("POST", "/keys", body={"name": "x", "scopes": ["read"]})
    assert caller.request("DELETE", f"/keys/{key['id']}") is None


def test_pages_are_followed_to_the_end_or_to_a_number(caller):
    declared(caller)
    for start in range(0, 120, 40):
        assert sent(caller, start, 40)["accepted"] == 40
    ids = [f"e{n}" for n in range(120)]
    assert [event["id"] for event in caller.pages("/streams/orders/events", after="0", limit=50)] == ids
    more: list[str] = []
    some = caller.pages("/streams/orders/events", after="0", limit=50, most=70, on_more=more.append)
    assert [event["id"] for event in some] == ids[:70]
    rest = caller.pages("/streams/orders/events", after=more[0])
    assert [event["id"] for event in rest] == ids[70:]
    assert list(caller.pages("/streams", most=0)) == []


def test_live_events_continue_after_a_lost_connection(caller, api_url, kind):
    declared(caller)
    sent(caller, 0, 3)
    with cutting(api_url) as url, kind(url, KEY) as follower:
        found = follower.live("/streams/orders/events/live", after="0")
        first = [next(found) for _ in range(3)]
        sent(caller, 3, 3)
        second = [next(found) for _ in range(3)]
    assert [event.data["id"] for event in (*first, *second)] == [f"e{n}" for n in range(6)]
    assert len({event.id for event in (*first, *second)}) == 6


def test_a_path_without_server_sent_events_is_refused(caller):
    with pytest.raises(UnexpectedAnswer, match="server-sent events"):
        next(caller.live("/streams"))
    with pytest.raises(ResourceMissing):
        next(caller.live("/streams/nowhere/events/live"))


def test_errors_have_code_detail_and_request(caller, api_url, kind):
    with pytest.raises(ResourceMissing, match=r"GET /v1/streams/nowhere was refused \(404\): .*nowhere") as missing:
        caller.request("GET", "/streams/nowhere", headers={"X-Request-Id": "my-request"})
    error = missing.value
    assert (error.status, error.code, error.request_id) == (404, "unknown-stream", "my-request")
    assert error.detail in str(error)
    with pytest.raises(InvalidRequest) as invalid:
        caller.request("POST", "/streams", body={"nome": "x"})
    assert {fault["where"] for fault in invalid.value.problem["errors"]} == {"body.name", "body.nome"}
    with kind(api_url, "wrong") as stranger, pytest.raises(AccessDenied) as denied:
        stranger.request("GET", "/streams")
    assert denied.value.code == "unauthorized"


def test_one_client_serves_several_keys(caller):
    key = caller.request("POST", "/keys", body={"name": "reader", "scopes": ["read"]})
    reader = caller.with_key(key["token"])
    assert list(reader.pages("/streams")) == []
    with pytest.raises(AccessDenied) as denied:
        declared(reader)
    assert (denied.value.status, denied.value.code) == (403, "forbidden")
    assert declared(caller)["name"] == "orders"


def test_a_change_is_made_only_to_what_was_read(caller):
    declared(caller)
    read = caller.find("/streams/orders")
    assert read.value["name"] == "orders"
    body = {"description": "x"}
    caller.request("PATCH", "/streams/orders", body=body, headers={"If-Match": read.etag})
    with pytest.raises(ResourceChanged):
        caller.request("PATCH", "/streams/orders", body={"description": "y"}, headers={"If-Match": read.etag})
    with pytest.raises(ResourceConflict):
        caller.request("POST", "/streams", body={"name": "orders", "key": "data.other"})
    assert caller.find("/streams/nowhere") is None


def test_no_answer_is_reported_when_the_patience_is_over(kind):
    url = f"http://127.0.0.1:{free_port()}"
    with kind(url, **SHORT) as caller, pytest.raises(ServiceUnreachable, match="does not answer"):
        caller.request("GET", "/streams")


def test_an_address_without_protocol_is_refused_at_once(kind):
    with kind("localhost:8000", patience_s=3_600) as caller, pytest.raises(ServiceUnreachable, match="protocol"):
        caller.request("GET", "/streams")


@pytest.fixture
def scripted():
    """A server with a script of answers; ``received`` has the header fields of its requests."""
    script = SimpleNamespace(answers=[], received=[])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            script.received.append(dict(self.headers.items()))
            status, headers, body = script.answers.pop(0)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with answering(Handler) as url:
        script.url = url
        yield script


OK = (200, {"content-type": "application/json"}, b'{"done": true}')
BUSY = (409, {"content-type": "application/problem+json"}, b'{"code": "idempotency-key-in-use", "detail": "busy"}')


def test_a_call_is_repeated_with_the_same_idempotency_key(kind, scripted):
    scripted.answers = [(None, {}, b""), (503, {}, b""), BUSY, (429, {"Retry-After": "1"}, b""), OK]
    with kind(scripted.url, patience_s=20.0, overload_patience_s=20.0) as caller:
        assert caller.request("POST", "/streams", body={}) == {"done": True}
    assert len({headers["Idempotency-Key"] for headers in scripted.received}) == 1
    assert len(scripted.received) == 5


@pytest.mark.parametrize(("status", "error"), [(429, ServiceOverloaded), (503, ServiceUnavailable)])
def test_an_overloaded_service_is_reported_when_the_pause_is_longer_than_the_patience(kind, scripted, status, error):
    scripted.answers = [(status, {"Retry-After": "30"}, b"later")]
    with kind(scripted.url, **SHORT) as caller, pytest.raises(error, match="later") as raised:
        caller.request("POST", "/streams", body={})
    assert raised.value.retry_after_s == 30


def test_invalid_json_is_not_an_answer_of_this_api(kind, scripted):
    scripted.answers = [(200, {"content-type": "application/json"}, b"<html>")]
    with kind(scripted.url, **SHORT) as caller, pytest.raises(UnexpectedAnswer, match="invalid JSON"):
        caller.request("POST", "/streams", body={})


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (200, UnexpectedAnswer, r"POST http://\S+/v1/streams answers with a web page: another server runs there"),
        (404, ResourceMissing, r"\(404\): the answer is a web page: another server, or a proxy, runs at http://\S+"),
        (503, ServiceUnavailable, r"is not ready: the answer is a web page"),
    ],
)
def test_the_web_page_of_another_server_is_named_and_not_quoted(kind, scripted, status, error, message):
    scripted.answers = [(status, {"content-type": "text/html; charset=utf-8"}, b"<html>Welcome")] * 20
    with kind(scripted.url, patience_s=0.0) as caller, pytest.raises(error, match=message) as raised:
        caller.request("POST", "/streams", body={})
    assert "<html>" not in str(raised.value)


def test_a_task_that_follows_ends_when_it_is_cancelled(api_url):
    async def follow(client, seen):
        async for event in client.streams.live("orders", after="0"):
            assert event.data["id"] == "e1"
            seen.set()

    async def cancelled():
        async with AsyncClient(api_url, KEY) as client:
            await client.streams.create({"name": "orders", "key": "key", "mapping": {"id": "id", "type": "type"}})
            event = {"id": "e1", "type": "A", "time": "2026-01-01T00:00:00Z", "key": "k"}
            await client.events.send([event], stream="orders")
            seen = asyncio.Event()
            task = asyncio.create_task(follow(client, seen))
            async with asyncio.timeout(30):
                await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())

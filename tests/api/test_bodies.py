import asyncio

import orjson
import pytest

from api.errors import MalformedBody
from api.requests.bodies import BodyLimit, parse_json

CHUNK = b"x" * 10


class Exchange:
    """One request with ``chunks`` chunks, passed through a body limit of 100 bytes."""

    def __init__(self, chunks, headers=(), *, is_whole=True, timeout_s=60.0):
        self.chunks_left = chunks
        self.is_whole = is_whole
        self.sent = []
        self.body = None
        scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        asyncio.run(BodyLimit(self.app, limit_bytes=100, timeout_s=timeout_s)(scope, self.receive, self.send))

    async def receive(self):
        if self.chunks_left == 0:
            return {"type": "http.disconnect"}
        self.chunks_left -= 1
        return {"type": "http.request", "body": CHUNK, "more_body": self.chunks_left > 0 or not self.is_whole}

    async def send(self, message):
        self.sent.append(message)

    async def app(self, scope, receive, send):
        message = await receive()
        self.body = message["body"]
        assert not message["more_body"]
        assert (await receive())["type"] == "http.disconnect"

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None


@pytest.mark.parametrize("chunks", [1, 9, 10])
def test_a_body_within_the_limit_arrives_whole(chunks):
    exchange = Exchange(chunks)
    assert exchange.body == CHUNK * chunks
    assert exchange.sent == []


def test_a_body_that_breaks_off_never_arrives():
    exchange = Exchange(3, is_whole=False)
    assert (exchange.body, exchange.sent) == (None, [])


def test_a_larger_body_never_arrives():
    exchange = Exchange(11)
    assert (exchange.status, exchange.body) == (413, None)
    assert orjson.loads(exchange.sent[1]["body"])["limit_bytes"] == 100


def test_an_endless_body_is_not_read_to_its_end():
    exchange = Exchange(10_000)
    assert exchange.status == 413
    assert exchange.chunks_left > 9_900


def test_a_huge_length_is_refused_before_the_body_is_read():
    exchange = Exchange(5, headers=[(b"content-length", b"1000000")])
    assert (exchange.status, exchange.chunks_left) == (413, 5)


def test_a_body_that_does_not_come_in_time_is_not_waited_for():
    class Slow(Exchange):
        async def receive(self):
            if self.chunks_left == 1:
                await asyncio.Event().wait()
            return await super().receive()

    exchange = Slow(3, timeout_s=0.05)
    assert (exchange.status, exchange.body, exchange.chunks_left) == (408, None, 1)
    assert (b"connection", b"close") in exchange.sent[0]["headers"]


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed():
    exchange = Exchange(1, headers=[(b"content-length", b"10"), (b"transfer-encoding", b"chunked")])
    assert (exchange.status, exchange.body, exchange.chunks_left) == (400, None, 1)
    assert orjson.loads(exchange.sent[1]["body"])["code"] == "two-lengths"
    assert (b"connection", b"close") in exchange.sent[0]["headers"]


def test_other_kinds_of_traffic_pass():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def nothing(*_):
        return {}

    asyncio.run(BodyLimit(app, limit_bytes=1, timeout_s=1.0)({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]


def test_a_json_value_is_read():
    assert parse_json(b'{"a": [1, "\xc3\xbc", null]}') == {"a": [1, "ü", None]}


def test_what_is_not_json_is_refused_with_its_place():
    with pytest.raises(MalformedBody, match="line 2, column 3") as caught:
        parse_json(b'{"a":\n  ]')
    details = caught.value.details
    assert (details["line"], details["column"]) == (2, 3)
    assert details["reason"]

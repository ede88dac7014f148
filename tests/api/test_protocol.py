"""What a client does on the wire, byte by byte."""

import socket
import time
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import orjson
import pytest

from api import create_app
from tests.builders.api import serving
from tests.builders.service import settings_for

PATIENCE_S = 300.0
HEAD = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def impatient_url(server_url):
    with serving(create_app(settings_for(server_url)), read_timeout_s=0.2) as url:
        yield url


@contextmanager
def connection(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), PATIENCE_S) as client:
        yield client


def until_closed(client):
    read = bytearray()
    while chunk := client.recv(65536):
        read += chunk
    return bytes(read)


@pytest.mark.parametrize("begun", [b"", b"GET /v1/he", HEAD], ids=["nothing", "a line", "a head"])
def test_a_head_that_does_not_come_closes_the_connection(impatient_url, begun):
    with connection(impatient_url) as client:
        client.sendall(begun)
        assert until_closed(client) == b""


def test_the_second_head_has_to_come_too(impatient_url):
    with connection(impatient_url) as client:
        client.sendall(HEAD + b"\r\n" + HEAD)
        answer = until_closed(client)
    assert answer.count(b"HTTP/1.1 200 OK") == 1


def test_a_connection_may_wait_between_two_requests(impatient_url):
    with connection(impatient_url) as client:
        for _ in range(2):
            client.sendall(HEAD + b"\r\n")
            answer = b""
            while b"}" not in answer:
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            client.settimeout(0.5)  # longer than a head may take
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(PATIENCE_S)


@pytest.mark.parametrize(
    ("request_bytes", "more"),
    [
        (HEAD + b"\r\n", b"\r\n"),
        (b"POST /v1/streams HTTP/1.1\r\nHost: example.com\r\nContent-Length: 9\r\n\r\n", b"x"),
    ],
    ids=["a blank line", "a part of an unread body"],
)
def test_what_comes_after_an_answer_does_not_keep_a_connection(impatient_url, request_bytes, more):
    with connection(impatient_url) as client:
        client.sendall(request_bytes)
        answer = b""
        while b"}" not in answer:
            answer += client.recv(65536)
        time.sleep(0.1)  # until the server has noted the end of its answer
        client.sendall(more)
        client.settimeout(PATIENCE_S)
        assert until_closed(client) == b""


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
KEY = b"Authorization: Bearer a-key-for-tests\r\nContent-Type: application/json\r\n"


def posted(*fields, body):
    return b"POST /v1/streams HTTP/1.1\r\nHost: 127.0.0.1\r\n" + KEY + b"".join(fields) + b"\r\n" + body


def answers_to(client, request, number, is_apart=False):
    """What comes until there are this many answers; the request is sent at once, or in two packets."""
    head, blank, rest = request.partition(b"\r\n\r\n")
    client.sendall(head + blank if is_apart else request)
    if is_apart:
        time.sleep(0.1)
        client.sendall(rest)
    read = b""
    while read.count(b"HTTP/1.1 ") < number or not read.endswith(b"}"):
        chunk = client.recv(65536)
        assert chunk, read
        read += chunk
    return read


@pytest.mark.parametrize("is_apart", [False, True], ids=["one packet", "two packets"])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunks"])
def test_an_offer_of_an_upgrade_is_ignored(api_url, is_apart, is_chunked):
    body = b'{"name": "upgraded", "key": "k"}'
    length = b"Transfer-Encoding: chunked\r\n" if is_chunked else b"Content-Length: %d\r\n" % len(body)
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if is_chunked else body
    with connection(api_url) as client:
        answer = answers_to(client, posted(UPGRADE, length, body=sent) + HEAD + UPGRADE + b"\r\n", 2, is_apart)
        again = answers_to(client, HEAD + b"\r\n", 1)
    assert answer.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200"))
    assert answer.count(b'"upgraded"') == 1
    assert (answer + again).count(b"HTTP/1.1 200 OK\r\n") >= 2


def test_the_fields_of_a_trailer_are_not_those_of_the_head(api_url):
    body = b'{"name": "trailed", "key": "k"}'
    sent = b'%x\r\n%b\r\n0\r\nIf-Match: "none"\r\n\r\n' % (len(body), body)
    with connection(api_url) as client:
        answer = answers_to(client, posted(b"Transfer-Encoding: chunked\r\n", body=sent), 1)
    assert answer.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200"))


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"INVENT /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n\r\n",
        HEAD + b"Host: example.com\r\n\r\n",
        posted(b"Transfer-Encoding: gzip\r\n", body=b"{}"),
        posted(b"Transfer-Encoding: chunked, identity\r\n", body=b"0\r\n\r\n"),
        b"GET /v1/str\xc3\xa4ms HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        HEAD + b"X Y: z\r\n\r\n",
    ],
    ids=["method", "no host", "two hosts", "coding", "codings", "path", "tunnel", "field"],
)
def test_what_is_no_request_is_answered_with_a_problem(api_url, request_bytes):
    with connection(api_url) as client:
        client.sendall(request_bytes)
        answer = until_closed(client)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"content-type: application/problem+json" in head
    assert orjson.loads(body)["code"] == "request-refused"


def test_two_lengths_close_the_connection(api_url):
    request = (
        b"POST /v1/streams HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer a-key-for-tests\r\n"
        b"Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + HEAD
        + b"\r\n"
    )
    with connection(api_url) as client:
        client.sendall(request)
        answer = until_closed(client)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"two-lengths" in answer


@pytest.mark.parametrize(
    "begun",
    [
        HEAD + b"X: ",
        HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n5;",
        HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    ],
    ids=["head", "extension of a chunk", "trailer"],
)
def test_what_a_connection_holds_is_bounded(api_url, begun):
    sent, most = 0, 1_000
    with connection(api_url) as client, suppress(ConnectionError):
        client.sendall(begun)
        while sent < most:
            client.sendall(b"x" * 4_096)
            sent += 1
    assert sent < most

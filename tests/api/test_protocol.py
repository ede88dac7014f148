"""What a client does on the wire, byte by byte."""

import socket
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from api import create_app
from tests.builders.api import serving
from tests.builders.service import settings_for

PATIENCE_S = 120.0
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

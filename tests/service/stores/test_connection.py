import socket

import pytest
from redis.exceptions import ResponseError

from service import Stores
from service.errors import StoreFull, StoreUnavailable
from service.stores import EventLog, connect, is_answering, server_folder

pytestmark = pytest.mark.redis


@pytest.fixture
def dead_url():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield f"redis://127.0.0.1:{probe.getsockname()[1]}/0"


def test_an_outage_is_one_retryable_error(dead_url):
    with connect(dead_url, retries=1) as client:
        with pytest.raises(StoreUnavailable, match="GET") as caught:
            client.get("x")
        assert caught.value.code == "store-unavailable"
        assert caught.value.is_retryable
        assert not is_answering(client)
        assert server_folder(client) is None


def test_an_outage_in_a_script_is_the_same_error(dead_url, settings):
    with connect(dead_url, retries=0) as client, pytest.raises(StoreUnavailable):
        Stores(client, dead_url, settings).log.shards()


def test_a_url_that_cannot_be_read_is_told():
    with pytest.raises(StoreUnavailable, match="URL"):
        connect("http://example.org")


def test_a_full_server_is_an_outage_that_says_what_to_do(client, stores):
    stores.log.shards()
    client.config_set("maxmemory", "1")
    try:
        for write in (
            lambda: client.set("x", "y"),
            lambda: stores.heartbeat.beat(1),
            lambda: EventLog(client, 3).shards(),
        ):
            with pytest.raises(StoreFull, match="raise maxmemory") as caught:
                write()
            assert isinstance(caught.value, StoreUnavailable)
            assert caught.value.code == "store-full"
    finally:
        client.config_set("maxmemory", "0")


def test_a_server_that_cannot_write_its_files_is_an_outage(client, monkeypatch):
    def fail(*_, **__):
        raise ResponseError("MISCONF Errors writing to the AOF file: No space left on device")

    monkeypatch.setattr("redis.Redis.execute_command", fail)
    with pytest.raises(StoreUnavailable, match=r"cannot write its files.*free space on its disk"):
        client.set("x", "y")


def test_a_full_server_of_an_earlier_version_is_told_by_its_words(client, monkeypatch):
    def fail(*_, **__):
        raise ResponseError(
            "Error running script: @user_script:1: -OOM command not allowed when used memory > 'maxmemory'"
        )

    monkeypatch.setattr("redis.Redis.execute_command", fail)
    with pytest.raises(StoreFull):
        client.get("x")


def test_another_refusal_of_the_server_is_a_bug(client):
    client.set("x", "text")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        client.hget("x", "field")


def test_a_server_that_answers(client):
    assert is_answering(client)

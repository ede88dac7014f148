"""The Lua file that appends derived events; see ``test_scripts.py`` for the others."""

from typing import Any

import orjson
import pytest

from service.stores.connection import register

pytestmark = pytest.mark.redis


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


def test_log_append_derived(run, client):
    def append(before, after, **given):
        keys = {"marks": "marks", "appended": "appended", "times": "times", "layout": "layout", "streams": "streams"}
        usual: dict[str, Any] = {
            "moves": orjson.dumps(
                [["0:s", before, after], ["3:s", "", "x"]] if not before else [["0:s", before, after]]
            )
        }
        usual |= {
            "stream": "s",
            "since": "7",
            "newest_us": 5,
            "shard_count": 2,
            "token": "",
            "parts": [b"\x00one", 2, b"two", 3],
        }
        return run("log/append_derived", **keys, shards=["log:0", "log:1"], **{**usual, **given})

    assert append("", "1-0 5") == 0
    client.hset("streams", "s", '{"format":1,"since_ms":7}')
    assert [append("", "1-0 5"), append("", "1-0 5"), append("1-0 4", "1-0 9")] == [1, 0, 0]
    assert client.hgetall("marks") == {b"0:s": b"1-0 5", b"3:s": b"x"}
    ((_, fields),) = client.xrange("log:0")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"\x00one", b"upto": b"1:2:4"}
    ((_, fields),) = client.xrange("log:1")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"two", b"upto": b"1:3:3"}
    assert client.hget("appended", "events") == b"5"
    assert client.hget("times", "s:newest") == b"5"
    client.hset("layout", "resharding", "mine")
    assert append("1-0 5", "1-0 9") == b"resharding"
    assert append("1-0 5", "1-0 9", token="another") == b"resharding"
    assert append("1-0 5", "1-0 9", token="mine") == 1
    client.hset("layout", "shards", 3)
    assert append("1-0 9", "2-0 1", token="mine") == b"moved"
    assert client.xlen("log:0") == 2

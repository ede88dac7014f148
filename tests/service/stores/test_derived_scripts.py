"""The Lua file that appends derived events; see ``test_scripts.py`` for the others."""

from typing import Any

import orjson
import pytest

from service.stores.connection import register
from streams import CLOSED_US

pytestmark = pytest.mark.redis


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


KEYS = {"marks": "marks", "appended": "appended", "times": "times", "layout": "layout", "streams": "streams"}
KEYS |= {"routes": "routes", "promises": "promises"}
BODIES = [b"\x00one", b"two"]


def of_stream(before, after):
    moves = [["0:s", before, after], ["3:s", "", "x"]] if not before else [["0:s", before, after]]
    return {"stream": "s", "since": "7", "newest_us": "5", "moves": moves, "parts": [[0, 2], [1, 3]]}


def test_log_append_derived(run, client):
    def append(*appends, promised=(), token="", bodies=BODIES):
        given: dict[str, Any] = {"appends": orjson.dumps(appends), "promising": orjson.dumps(promised)}
        given |= {"kind": "tick", "tick": '{"time":%d}', "shard_count": 2, "token": token, "bodies": bodies}
        return run("log/append_derived", **KEYS, shards=["log:0", "log:1"], **given)

    assert append(of_stream("", "1-0 5")) == [[0], 0]
    client.hset("streams", "s", '{"format":1,"since_ms":7}')
    found = [append(of_stream(*move)) for move in (("", "1-0 5"), ("", "1-0 5"), ("1-0 4", "1-0 9"))]
    assert found == [[[1], 0], [[0], 0], [[0], 0]]
    assert client.hgetall("marks") == {b"0:s": b"1-0 5", b"3:s": b"x"}
    ((_, fields),) = client.xrange("log:0")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"\x00one", b"upto": b"1:2:4"}
    ((_, fields),) = client.xrange("log:1")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"two", b"upto": b"1:3:3"}
    assert client.hget("appended", "events") == b"5"
    assert client.hget("times", "s:newest") == b"5"
    client.hset("layout", "resharding", "mine")
    assert append(of_stream("1-0 5", "1-0 9")) == b"resharding"
    assert append(of_stream("1-0 5", "1-0 9"), token="another") == b"resharding"
    assert append(of_stream("1-0 5", "1-0 9"), token="mine") == [[1], 0]
    client.hset("layout", "shards", 3)
    assert append(of_stream("1-0 9", "2-0 1"), token="mine") == b"moved"
    client.delete("layout")
    assert client.xlen("log:0") == 2
    other = {**of_stream("", "1-0 1"), "stream": "t"}
    both = append(other, of_stream("1-0 9", "2-0 1"), bodies=[b"lost", b"lost", *BODIES])
    assert both == [[0, 1], 0], "a stream that is not declared keeps no other from being appended"
    assert client.xrevrange("log:1", count=1)[0][1][b"body"] == b"two"


def test_log_append_derived_promises(run, client):
    def promise(*promised, appends=()):
        given: dict[str, Any] = {"appends": orjson.dumps(appends), "promising": orjson.dumps(promised)}
        given |= {"kind": "tick", "tick": '{"time":%d}', "shard_count": 2, "token": "", "bodies": []}
        return run("log/append_derived", **KEYS, shards=["log:0", "log:1"], **given)

    both = ["s", [[0, "-5", "8-0"], [1, "40", ""]]]
    assert promise(both) == [[], 0]
    client.hset("streams", "s", '{"since_ms":7}')
    assert promise(["s", [[0, "50", "6-9"], [1, "", ""]]]) == [[], 0]
    assert client.hgetall("promises") == {b"1:s": b"@7"}, "the shard 0 had not reached the stream"
    assert [promise(both), promise(both), promise(["s", [[0, "60", ""]]])] == [[[], 1], [[], 0], [[], 1]]
    said = [fields[b"body"] for _, fields in client.xrange("log:0")]
    assert said == [fields[b"body"] for _, fields in client.xrange("log:1")] == [b'{"time":-5}', b'{"time":40}']
    assert client.hget("times", "s:ticked") == b"40"
    behind = {"stream": "s", "since": "7", "newest_us": "", "moves": [["0:s", "x", "y"]], "parts": []}
    assert promise(["s", [[1, "90", ""]]], appends=[behind]) == [[0], 0], "its events are not in the log"
    client.hset("routes", "s", "-")
    assert promise(["s", [[1, "90", ""]]]) == [[], 0]
    client.hset("streams", "s", '{"since_ms":8}')
    client.delete("routes")
    assert promise(["s", [[0, "91", ""]]]) == [[], 0], "the other promise is of a stream that was removed"
    client.hset("promises", "1:s", "92")  # as former releases stored it
    assert promise(["s", [[0, "91", ""]]]) == [[], 1]


def test_log_append_derived_appends_a_closing_tick_once_all_shards_have_promised_it(run, client):
    def promise(*times):
        promised = [["s", [[shard, str(time_us), ""] for shard, time_us in times]]]
        given: dict[str, Any] = {"appends": b"[]", "promising": orjson.dumps(promised), "bodies": []}
        given |= {"kind": "tick", "tick": '{"time":%d}', "shard_count": 2, "token": ""}
        return run("log/append_derived", **KEYS, shards=["log:0", "log:1"], **given)[1]

    client.hset("streams", "s", '{"since_ms":7}')
    first, second = CLOSED_US + 1, CLOSED_US + 2
    assert promise((0, 50), (1, 40)) == 1
    assert [promise((0, first)), promise((1, 60))] == [0, 0], "the shard 1 still feeds the stream"
    assert [promise((1, first)), promise((0, first)), promise((1, first))] == [1, 0, 0], "the tick is appended once"
    assert [fields[b"body"] for _, fields in client.xrange("log:1")] == [b'{"time":40}', b'{"time":%d}' % first]
    assert client.hgetall("times") == {b"s:closed": b"%d" % first}
    assert client.hgetall("promises") == {}
    assert [promise((0, second)), promise((1, first)), promise((1, second))] == [0, 0, 1], "the shard 1 read it later"
    assert [promise((0, 30)), promise((1, second)), promise((1, 30))] == [0, 0, 1], "an operator feeds the stream again"


def test_log_read_derived(run, client):
    keys = {"streams": "streams", "marks": "marks", "matched": "matched"}
    client.hset("streams", "s", '{"since_ms":7}')
    client.hset("marks", "2:s", "1-0 5")
    client.hset("matched", "position:2", "3-0")
    found = run("log/read_derived", **keys, positions=orjson.dumps([0, 2]), names=["s", "t"])
    assert found == [[b"7", b"", b"1-0 5"], [b"", b"", b""], b"0-0", b"3-0"]

"""The Lua files by which streams change and end, and of records about them; see ``test_scripts.py`` for the others."""

import hashlib
from functools import partial

import pytest

from service.stores.connection import register

pytestmark = pytest.mark.redis


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


def test_registry_remove_stream(run, client):
    def remove(call, known, changes, before="1"):
        keys = {"call": call, "streams": "streams", "layout": "layout", "event_ids": "ids", "turns": "turns"}
        given = {"call_ms": 60_000, "stream": "s", "before": before, "kind": "stream-off", "body": "b"}
        given |= {"shard_count": 2, "hashes": 3, "examined": 2, "known": len(known), "mention": '"s"', "webhooks": 2}
        places = ["log:0", "log:1", "patterns", "webhooks", "times", "gone"]
        said = [(number, name, hashlib.sha1(body.encode()).hexdigest()) for number, name, body in known]
        parts = [part for one in (*said, *changes) for part in one]
        return run("registry/remove_stream", **keys, places=places, **given, changes=parts)

    client.hset("streams", "s", "1")
    client.hset("patterns", mapping={"p": 'of "s"', "q": 'of "t"'})
    client.hset("webhooks", "w", 'of "s"')
    client.hset("times", mapping={"s:newest": 1, "t:newest": 2})
    client.hset("ids", "set", 1)
    client.sadd("ids:0", "a")
    client.sadd("ids:1", "b")
    client.set("gone", "x")
    known = [(1, "p", 'of "s"'), (2, "w", 'of "s"')]
    changes = [(1, "p", "off"), (2, "w", ""), (3, "s:newest", "")]
    assert remove("c1", known, changes, before="2") == 0
    assert remove("c1", known[:1], changes) == 0
    assert remove("c1", [*known, (1, "r", 'of "s"')], changes) == 0
    assert remove("c1", [(1, "p", 'was "s"'), known[1]], changes) == 0
    client.hset("layout", "resharding", "token")
    assert remove("c1", known, changes) == b"resharding"
    client.delete("layout")
    assert [remove("c1", known, changes), remove("c1", known, changes)] == [1, 1]
    assert remove("c2", known, changes) == 0
    assert client.hgetall("patterns") == {b"p": b"off", b"q": b'of "t"'}
    assert not client.exists("streams", "webhooks", "ids", "ids:0", "ids:1", "gone")
    assert client.hgetall("times") == {b"t:newest": b"2"}
    assert client.zrange("turns", 0, -1) == [b"w"]
    assert [client.xlen(f"log:{shard}") for shard in (0, 1)] == [1, 1]


def test_log_read_kept(run, client):
    for number in (1, 2, 3):
        client.xadd("log:0", {"a": number}, id=f"{number}-0")
    shards = ["log:0", "log:1"]
    assert run("log/read_kept", shards=shards, appended="a") == [[[b"1-0", b"3-0", b"0"], [b"", b"0-0", b"0"]], b""]
    client.xtrim("log:0", maxlen=2, approximate=False)
    client.hset("a", "newest", "3-0")
    assert run("log/read_kept", shards=shards, appended="a") == [[[b"2-0", b"3-0", b"1"], [b"", b"0-0", b"0"]], b"3-0"]


def test_log_append_control(run, client):
    given = {"call": "call", "layout": "layout", "routes": "routes", "shards": ["log:0", "log:1"], "call_ms": 60_000}
    given |= {"kind": "k", "stream": "s", "body": b"\xff", "shard_count": 2}
    assert [run("log/append_control", **given) for _ in range(2)] == [1, 0]
    for shard in (0, 1):
        ((_, fields),) = client.xrange(f"log:{shard}")
        assert fields == {b"kind": b"k", b"stream": b"s", b"body": b"\xff"}
    client.hset("routes", "s", "-")
    assert run("log/append_control", **{**given, "call": "another"}) == b"gone"
    client.hset("layout", "resharding", "token")
    assert run("log/append_control", **{**given, "call": "another"}) == b"resharding"


def test_log_decide(run, client):
    def decide(before, after, kind="lateness", shard_count=2):
        given = {"field": "s lateness", "before": before, "after": after, "stream": "s", "kind": kind, "body": "b"}
        given["since"] = "7"
        keys = {"deciders": "deciders", "layout": "layout", "routes": "routes", "streams": "streams"}
        return run("log/decide", **keys, shards=["log:0", "log:1"], **given, shard_count=shard_count)

    assert decide("", "1") == b"gone", "the stream is not the one that was read"
    client.hset("streams", "s", '{"since_ms":7}')
    assert [decide("", "1", kind=""), decide("", "2"), decide("1", "2"), decide("1", "2")] == [1, 0, 1, 1]
    assert client.hgetall("deciders") == {b"s lateness": b"2"}
    said = {b"kind": b"lateness", b"stream": b"s", b"body": b"b"}
    assert [[fields for _, fields in client.xrange(f"log:{shard}")] for shard in (0, 1)] == [[said], [said]]
    client.hset("routes", "s", "-")
    assert decide("2", "3") == b"gone"
    client.hset("layout", "shards", 3)
    assert decide("2", "3") == b"moved"
    client.hset("layout", "resharding", "token")
    assert decide("2", "3") == b"resharding"
    assert client.hgetall("deciders") == {b"s lateness": b"2"}


def test_log_tick(run, client):
    def tick(time_us, shard_count=1, **others):
        given = {"stream": "s", "time_us": time_us, "kind": "tick", "body": "b", "shard_count": shard_count}
        keys = {"times": "times", "layout": "layout", "routes": "routes", "streams": "streams"}
        return run("log/tick", **keys, shards=["log:0"], **{"since": "*", **given, **others})

    assert [tick(5), tick(5), tick(4), tick(6)] == [1, 0, 0, 1]
    assert client.hgetall("times") == {b"s:ticked": b"6"}
    assert [fields for _, fields in client.xrange("log:0")] == [{b"kind": b"tick", b"stream": b"s", b"body": b"b"}] * 2
    client.hset("routes", "s", "-")
    assert tick(7) == 0
    client.delete("routes")
    client.hset("streams", "s", '{"since_ms":8,"declaration":{"description":"since_ms"}}')
    assert [tick(7, since="7"), tick(7, since="")] == [0, 0], "it is of a stream that was removed"
    client.hset("layout", "shards", 1)
    assert tick(7, shard_count=2) == b"moved"
    client.hset("layout", "resharding", "mine")
    assert tick(7) == b"resharding"


def test_log_ask(run, client):
    def ask(number):
        keys = {"layout": "layout", "routes": "routes", "job": "job", "shards": ["log:0", "log:1"]}
        asked = [f"q.{number}", "b", f"q.{number}'", "c"]
        return run("log/ask", **keys, stream="s", shard_count=2, life_ms=10_000, asked=asked)

    last = client.xadd("log:1", {"kind": "events"})
    assert ask(1) == 0
    assert client.keys("log:*:questions") == []
    client.set("job", "j")
    client.xadd("log:0:questions", {"id": "old"}, id="1-0")
    assert ask(1) == 1
    for shard, until in (("0", b"0-0"), ("1", last)):
        found = [fields for _, fields in client.xrange(f"log:{shard}:questions")]
        first = {b"id": b"q.1", b"stream": b"s", b"body": b"b", b"until": until}
        assert found == [first, first | {b"id": b"q.1'", b"body": b"c"}]
        assert 0 < client.pttl(f"log:{shard}:questions") <= 10_000
    client.hset("routes", "s", "-")
    assert ask(2) == b"gone"
    client.hset("layout", "shards", 3)
    assert ask(2) == b"moved"


def test_registry_read_asked(run, client):
    keys = {"operators": "operators", "streams": "streams", "times": "times", "heartbeat": "beat"}
    read = partial(run, "registry/read_asked", **keys, parts=[":newest", ":ticked"])
    client.hset("operators", "kind/o", '{"stream": "s"}')
    client.hset("times", mapping={"s:newest": 5, "other:newest": 9})
    assert read(field="kind/none") == []
    assert read(field="kind/o") == [b'{"stream": "s"}', None, [b"5", None], None]
    client.hset("streams", "s", "declared")
    client.set("beat", 7)
    assert read(field="kind/o") == [b'{"stream": "s"}', b"declared", [b"5", None], b"7"]

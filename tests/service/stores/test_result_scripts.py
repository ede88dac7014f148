"""The Lua files of results; see ``test_scripts.py`` for the others."""

import orjson
import pytest
import redis

from service.stores.connection import register

pytestmark = pytest.mark.redis


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


BOTH = [("s", ["a", "c"], {"p": 1, "q": 1}), ("t", ["b"], {"p": 1})]


def block(ids, patterns):
    return orjson.dumps({"ids": ids, "patterns": patterns}) + b"\nbodies"


def append_alerts(run, epoch, ids, streams, counts=(("c", 1, 0),)):
    keys = {"places": "places", "blocks": "blocks", "number": "number", "due": "due", "deliveries": "deliveries"}
    keys |= {"counts": "counts", "lost_counts": "lost", "sizes": "sizes", "trimmed": "trimmed"}
    keys |= {"trimmed_counts": "trimmed:counts", "acknowledged": "acknowledged", "noted": "noted", "hours": "hours"}
    bounds = {"kept": 2, "kept_hours": 2, "most_trimmed": 10, "index_key": "index", "notes_key": "notes:", "now_us": 7}
    parts = [
        {"stream": name, "rows": [ids.index(id_) + 1 for id_ in some], "patterns": patterns}
        for name, some, patterns in streams
    ]
    deliveries = [{"id": f"w:{id_}", "record": "r"} for id_ in ids]
    hours = [[hour - 3, "c", 1] for hour in range(len(ids))]  # before the clock
    chunk = orjson.dumps({"ids": ids, "streams": parts, "counts": counts, "hours": hours, "deliveries": deliveries})
    blocks = [block(some, list(patterns)) for _, some, patterns in streams]
    return run("results/append_alerts", **keys, **bounds, epoch=epoch, chunk=chunk, new_blocks=blocks)


def test_results_append_alerts(run, client):
    assert append_alerts(run, "epoch:1", ["a", "b", "c"], BOTH, [("c", 2, 1), ("d", 1, 0)]) == []
    assert client.zrange("due", 0, -1, withscores=True) == [(b"w:a", 7.0), (b"w:b", 7.0), (b"w:c", 7.0)]
    assert client.hgetall("deliveries") == {b"w:a": b"r", b"w:b": b"r", b"w:c": b"r"}
    assert client.hgetall("places") == {b"a": b"1:3-0:s", b"b": b"1:3-0:t", b"c": b"2:3-0:s"}
    assert set(client.hgetall("blocks")) == {b"3-0:s", b"3-0:t"}
    indexes = ("index", "index:stream:s", "index:stream:t", "index:pattern:p", "index:pattern:q")
    assert [client.xrange(index) for index in indexes] == [
        [(b"3-0", {b"s": b"2", b"t": b"1"})],
        [(b"3-0", {b"s": b"2"})],
        [(b"3-0", {b"t": b"1"})],
        [(b"3-0", {b"s": b"1", b"t": b"1"})],
        [(b"3-0", {b"s": b"1"})],
    ]
    assert (client.hgetall("counts"), client.hgetall("lost")) == ({b"c": b"2", b"d": b"1"}, {b"c": b"1"})
    assert (client.zrange("hours", 0, -1), client.hgetall("hours:-2")) == ([b"-2", b"-1"], {b"c": b"1"})
    assert not client.exists("hours:-3")
    assert append_alerts(run, "epoch:1", ["a", "d", "b"], [("s", ["a", "d", "b"], {"p": 3})]) == [1, 3]
    assert (client.get("number"), client.hlen("places")) == (b"3", 3)
    client.set("noted", 2)
    with pytest.raises(redis.ResponseError, match="SUPERSEDED by the batch 2"):
        append_alerts(run, "epoch:1", ["d"], [("s", ["d"], {"p": 1})])


def test_the_oldest_block_of_a_stream_is_removed(run, client):
    append_alerts(run, "epoch:1", ["a", "b", "c"], BOTH, [("c", 2, 1)])
    client.hset("acknowledged", "a", "seen")
    client.rpush("notes:a", "n")
    assert append_alerts(run, "epoch:1", ["d"], [("s", ["d"], {"p": 1})]) == []
    assert client.hlen("places") == 4  # the block of a and c has more than may be removed
    assert append_alerts(run, "epoch:1", ["e"], [("s", ["e"], {"p": 1})]) == []
    assert set(client.hgetall("blocks")) == {b"3-0:t", b"4-0:s", b"5-0:s"}
    assert set(client.hgetall("places")) == {b"b", b"d", b"e"}
    assert not client.exists("acknowledged", "notes:a")
    assert client.xlen("index:pattern:q") == 0
    assert [place for place, _ in client.xrange("index")] == [b"3-0", b"4-0", b"5-0"]  # of b still
    assert (client.hgetall("sizes"), client.hgetall("trimmed:counts")) == ({b"s": b"2", b"t": b"1"}, {b"s": b"2"})
    assert append_alerts(run, "epoch:1", ["a"], [("s", ["a"], {"p": 1})]) == [1]
    assert append_alerts(run, "epoch:2", ["a"], [("s", ["a"], {"p": 1})]) == []
    for id_ in ("f", "g", "h"):
        append_alerts(run, "epoch:2", [id_], [("t", [id_], {"p": 1})])
    assert client.xrange("index", "3-0", "3-0") == client.xrange("index:pattern:p", "3-0", "3-0") == []


def test_results_append_rows(run, client):
    def append_rows(epoch, ids, block, amount=1, kept=10):
        keys = {"entries": "entries", "size": "size", "counts": "counts", "seen": "seen", "due": "due"}
        keys |= {"noted": "noted", "hours": "hours"}
        deliveries = [{"id": f"w:{ids[0]}", "record": "r"}] if block else []
        chunk = orjson.dumps({"ids": ids, "counts": [["c", amount]], "hours": [[5, "c", 1]], "deliveries": deliveries})
        sent = {"deliveries": "deliveries", "epoch": epoch, "now_us": 7, "kept": kept, "chunk": chunk, "block": block}
        sent |= {"kept_hours": 2}
        return run("results/append_rows", **keys, **sent)

    client.xadd("entries", {"record": "former"})
    assert append_rows("epoch:1", ["a", "b"], "one", 2) == []
    assert append_rows("epoch:1", ["x"], "", 5) == []
    assert append_rows("epoch:1", ["c", "b", "a"], "again") == [2, 3]
    assert [fields for _, fields in client.xrange("entries")] == [
        {b"record": b"former"},
        {b"block": b"one", b"rows": b"2"},
    ]
    assert (client.hgetall("counts"), client.get("size")) == ({b"c": b"7"}, b"3")
    assert client.hgetall("hours:5") == {b"c": b"2"}
    assert (client.zscore("due", "w:a"), client.hgetall("deliveries")) == (7, {b"w:a": b"r"})
    assert append_rows("epoch:2", ["a", "b"], "two", kept=3) == []
    assert [fields[b"rows"] for _, fields in client.xrange("entries")] == [b"2", b"2"]  # at least 3
    assert append_rows("epoch:2", ["c"], "three", kept=3) == []
    assert ([fields[b"rows"] for _, fields in client.xrange("entries")], client.get("size")) == ([b"2", b"1"], b"3")
    client.set("noted", 3)
    with pytest.raises(redis.ResponseError, match="SUPERSEDED by the batch 3"):
        append_rows("epoch:2", ["d"], "four")
    assert append_rows("epoch:3", ["d"], "four") == []


def test_results_acknowledge(run, client):
    def acknowledge(record):
        return run("results/acknowledge", places="places", acknowledged="acknowledged", id="a", record=record)

    assert acknowledge("1") is None
    client.hset("places", "a", "b")
    assert [acknowledge("1"), acknowledge("2")] == [b"1", b"1"]


def test_results_add_note(run, client):
    def add(record):
        return run("results/add_note", places="places", notes="notes", id="a", record=record, most=2)

    assert add("1") is None
    client.hset("places", "a", "b")
    assert [add("1"), add("2"), add("1"), add("3")] == [1, 1, 1, 0]
    assert client.lrange("notes", 0, -1) == [b"1", b"2"]


def test_results_note_outcome(run, client):
    for at_us, letter in enumerate("abca"):
        run("results/note_outcome", outcomes="o", times="t", letter=letter, outcome=at_us, at_us=at_us, kept=2)
    assert client.hgetall("o") == {b"c": b"2", b"a": b"3"}
    assert client.zrange("t", 0, -1) == [b"c", b"a"]

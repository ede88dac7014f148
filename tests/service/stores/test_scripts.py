"""Every Lua file on a real server: a script ``room/name.lua`` is tested by ``test_room_name``."""

import re
from itertools import count
from pathlib import Path

import orjson
import pytest

import pipeline
import service.stores
import streams.log
from house import PACKAGES, ROOT
from service.stores.connection import register
from streams import read_script

STORES = Path(service.stores.__file__).parent
SCRIPTS = sorted(
    path.relative_to(STORES / "scripts").with_suffix("").as_posix()
    for path in STORES.rglob("*.lua")
    if path.parent.name != "parts"
)
SHARED = Path(streams.log.__file__).parent / "parts"
PARTS = sorted(part for folder in (STORES / "scripts/parts", SHARED) for part in folder.glob("*.lua"))
PIPELINE = Path(pipeline.__file__).parent
OF_THE_PIPELINE = sorted(PIPELINE.rglob("*.lua"))  # tested where they are used
FILES = [*OF_THE_PIPELINE, *PARTS, *(STORES / f"scripts/{name}.lua" for name in SCRIPTS)]
EVERY = [("service.stores", f"scripts/{name}") for name in SCRIPTS]
EVERY += [(".".join(("pipeline", *path.parent.relative_to(PIPELINE).parts)), path.stem) for path in OF_THE_PIPELINE]
CALL = re.compile(r"\bregister\(\w+, \"([\w/]+)\"[,)]")


def body(text):
    """Lua without its header and comments."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


@pytest.fixture
def run(client):
    return lambda script, **given: register(client, script)(**given)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_a_test(name):
    files = Path(__file__).parent.glob("test_*scripts.py")
    tests = {test for file in files for test in re.findall(r"^def (test_\w+)\(", file.read_text(), flags=re.MULTILINE)}
    assert f"test_{name.replace('/', '_')}" in tests, f"no test runs {name}.lua"


def test_no_lua_file_is_elsewhere():
    found = {path for package in PACKAGES for path in (ROOT / package).rglob("*.lua")}
    assert found == set(FILES)


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_a_script_uses_every_name_of_its_header_and_nothing_else(package, name):
    script = read_script(package, name)
    text = body((ROOT / package.replace(".", "/") / f"{name}.lua").read_text(encoding="utf-8"))
    names = [one.removesuffix("*") for one in (*script.keys, *script.args)]
    assert len(names) == len(set(names))
    unused = [one for one in names if not re.search(rf"(?<![.\w']){one}\b", text)]
    assert unused == [], f"{name}.lua does not use them"
    hidden = [one for one in names if re.search(rf"\blocal (function )?[\w, ]*\b{one}\b(?=[^=\n]*[=(])", text)]
    assert hidden == [], f"{name}.lua gives the names another meaning"
    assert not re.search(r"\b(KEYS|ARGV)\b", text)


def uses(text):
    """The parts that a script names in its header."""
    return {part for parts in re.findall(r"^--! uses: (.*)$", text, re.MULTILINE) for part in parts.split(", ")}


@pytest.mark.parametrize("part", PARTS, ids=lambda path: path.stem)
def test_a_part_is_named_where_its_functions_are_called(part):
    functions = re.findall(r"^local function (\w+)", part.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert functions
    texts = {path: path.read_text(encoding="utf-8") for path in FILES if path != part}
    callers = {path for path, text in texts.items() if any(re.search(rf"\b{one}\(", body(text)) for one in functions)}
    assert callers
    assert callers == {path for path, text in texts.items() if part.stem in uses(text)}


def test_every_script_is_used_and_every_used_one_is_there():
    called = {name for path in STORES.rglob("*.py") for name in CALL.findall(path.read_text(encoding="utf-8"))}
    assert called == set(SCRIPTS)


# The log.


def append(run, **given):
    usual = {
        "kept_answer": "answer",
        "dead_letters": "dead",
        "dead_letter_size": "dead:size",
        "dead_letter_counts": "dead:counts",
        "appended": "appended",
        "matched": "matched",
        "routes": "routes",
        "times": "times",
        "layout": "layout",
        "contexts": "contexts",
        "event_ids": "ids",
        "duplicates": "duplicates",
        "streams": "streams",
        "shards": ["log:0", "log:1"],
        "answer": "taken",
        "answer_ms": 60_000,
        "stream": "s",
        "dead_letters_kept": 10,
        "feed_mark": "",
        "most_events": 100,
        "most_bytes": 1_000,
        "known_routes": "",
        "newest_us": 5,
        "shard_count": 2,
        "context": "",
        "digests": b"aaabbb",
        "digest_bytes": 3,
        "ids_kept": 100,
        "ids_ms": 60_000,
        "dropped": 0,
        "since": "*",
        "rest": [b"\x00one", 2, "", b"two", 3, "by", "letter", "reason"],
    }
    return run("log/append_events", **{**usual, **given})


def test_log_append_events(run, client):
    context = orjson.dumps({"context": "trace", "life_ms": 10**9, "most": 9, "parts": [["0", "e", "5"], ["1"]]})
    nothing, positions = append(run, dropped=4, context=context)
    assert nothing is None
    ((first, fields),) = client.xrange("log:0")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"\x00one", b"upto": b"1:2:4"}
    ((second, fields),) = client.xrange("log:1")
    assert fields == {b"kind": b"events", b"stream": b"s", b"body": b"two", b"upto": b"1:3:3", b"route": b"by"}
    assert positions == [first, second]
    assert client.hget("appended", "events") == b"5"
    assert [fields for _, fields in client.xrange("dead")] == [{b"record": b"letter", b"rows": b"1"}]
    assert client.hgetall("dead:counts") == {b"reason": b"1"}
    assert client.hgetall("duplicates") == {b"s": b"4"}
    assert client.hget("times", "s:newest") == b"5"
    (remembered,) = client.keys("contexts:*")
    assert client.hgetall(remembered) == {b"e": b"trace 5 0 " + first}
    assert append(run) == [b"taken"]
    assert append(run, kept_answer="other") == [None, [], [b"known", [0, 1]]]
    assert append(run, kept_answer="other", digests=b"cccbbb") == [None, [], [b"known", [1]]]
    fresh = {"kept_answer": "other", "digests": b""}
    assert append(run, **fresh, most_events=9) == [None, [], [b"events", 10, 5]]
    assert append(run, **fresh, most_bytes=13) == [None, [], [b"bytes", 14, 7]]
    assert append(run, **fresh, known_routes="by") == [None, [], [b"routes", b""]]
    client.hset("layout", "shards", 3)
    assert append(run, **fresh) == b"moved"
    assert client.xlen("log:0") == client.xlen("dead") == 1


def test_log_append_events_of_a_stream_declared_again(run, client):
    def append_since(since, answer="taken"):
        return append(run, digests=b"", since=since, answer=answer)

    def declare(since):
        client.hset("streams", "s", f'{{"since_ms":{since}}}')

    declare(7)
    assert append_since(7, '{"since":7}')[0] is None
    assert append_since(8) == [None, [], [b"gone"]]
    declare(8)
    assert append_since(7) == [b'{"since":7}']
    assert append_since(8, '{"since":8}')[0] is None
    assert append_since(7) == [None, [], [b"gone"]]
    assert append_since(8) == append_since("*") == [b'{"since":8}']
    client.set("answer", "of an older release", px=40_000)
    seconds, _ = client.time()
    assert append_since((seconds - 25) * 1_000) == [b"of an older release"]
    declare((seconds - 15) * 1_000)
    assert append_since((seconds - 15) * 1_000)[0] is None


def test_log_append_events_of_a_feed(run, client):
    assert append(run, feed_mark="at 1") == [b""]
    client.set("answer", "at 1")
    assert append(run, feed_mark="at 1", answer="at 2")[0] is None
    assert (client.get("answer"), client.ttl("answer")) == (b"at 2", -1)
    assert append(run, feed_mark="at 1", answer="at 2") == [b"at 2"]


def test_log_read_times(run, client):
    client.hset("times", "s:newest", 5)
    (seconds, _), found = run("log/read_times", times="times")
    assert int(seconds) > 0
    assert found == [b"s:newest", b"5"]


def test_log_read_backlog(run, client):
    client.hset("appended", mapping={"entries": 1, "events": 2, "bytes": 3})
    assert run("log/read_backlog", appended="appended", matched="matched") == [[b"1", b"2", b"3"], [None] * 3]


def test_log_read_drain(run, client):
    client.rpush("marks", "[1]", "[2]")
    (seconds, _), found = run("log/read_drain", marks="marks")
    assert int(seconds) > 0
    assert found == [b"[1]", b"[2]"]


def test_log_find_contexts(run, client):
    now_s, _ = client.time()
    life_ms = 10**9
    current = now_s * 1_000 // life_ms
    client.hset(f"contexts:{current}", "a", "new")
    client.hset(f"contexts:{current - 1}", mapping={"a": "old", "b": "old"})
    found = run("log/find_contexts", contexts="contexts", life_ms=life_ms, events=["a", "b", "c"])
    assert found == [b"new", b"old", None]


def test_log_note_matched(run, client):
    client.hset("appended", mapping={"entries:0": 2, "events:0": 7, "bytes:0": 70, "entries:1": 1, "events:1": 1})
    for position, upto in (("1-0", "1:3:30"), ("2-0", "2:7:70")):
        client.xadd("log:0", {"upto": upto}, id=position)
    client.xadd("log:1", {"upto": "1:1:0"}, id="1-0")

    def note(*reports):
        keys = {"appended": "appended", "matched": "matched", "marks": "marks", "reports": "reports"}
        shards = [f"log:{shard}" for shard, _, _ in reports]
        return run("log/note_matched", **keys, shards=shards, marks_kept=2, shard_reports=[*sum(reports, ())])

    assert note((0, "1-0", "r1"), (1, "1-0", "r2")) == [1, 1]
    assert client.hget("matched", "events") == b"4"
    assert note((0, "1-0", "again")) == [0]
    assert note((0, "2-0", "r3")) == [1]
    assert client.hmget("matched", "entries", "events", "bytes") == [b"3", b"8", b"70"]
    assert client.hgetall("reports") == {b"0": b"r3", b"1": b"r2"}
    assert [orjson.loads(mark)[1:] for mark in client.lrange("marks", 0, -1)] == [[1, 4, 40], [2, 4, 30]]


def test_log_keep_progress(run, client):
    for _ in range(2):
        run("log/keep_progress", latest="latest", totals="totals", record="r", rises=["a", 1, "b", 2])
    assert client.get("latest") == b"r"
    assert client.hgetall("totals") == {b"a": b"2", b"b": b"4"}


def test_log_open_layout(run):
    opened = [b"1", b"4", b"id", None, None, None]
    assert run("log/open_layout", layout="layout", format=1, shards=4, identity="id") == opened
    assert run("log/open_layout", layout="layout", format=2, shards=5, identity="other") == opened


def test_log_release_layout(run, client):
    client.hset("layout", "resharding", "mine")
    assert [run("log/release_layout", layout="layout", token=token) for token in ("other", "mine", "mine")] == [0, 1, 0]
    assert not client.exists("layout")


def test_log_switch_layout(run, client):
    client.hset("layout", mapping={"resharding": "mine", "shards": 1, "former": "9", "unfinished": 2})
    given = {"format": 2, "shards_before": 1, "shards": 2, "starts": ["1-0", "r0", "2-0", "r1"]}
    keys = {"layout": "layout", "reports": "reports", "derived_marks": "marks", "derived_promises": "promises"}
    client.hset("marks", "0:s", "1-0 5")
    client.hset("promises", "0:s", "{}")
    assert [run("log/switch_layout", **keys, **given, token=token) for token in ("other", "mine", "mine")] == [0, 1, 0]
    layout = {b"format": b"2", b"shards": b"2", b"generation": b"2", b"former": b"9 1"}
    assert client.hgetall("layout") == {**layout, b"start:0": b"1-0", b"start:1": b"2-0"}
    assert client.hgetall("reports") == {b"0": b"r0", b"1": b"r1"}
    assert client.exists("marks", "promises") == 0


# The registry.


def test_registry_commit(run, client):
    calls = count(1)

    def commit(before, *commands, routes=(), controls=("s", "on", "b"), stops=(), of="log:0 log:1", call=None):
        parts = ["records", "p", before], routes, controls, stops, *commands
        words = [word for part in parts for word in (len(part), *part)]
        keys = {"call": call or f"call:{next(calls)}", "layout": "layout", "routes": "routes", "shards": of.split()}
        counted = {"shard_count": len(of.split()) or "", "call_ms": 60_000}
        return run("registry/commit", **keys, **counted, stop="[1]", words=words)

    def set_to(record):
        return "HSET", "records", "p", record

    assert commit("other", set_to("1"), call="mine") == 0
    assert not client.exists("mine")
    first = {"routes": ["users", "s", "p", "by"], "call": "mine"}
    assert [commit("", set_to("1"), **first) for _ in range(2)] == [1, 1]
    assert 0 < client.pttl("mine") <= 60_000
    assert client.hgetall("records") == {b"p": b"1"}
    assert (client.hgetall("users"), client.hgetall("routes")) == ({b"p": b"by"}, {b"s": b"by"})
    for shard in (0, 1):
        assert [fields for _, fields in client.xrange(f"log:{shard}")] == [
            {b"kind": b"on", b"stream": b"s", b"body": b"b"}
        ]
    assert commit("1", set_to("2"), ("SET", "model", b"\x00model"), controls=()) == 1
    assert (client.xlen("log:0"), client.get("model")) == (1, b"\x00model")
    assert client.hget("routes", "s") == b"by"
    assert commit("2", set_to("3"), routes=["users", "s", "p", ""]) == 1
    assert not client.exists("users", "routes")
    parts = {
        "routes": ["users:2", "s2", "part/1", "k", "users:3", "s3", "part/2", ""],
        "controls": ["s", "on", "b", "s2", "on", "b1"],
    }
    assert commit("3", **parts) == 1
    assert (client.hgetall("users:2"), client.hget("routes", "s2")) == ({b"part/1": b"k"}, b"k")
    assert [fields[b"body"] for _, fields in client.xrange("log:1")][-2:] == [b"b", b"b1"]
    assert commit("3", **parts, stops=["", "stops:1"]) == 1
    assert client.hgetall("stops:1") == {client.xrevrange("log:1", count=1)[0][0]: b"[1]"}
    client.hset("routes", "s3", "-")
    assert commit("3", set_to("4"), **parts) == b"gone"
    client.delete("routes", "users")
    client.hset("routes", "s", "-")
    assert commit("3", set_to("4")) == b"gone"
    assert commit("3", routes=["users", "s", "s", ""], controls=["s", "stream-on", "b"]) == 1
    assert not client.exists("routes")
    client.hset("layout", "resharding", "token")
    assert commit("3", set_to("4")) == b"resharding"
    assert client.hgetall("records") == {b"p": b"3"}
    assert commit("3", ("HDEL", "records", "p"), controls=(), of="") == 1
    assert not client.exists("records")


def test_registry_keep_piece(run, client):
    def keep(place, draft="draft", pieces=2):
        given = {"place": place, "pieces": pieces, "life_s": 60, "piece": f"piece {place}"}
        return run("registry/keep_piece", draft=draft, content="content", **given)

    assert [keep(0), keep(0), client.llen("draft"), client.ttl("draft")] == [1, 1, 1, 60]
    assert keep(1, draft="lost") == 0
    assert [keep(1), keep(1), keep(0, draft="late")] == [1, 1, 1]
    whole = [b"piece 0", b"piece 1"]
    assert (client.lrange("content", 0, -1), client.ttl("content"), client.keys()) == (whole, 60, [b"content"])
    client.persist("content")
    client.rpush("content", "piece 1")
    assert [keep(0), keep(1)] == [1, 1]
    assert (client.lrange("content", 0, -1), client.ttl("content")) == (whole, -1)


def test_registry_forget_tables(run, client):
    versions = {"1@t": "a", "2@t": "b", "3@t": "a", "1@u": "c"}
    client.hset("versions", mapping={field: f'{{"digest":"{digest}"}}' for field, digest in versions.items()})
    client.mset({f"table:{digest}": 1 for digest in "abc"})
    client.hset("changes:1", "x", 1)
    client.expire("table:c", 9)
    given = {"versions": "versions", "changes": ["changes:1"], "contents": "table:", "life_s": 60}
    for _ in range(2):
        assert run("registry/forget_tables", **given, fields=["1@t", "2@t"]) == 1
        assert [client.ttl(f"table:{digest}") for digest in "abc"] == [-1, 60, -1]
    assert (client.hkeys("versions"), client.exists("changes:1")) == ([b"3@t", b"1@u"], 0)


def test_registry_put_webhook(run, client):
    def put(id_, name, record, stream=""):
        keys = {"webhooks": "webhooks", "names": "names", "mark": "mark", "routes": "routes"}
        return run("registry/put_webhook", **keys, id=id_, name=name, stream=stream, record=record)

    client.hset("routes", "s", "-")
    assert put("e", "gone", "7", "s") == b"gone"

    assert [put("a", "desk", "1"), put("b", "desk", "2"), put("a", "desk", "3")] == [1, 0, 1]
    assert [put("c", "", "4"), put("d", "", "5")] == [1, 1]
    assert client.hgetall("webhooks") == {b"a": b"3", b"c": b"4", b"d": b"5"}
    client.hdel("webhooks", "a")
    client.set("mark", "m")
    assert put("b", "desk", "6") == 1
    assert client.hgetall("names") == {b"desk": b"b"}
    assert not client.exists("mark")


# Locks.


def test_locks_advance_format(run, client):
    client.set("lock", "mine")
    given = {"format": "format", "lock": "lock", "form": 3, "lock_ms": 60_000}
    assert [run("locks/advance_format", **given, token=token) for token in ("other", "mine")] == [0, 1]
    assert client.get("format") == b"3"
    assert client.pttl("lock") > 50_000


def test_locks_renew(run, client):
    client.set("lock", "mine")
    assert [run("locks/renew", lock="lock", token=token, lock_ms=60_000) for token in ("other", "mine")] == [0, 1]
    assert client.pttl("lock") > 50_000


def test_locks_release(run, client):
    client.set("lock", "mine")
    assert [run("locks/release", lock="lock", token=token) for token in ("other", "mine", "mine")] == [0, 1, 0]
    assert not client.exists("lock")


def test_locks_take_lease(run, client):
    holders = ("one", "other", "one")
    assert [run("locks/take_lease", lease="lease", holder=one, life_ms=60_000) for one in holders] == [1, 0, 1]
    assert client.get("lease") == b"one"
    assert client.pttl("lease") > 50_000


def test_keyspace_read_part(run, client):
    client.rpush("list", *"abc")
    client.sadd("set", *(f"{number:04}" for number in range(2_000)))
    client.zadd("zset", {"a": 0.5, "b": 2**53 + 2})
    client.hset("hash", mapping={"a": "x", "b": ""})
    for number in (1, 2):
        client.xadd("stream", {"a": "x" * 10, "b": ""}, id=f"{number}-0")

    def read(key, after="", most=10, most_bytes=100):
        return run("keyspace/read_part", key=key, kind=key, after=after, most=most, most_bytes=most_bytes)

    first, second = ([b"%d-0" % number, b"4", b"a", b"x" * 10, b"b", b""] for number in (1, 2))
    assert read("stream") == [[first, second], b""]
    assert read("stream", most=1) == read("stream", most_bytes=5) == [[first], b"1-0"]
    assert read("stream", after="1-0") == [[second], b""]
    assert read("list", most_bytes=2) == [[[b"a"], [b"b"]], b"2"]
    assert read("list", after="2") == [[[b"c"]], b""]
    assert read("zset") == [[[b"a", b"0.5"], [b"b", b"9007199254740994"]], b""]
    assert read("hash") == [[[b"a", b"x"], [b"b", b""]], b""]
    members: list[bytes] = []
    place = b""
    while not members or place:
        page, place = read("set", after=place, most=1_000)
        assert 100 <= 4 * len(page) < 200 or not place
        members += [member for element in page for member in element]
    assert sorted(set(members)) == [b"%04d" % number for number in range(2_000)]


def test_locks_begin_answer(run, client):
    replies = [run("locks/begin_answer", answer="answer", pending=one, pending_ms=60_000) for one in ("a", "a", "b")]
    assert replies == [None, None, b"a"]
    assert client.pttl("answer") > 50_000


# Deliveries.


def claim(run, now_us, limit=10, most_waiting=10):
    return claim_with_digests(run, now_us, limit, most_waiting)[0]


def claim_with_digests(run, now_us, limit=10, most_waiting=10):
    keys = {name: name for name in ("new", "records", "turns", "webhooks", "digests", "restoring")}
    beginnings = {
        f"{name}_key": f"{name}:" for name in ("waiting", "sending", "circuit", "stats", "given_up", "collected")
    }
    rules = {"most_waiting": most_waiting, "per_target": 2, "circuit_failures": 1, "given_up_kept": 1}
    given = {"now_us": now_us, "lease_us": now_us + 50, "limit": limit, "given_up_records_key": "given_up_records:"}
    return run("deliveries/claim", **keys, **beginnings, **rules, **given)


def queue(client, *ids, due_us=1):
    client.hset("webhooks", mapping={"w": '{"is_enabled":true}', "off": '{"is_enabled":false}'})
    for id_ in ids:
        client.hset("records", id_, f"r-{id_}")
        client.zadd("new", {id_: due_us})


def test_deliveries_claim(run, client):
    queue(client, "w:1", "w:2", "w:3", "off:1", "gone:1")
    assert claim(run, 5) == [[b"w:1", b"r-w:1"], [b"w:2", b"r-w:2"]]
    assert client.zrange("sending:w", 0, -1, withscores=True) == [(b"w:1", 55.0), (b"w:2", 55.0)]
    assert claim(run, 6) == []
    assert set(client.hgetall("records")) == {b"w:1", b"w:2", b"w:3", b"off:1"}
    assert client.zrange("turns", 0, -1, withscores=True) == [(b"w", 55.0)]
    assert claim(run, 60, limit=1) == [[b"w:3", b"r-w:3"]]
    client.hset("circuit:w", mapping={"failures": 1, "until_us": 200})
    client.zrem("sending:w", "w:3")
    client.zadd("turns", {"w": 60})
    assert claim(run, 60) == []
    assert client.zscore("turns", "w") == 200
    assert len(claim(run, 200)) == 1


def test_deliveries_claim_gives_up_what_too_many_wait_before(run, client):
    queue(client, "w:1", "w:2", "w:3")
    assert claim(run, 5, most_waiting=1) == [[b"w:1", b"r-w:1"]]
    assert client.hgetall("given_up_records:w") == {b"w:3": b"r-w:3"}
    assert client.zrange("given_up:w", 0, -1) == [b"w:3"]
    assert client.hget("stats:w", "dead") == b"2"


def test_deliveries_claim_collects_for_digests(run, client):
    queue(client, "w:+1", "w:+2", "w:+3", "w:4", due_us=2)
    client.hset("webhooks", "w", '{"is_enabled":true,"digest":{"every_us":1760000000000000}}')
    assert claim_with_digests(run, 5, most_waiting=2) == [[[b"w:4", b"r-w:4"]], []]
    assert client.zrange("collected:w", 0, -1, withscores=True) == [(b"w:+1", 2.0), (b"w:+2", 2.0)]
    assert client.zscore("digests", "w") == 1_760_000_000_000_002
    assert client.zrange("given_up:w", 0, -1) == [b"w:+3"]
    assert claim_with_digests(run, 1_760_000_000_000_001)[1] == []
    assert claim_with_digests(run, 1_760_000_000_000_002)[1] == [b"w"]


def test_deliveries_close_digest(run, client):
    keys = {one: one for one in ("collected", "records", "waiting", "digests", "turns", "restoring")}
    client.zadd("collected", {"w:+1": 1, "w:+2": 1, "w:+3": 2})
    client.zadd("digests", {"w": 5})
    client.hset("records", mapping={"w:+1": "a", "w:+2": "b", "w:+3": "c"})

    def close(*ids, record="r", now_us=7):
        return run("deliveries/close_digest", **keys, webhook="w", now_us=now_us, id="w:d", record=record, ids=ids)

    assert [close("w:+1", "w:+9"), close("w:+1", "w:+2"), close("w:+1", "w:+2")] == [0, 1, 0]
    assert client.hgetall("records") == {b"w:+3": b"c", b"w:d": b"r"}
    assert client.zrange("waiting", 0, -1, withscores=True) == [(b"w:d", 7.0)]
    assert (client.zscore("turns", "w"), client.zscore("digests", "w")) == (7, 5)
    assert close("w:+3", record="", now_us=9) == 1
    assert client.hgetall("records") == {b"w:d": b"r"}
    assert not client.exists("collected", "digests")
    assert client.zscore("turns", "w") == 7


def settle(run, verdict, lease_us=55, now_us=10, rest_us=0, failures=1):
    keys = {"waiting": "waiting:w", "sending": "sending:w", "stats": "stats", "circuit": "circuit:w", "log": "log"}
    keys |= {"records": "records", "webhooks": "webhooks", "turns": "turns"}
    keys |= {"given_up": "given_up", "given_up_records": "given_up_records", "collected": "collected"}
    given = {"id": "w:1", "lease_us": lease_us, "verdict": verdict, "next_us": 99, "record": "r2", "webhook": "w"}
    given |= {"status": 503, "reason": "busy", "now_us": now_us, "entry": "e", "log_kept": 10, "given_up_kept": 10}
    rules = {"per_target": 2, "circuit_failures": failures, "circuit_pause_us": 100}
    return run("deliveries/settle", **keys, **given, **rules, body="b", rest_us=rest_us)


def test_a_receiver_rests_as_long_as_it_asks_for(run, client):
    queue(client, "w:1")
    claim(run, 5)
    assert settle(run, "retry", rest_us=150, failures=9) == 1
    assert client.zscore("turns", "w") == 150
    assert claim(run, 149) == []
    assert claim(run, 150) == [[b"w:1", b"r2"]]


def test_deliveries_settle(run, client):
    queue(client, "w:1")
    claim(run, 5)
    assert settle(run, "retry", lease_us=54) == 0
    assert settle(run, "retry") == 1
    assert client.hgetall("records") == {b"w:1": b"r2"}
    assert client.zrange("waiting:w", 0, -1, withscores=True) == [(b"w:1", 99.0)]
    assert client.hgetall("circuit:w") == {b"since_us": b"10", b"failures": b"1", b"until_us": b"110"}
    assert client.zscore("turns", "w") == 110
    assert [fields for _, fields in client.xrange("log")] == [{b"record": b"e", b"body": b"b"}]
    assert claim(run, 120) == [[b"w:1", b"r2"]]
    assert settle(run, "dead", lease_us=170, now_us=130) == 1
    assert client.hgetall("given_up_records") == {b"w:1": b"r2"}
    assert (client.hget("stats", "dead"), client.hget("stats", "failed_attempts")) == (b"1", b"2")
    assert (client.hget("stats", "last_status"), client.hget("stats", "last_error")) == (b"503", b"busy")
    assert settle(run, "delivered") == 0


def test_deliveries_settle_what_was_delivered(run, client):
    queue(client, "w:1")
    claim(run, 5)
    client.hset("circuit:w", "failures", 1)
    assert [settle(run, "delivered", lease_us=1), settle(run, "delivered")] == [1, 0]
    assert not client.exists("records", "circuit:w", "sending:w", "waiting:w", "turns")
    assert client.hget("stats", "delivered") == b"1"


def test_deliveries_send_again(run, client):
    client.zadd("sending", {"w:1": 55})
    client.zadd("given_up", {"w:2": 1})
    client.zadd("collected", {"w:2": 1, "w:+3": 1})
    client.hset("given_up_records", "w:2", "old")
    keys = {"waiting": "waiting", "sending": "sending", "records": "records", "turns": "turns"}
    keys |= {"given_up": "given_up", "given_up_records": "given_up_records", "collected": "collected"}
    fresh = ["w:1", "r1", "w:2", "r2"]
    assert run("deliveries/send_again", **keys, webhook="w", now_us=7, fresh=fresh) == 1
    assert client.hgetall("records") == {b"w:2": b"r2"}
    assert client.zrange("waiting", 0, -1, withscores=True) == [(b"w:2", 7.0)]
    assert client.zscore("turns", "w") == 7
    assert not client.exists("given_up", "given_up_records")
    assert client.zrange("collected", 0, -1) == [b"w:+3"]


# Where the pipeline's micro-batches end.


def test_ends(client):
    for number in (1, 2, 3):
        client.xadd("log:0", {"body": "x" * 10}, id=f"{number}-0")

    def ends(entries, size, after="0-0", shards=("log:0", "log:1")):
        script = read_script("pipeline.sources", "ends")
        given = {"layout": "layout", "shards": shards, "most_entries": entries, "most_bytes": size}
        return client.register_script(script.text)(*script.bind({**given, "afters": [after, "7-7"]}))

    assert ends(0, 0) == [b"3-0", b"7-7"]
    assert ends(2, 1_000) == [b"2-0", b"7-7"]
    assert ends(2, 1_000, after="1-0") == [b"3-0", b"7-7"]
    assert ends(9, 15) == ends(9, 1) == [b"1-0", b"7-7"]
    client.hset("layout", "shards", 1)
    assert ends(0, 0) == []
    assert ends(0, 0, shards=["log:0"]) == [b"3-0"]

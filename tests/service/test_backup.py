"""A stopped service goes into a file and comes back as it was; what is damaged, runs or is in the way is refused."""

import errno
import gzip
import tracemalloc
from functools import partial

import orjson
import pytest

from service import AlertSink, Stores
from service.delivery.digests import close_digest
from service.errors import BackupDamaged, BackupRefused, FileUnreadable, StoreNewer
from service.processes.cluster import job_options
from service.stores import Keyspace, RegisteredWebhook, Submission, connect, pattern_draft
from service.stores.deliveries.webhooks import DigestRules
from service.stores.heartbeat import STARTING_KEY
from service.upkeep.backup import back_up, look_into, restore
from service.upkeep.backup_file import frames, writing
from streams import EventBatch, PatternOn, StreamDeclaration, StreamOn
from tests.builders.job import match_log
from tests.builders.service import HandClock, private_server, settings_for
from tests.builders.shards import event, log_of, run_inline

pytestmark = pytest.mark.redis

STREAM = StreamDeclaration(name="orders", key="data.id", end_events=("End",))
TEXT = "PATTERN pair EVENT SEQ(A a, U u)"
KEYS = 12


@pytest.fixture(scope="module")
def other_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("other")) as url:
        yield url


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data")


@pytest.fixture
def stores(client, server_url, settings):
    return Stores(client, server_url, settings)


@pytest.fixture
def other(other_url, tmp_path):
    """Settings and stores of another, empty service."""
    settings = settings_for(other_url, data_dir=tmp_path / "other")
    with connect(other_url) as client:
        client.flushall()
        yield settings, Stores(client, other_url, settings)


def ignore(_share):
    pass


def register_anything(client):
    """Without a registered stream, table, workflow, webhook or project, nothing is backed up or restored."""
    client.hset("forestall:workflows", "w", "{}")


def round_of(event_type, first):
    return [event(first + number, event_type, f"k{number}", id=f"k{number}") for number in range(KEYS)]


def post(stores, batch):
    submission = Submission(
        stream="orders", batch=EventBatch.from_events(batch), dead_letters=[], answer={}, fingerprint="f",
        token=batch[0].id, keys={},
    )  # fmt: skip
    stores.log.append_events(submission)


def match_all(settings, stores):
    """What the pipeline does, without Spark: from its checkpoint to the log's end."""
    match_log(job_options(settings, stores.log.layout.read(), stores.url, tasks=1), AlertSink(stores, HandClock()))


def alerts(stores):
    return sorted(alert["id"] for alert in stores.alerts.page(limit=10_000).items)


def begin(settings, stores):
    stores.registry.declare_stream(STREAM)
    stores.registry.put_pattern("orders", pattern_draft(name="pair", text=TEXT, route=""), 0)
    post(stores, round_of("A", 100))
    match_all(settings, stores)


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def content(client):
    """All that the service keeps, by key."""
    keyspace = Keyspace(client)
    return {key: [(part.kind, part.expires_ms, part.values) for part in keyspace.read(key)] for key in keyspace.names()}


NUMBERS = {b"forestall:alerts:number", b"forestall:incidents:number"}


def test_every_type_of_key_comes_back_as_it_was(client, settings, stores, other, tmp_path):
    register_anything(client)
    client.set("forestall:text", b"\x00\xff")
    client.set("forestall:passing", "x", ex=5_000)
    client.hset("forestall:hash", mapping={f"f{n}": f"v{n}" for n in range(1_700)})
    client.rpush("forestall:list", *range(1_200))
    client.sadd("forestall:set", "a", "b")
    client.zadd("forestall:zset", {"a": 1.5, "b": 1_767_225_600_000_001, "c": float("inf")})
    for number in range(250):
        client.xadd("forestall:stream", {"kind": "events", "body": f"{number}"}, id=f"{number + 1}-7")
    client.xtrim("forestall:stream", maxlen=210, approximate=False)
    client.xadd("forestall:emptied", {"a": "b"}, id="9-9")
    client.xtrim("forestall:emptied", maxlen=0)
    client.set("another:key", "stays out")
    shares: list[float] = []
    back_up(settings, stores, tmp_path / "file", HandClock(), shares.append)
    there, there_stores = other
    assert restore(there, there_stores, tmp_path / "file", ignore, clock=HandClock(), replace=False).keys == 9
    assert content(there_stores.client).keys() - NUMBERS == content(client).keys()
    for key, parts in content(client).items():
        kinds = {part[:2] for part in parts}
        flat = [value for part in parts for value in part[2]]
        found = content(there_stores.client)[key]
        assert {part[:2] for part in found} == kinds
        if b"hash" in key or b":set" in key:
            assert sorted(value for part in found for value in part[2]) == sorted(flat)
        else:
            assert [value for part in found for value in part[2]] == flat
    for name in ("forestall:stream", "forestall:emptied"):
        told, expected = there_stores.client.xinfo_stream(name), client.xinfo_stream(name)
        for field in ("length", "last-generated-id", "entries-added", "max-deleted-entry-id", "groups"):
            assert told[field] == expected[field]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("place", ["folder", "redis"])
def test_what_is_restored_goes_on_and_tells_each_alert_once(server_url, client, other_url, tmp_path, place):
    named = {"snapshots": "redis"} if place == "redis" else {}
    settings = settings_for(server_url, data_dir=tmp_path / "data", **named)
    stores = Stores(client, server_url, settings)
    begin(settings, stores)
    spilled = {"0/a.rows": b"rows of a join", "0/kept/1-1.list": b"a.rows"} if place == "folder" else {}
    for name, body in spilled.items():  # as states that are partly on disk have them
        path = settings.data_dir / "snapshots" / "spilled" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    content = back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    assert content.files >= 1
    there = settings_for(other_url, data_dir=tmp_path / "other", **named)
    with connect(other_url) as other_client:
        other_client.flushall()
        there_stores = Stores(other_client, other_url, there)
        restore(there, there_stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)
        folder = there.data_dir / "snapshots" / "spilled"
        assert {name: (folder / name).read_bytes() for name in spilled} == spilled
        for one, its in ((settings, stores), (there, there_stores)):
            post(its, round_of("U", 200))
            match_all(one, its)
            match_all(one, its)
        rows = run_inline(log_of([StreamOn(STREAM), PatternOn(name="pair", version=1, text=TEXT),
                                  round_of("A", 100), round_of("U", 200)]))  # fmt: skip
        assert alerts(there_stores) == alerts(stores) == sorted(row.id for row in rows if row.kind == "alert")
        assert len(alerts(stores)) == KEYS
        assert there_stores.registry.streams() == stores.registry.streams()


def test_a_cursor_from_after_the_backup_misses_nothing_after_the_restore(settings, stores, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    lost, cursor = alerts(stores), stores.alerts.newest()
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert alerts(stores) == []
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    assert sorted(alert["id"] for alert in stores.alerts.page(after=cursor, limit=10_000).items) == lost
    assert len(lost) == KEYS


def test_what_is_there_is_replaced_only_when_that_is_said(settings, stores, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    assert alerts(stores)
    with pytest.raises(BackupRefused, match=r"data exists already: \d+ keys in Redis.*--replace deletes it"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert alerts(stores) == []
    assert not (settings.data_dir / "handover").exists()
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    assert len(alerts(stores)) == KEYS


def test_the_contents_of_a_linked_folder_are_replaced_and_the_link_stays(settings, stores, tmp_path):
    folder, elsewhere = settings.data_dir / "checkpoint", tmp_path / "elsewhere"
    begin(settings, stores)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    saved = contents(elsewhere)
    assert saved
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    assert contents(elsewhere) != saved
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert folder.is_symlink()
    assert contents(elsewhere) == saved


def test_a_file_that_cannot_be_removed_ends_the_restore(settings, stores, monkeypatch, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(FileUnreadable, match="cannot be removed: Permission denied"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert Keyspace(stores.client).is_restoring()
    monkeypatch.undo()
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)


def test_a_store_without_data_is_not_backed_up(settings, stores, tmp_path):
    with pytest.raises(BackupRefused, match="so the backup would be empty: set FORESTALL_DATA_DIR and"):
        back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    assert not (tmp_path / "file").exists()


def test_a_store_in_which_nothing_was_registered_is_not_backed_up(settings, stores, tmp_path):
    match_all(settings, stores)  # as a service that was started once on a wrong data folder
    assert Keyspace(stores.client).names()
    with pytest.raises(BackupRefused, match="so the backup would be empty: set FORESTALL_DATA_DIR and"):
        back_up(settings, stores, tmp_path / "file", HandClock(), ignore)


def test_a_store_without_streams_is_backed_up_with_all_else(client, settings, stores, other, tmp_path):
    register_anything(client)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    there, there_stores = other
    restore(there, there_stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)
    assert content(there_stores.client).keys() - NUMBERS == content(client).keys()


def test_results_of_streams_that_were_deleted_are_backed_up(client, settings, stores, tmp_path):
    match_all(settings, stores)
    client.zadd("forestall:alerts:index", {"a": 1})
    assert back_up(settings, stores, tmp_path / "file", HandClock(), ignore).keys


def test_a_backup_in_which_nothing_was_registered_replaces_nothing(client, settings, stores, other, tmp_path):
    match_all(*other)
    with writing(tmp_path / "file") as out:  # as earlier releases wrote it
        out.write(b"H", [orjson.dumps({"made_us": 1, "keys": 1, "files": 0, "states": "folder"})])
        for part in Keyspace(other[1].client).read(b"forestall:layout"):
            out.write(b"K", [part.key, part.kind.encode(), b"0", *part.values])
    begin(settings, stores)
    before = content(client)
    with pytest.raises(BackupRefused, match="file contains no data of a service"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert content(client) == before


def test_a_backup_without_data_replaces_nothing(client, settings, stores, tmp_path):
    with writing(tmp_path / "file") as out:  # as earlier releases wrote it
        out.write(b"H", [orjson.dumps({"made_us": 1, "keys": 0, "files": 0, "states": "folder"})])
    begin(settings, stores)
    before = content(client)
    with pytest.raises(BackupRefused, match="file contains no data of a service"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert content(client) == before


def test_a_service_that_runs_is_refused(settings, stores, tmp_path):
    clock = HandClock()
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", clock, ignore)
    stores.heartbeat.beat(clock.now_us())
    clock.forward(4)
    for call in (
        lambda: back_up(settings, stores, tmp_path / "new", clock, ignore),
        lambda: restore(settings, stores, tmp_path / "file", ignore, clock=clock, replace=True),
    ):
        with pytest.raises(BackupRefused, match="reported 4 s ago: stop the service first"):
            call()
    assert not (tmp_path / "new").exists()
    clock.forward(60)
    back_up(settings, stores, tmp_path / "new", clock, ignore)
    assert "heartbeat" not in str(list(frames(tmp_path / "new")))


def test_a_service_that_starts_is_refused(client, settings, stores, monkeypatch, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    before, names = content(client), Keyspace.names

    def start(keyspace):
        stores.heartbeat.busy("loading the states, 2 of 4")
        return names(keyspace)

    def attempt_all():
        for call in (
            lambda: back_up(settings, stores, tmp_path / "new", HandClock(), ignore),
            lambda: restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True),
        ):
            with pytest.raises(BackupRefused, match=r"is busy \(loading the states, 2 of 4\): stop the service"):
                call()
            client.delete(STARTING_KEY)

    with monkeypatch.context() as patch:
        patch.setattr(Keyspace, "names", start)  # after the first check
        attempt_all()
    assert not Keyspace(client).is_restoring()
    stores.heartbeat.busy("loading the states, 2 of 4")
    with pytest.raises(BackupRefused, match="is busy"):
        back_up(settings, stores, tmp_path / "new", HandClock(), ignore)
    client.delete(STARTING_KEY)
    assert content(client) == before
    assert not (tmp_path / "new").exists()
    back_up(settings, stores, tmp_path / "new", HandClock(), ignore)


def test_what_is_matched_meanwhile_is_seen(settings, stores, tmp_path):
    begin(settings, stores)
    post(stores, round_of("U", 200))
    with pytest.raises(BackupRefused, match="or results delivered, while they were copied: stop the pipeline"):
        back_up(settings, stores, tmp_path / "file", HandClock(), lambda _: match_all(settings, stores))
    assert list(tmp_path.glob("file*")) == []


def test_what_is_appended_meanwhile_is_seen(settings, stores, tmp_path):
    begin(settings, stores)

    def meddle(share, seen=[]):  # noqa: B006 - once
        if not seen:
            seen.append(share)
            post(stores, round_of("U", 200))

    with pytest.raises(BackupRefused, match="stop the pipeline, the API, all feeds and the deliverer"):
        back_up(settings, stores, tmp_path / "file", HandClock(), meddle)
    assert list(tmp_path.glob("file*")) == []


@pytest.mark.parametrize("digest", [None, DigestRules(every="1 min", every_us=60_000_000)])
def test_what_is_delivered_meanwhile_is_seen(settings, stores, tmp_path, digest):
    watch(stores, digest)
    begin(settings, stores)
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    now_us = HandClock().now_us()
    with pytest.raises(BackupRefused, match="or results delivered, while they were copied"):
        back_up(
            settings, stores, tmp_path / "file", HandClock(), lambda _: stores.deliveries.claim(now_us, now_us + 9, 9)
        )


@pytest.mark.parametrize("digest", [None, DigestRules(every="1 min", every_us=60_000_000)])
def test_a_deliverer_takes_nothing_while_a_backup_is_restored(settings, stores, tmp_path, digest):
    watch(stores, digest)
    begin(settings, stores)
    post(stores, round_of("U", 200))
    match_all(settings, stores)
    now_us = HandClock().now_us() + 99_000_000
    claim = partial(stores.deliveries.claim, now_us, now_us + 9, close=partial(close_digest, stores, now_us=now_us))
    stores.deliveries.claim(now_us - 90_000_000, now_us, 0)  # moves the results to the lists of the webhook
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    restore(settings, stores, tmp_path / "file", lambda _: claim(9), clock=HandClock(), replace=True)
    claim(0)  # makes the digest
    (delivery,) = claim(1)
    if digest is None:
        assert stores.deliveries.waiting("w") == KEYS
    else:
        assert orjson.loads(delivery.body)["counts"] == {"alert": KEYS}


def watch(stores, digest):
    """Register a webhook, which may collect its results."""
    stores.webhooks.put(
        RegisteredWebhook(
            id="w", url="http://x", secret="whsec_", stream=None, pattern=None, is_enabled=True, registered_us=0,
            digest=digest,
        )
    )  # fmt: skip


def test_parts_are_bounded_by_bytes(client, settings, stores, other, monkeypatch, tmp_path):
    longest, value = 40_000, "x" * 1_000
    register_anything(client)
    client.hset("forestall:hash", mapping={f"f{n}": value for n in range(200)})
    client.rpush("forestall:list", *[value] * 200)
    client.sadd("forestall:set", *(f"{n}{value}" for n in range(200)))
    client.zadd("forestall:zset", {f"{n}{value}": n for n in range(200)})
    for number in range(200):
        client.xadd("forestall:stream", {"kind": "events", "body": value}, id=f"{number + 1}-0")
    client.xadd("forestall:stream", {"body": value * 50}, id="1000-0")  # larger than a part
    client.set("forestall:string", "".join(f"{n},{value}" for n in range(200)), px=10**9)
    client.set("forestall:empty", "")
    monkeypatch.setattr("service.stores.keyspace._PART_BYTES", longest)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    sizes = [sum(map(len, values[3:])) for kind, values in frames(tmp_path / "file") if kind == b"K"]
    assert max(sizes) < longest + 50_100  # the largest value and its number of fields
    assert len(sizes) >= 5 * 4
    there, there_stores = other
    restore(there, there_stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)
    restored = there_stores.client
    assert restored.hgetall("forestall:hash") == client.hgetall("forestall:hash")
    assert restored.lrange("forestall:list", 0, -1) == client.lrange("forestall:list", 0, -1)
    assert restored.smembers("forestall:set") == client.smembers("forestall:set")
    assert restored.zrange("forestall:zset", 0, -1, withscores=True) == client.zrange(
        "forestall:zset", 0, -1, withscores=True
    )
    assert restored.mget("forestall:string", "forestall:empty") == client.mget("forestall:string", "forestall:empty")
    assert restored.pexpiretime("forestall:string") == client.pexpiretime("forestall:string")
    assert restored.xrange("forestall:stream") == client.xrange("forestall:stream")


@pytest.mark.parametrize("kind", ["stream", "hash", "list", "string"])
def test_the_memory_of_a_backup_is_bounded_by_bytes(client, settings, stores, monkeypatch, tmp_path, kind):
    value, most = 25_000, 500_000
    register_anything(client)
    for number in range(400):
        if kind == "stream":
            client.xadd("forestall:stream", {"body": b"x" * value}, id=f"{number + 1}-0")
        elif kind == "hash":
            client.hset("forestall:hash", f"f{number}", b"x" * value)
        elif kind == "string":
            client.append("forestall:string", b"x" * value)
        else:
            client.rpush("forestall:list", b"x" * value)
    monkeypatch.setattr("service.stores.keyspace._PART_BYTES", most)
    back_up(settings, stores, tmp_path / "warm", HandClock(), ignore)
    tracemalloc.start()
    try:
        back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * most  # all values have twice as much


def test_a_frame_that_a_restore_would_refuse_is_not_written(client, settings, stores, monkeypatch, tmp_path):
    monkeypatch.setattr("service.upkeep.backup_file._LONGEST", 1_000)
    register_anything(client)
    client.set("forestall:text", "x" * 900)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    assert look_into(tmp_path / "file").keys == 2
    client.set("forestall:text", "x" * 1_000)
    with pytest.raises(BackupRefused, match=r"forestall:text.* has 1,\d+ bytes; .* values of at most 1,000"):
        back_up(settings, stores, tmp_path / "new", HandClock(), ignore)
    assert list(tmp_path.glob("new*")) == []


def damaged(path, name):
    whole = path.read_bytes()
    line, _, body = whole.partition(b"\n")
    plain = gzip.decompress(body)
    return {
        "cut": whole[: len(whole) // 2],
        "without end": line + b"\n" + gzip.compress(plain[:-37]),
        "changed": line + b"\n" + gzip.compress(plain.replace(b"pair", b"pear")),
        "bits": whole[:200] + bytes([whole[200] ^ 255]) + whole[201:],
        "longer": line + b"\n" + gzip.compress(plain + b"x"),
        "no gzip": line + b"\n" + plain,
        "empty": b"",
        "other file": b"PK\x03\x04" + whole,
        "newer": whole.replace(b"backup 1\n", b"backup 2\n", 1),
        "nothing in it": line + b"\n",
    }[name]


@pytest.mark.parametrize(
    "name",
    ["cut", "without end", "changed", "bits", "longer", "no gzip", "empty", "other file", "newer", "nothing in it"],
)
def test_a_damaged_file_changes_nothing(client, settings, stores, tmp_path, name):
    begin(settings, stores)
    path = tmp_path / "file"
    back_up(settings, stores, path, HandClock(), ignore)
    path.write_bytes(damaged(path, name))
    before = content(client)
    with pytest.raises(BackupDamaged, match=str(path)):
        restore(settings, stores, path, ignore, clock=HandClock(), replace=True)
    assert content(client) == before


@pytest.mark.parametrize("name", [b"checkpoint/../../x", b"/etc/x", b"spark/x", b"snapshots"])
def test_a_file_outside_of_its_folders_is_refused(settings, stores, tmp_path, name):
    with writing(tmp_path / "file") as out:
        out.write(b"H", [orjson.dumps({"made_us": 1, "keys": 1, "files": 1, "states": "folder"})])
        out.write(b"K", [b"forestall:workflows", b"hash", b"0", b"w", b"{}"])
        out.write(b"F", [name, b"x"])
    with pytest.raises(BackupDamaged, match="which none has"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)


@pytest.mark.parametrize("folder", ["snapshots/0", "checkpoint-2", "handover"])
def test_a_file_that_a_restore_would_delete_is_refused(client, settings, stores, tmp_path, folder):
    begin(settings, stores)
    place = settings.data_dir / folder
    place.mkdir(parents=True, exist_ok=True)
    with pytest.raises(BackupRefused, match="keep the file elsewhere"):
        back_up(settings, stores, place / "file", HandClock(), ignore)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    (tmp_path / "file").rename(place / "file")
    (tmp_path / "link").symlink_to(place / "file")
    before = content(client)
    for path in (place / "file", tmp_path / "link"):
        with pytest.raises(BackupRefused, match="keep the file elsewhere"):
            restore(settings, stores, path, ignore, clock=HandClock(), replace=True)
    assert (place / "file").exists()
    assert content(client) == before


def test_a_backup_of_a_newer_release_changes_nothing(client, settings, stores, tmp_path):
    register_anything(client)
    client.set("forestall:store:format", 99)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    client.flushall()
    begin(settings, stores)
    before = content(client)
    with pytest.raises(StoreNewer, match=r"file has format 99, of a newer release; this one reads \d at most"):
        restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert content(client) == before


def test_a_plain_file_named_as_a_checkpoint_stays(settings, stores, tmp_path):
    begin(settings, stores)
    (settings.data_dir / "checkpoint.old.tgz").write_bytes(b"x")
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)
    assert (settings.data_dir / "checkpoint.old.tgz").read_bytes() == b"x"


def test_states_have_to_be_kept_where_they_were(settings, stores, server_url, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)
    elsewhere = settings_for(server_url, data_dir=tmp_path / "data", snapshots="redis")
    with pytest.raises(BackupRefused, match="saved states in a folder, and these settings keep them in Redis"):
        restore(elsewhere, stores, tmp_path / "file", ignore, clock=HandClock(), replace=True)


def test_a_restore_that_was_cut_short_is_known_and_done_again(settings, stores, tmp_path):
    begin(settings, stores)
    back_up(settings, stores, tmp_path / "file", HandClock(), ignore)

    def fail(_share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(settings, stores, tmp_path / "file", fail, clock=HandClock(), replace=True)
    assert Keyspace(stores.client).is_restoring()
    with pytest.raises(BackupRefused, match="is not complete: restore it again"):
        back_up(settings, stores, tmp_path / "new", HandClock(), ignore)
    restore(settings, stores, tmp_path / "file", ignore, clock=HandClock(), replace=False)
    assert not Keyspace(stores.client).is_restoring()
    assert [stream.name for stream in stores.registry.streams()] == ["orders"]


def test_a_file_that_cannot_be_read_or_written_is_named(settings, stores, tmp_path):
    with pytest.raises(FileUnreadable, match="missing cannot be read"):
        look_into(tmp_path / "missing")
    begin(settings, stores)
    with pytest.raises(FileUnreadable, match="cannot be written"):
        back_up(settings, stores, tmp_path / "no" / "folder", HandClock(), ignore)

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from service.cli.feed import layout_for
from service.intake.feeds import opened_feed
from service.stores import FeedMark
from streams import EventBatch, FieldMapping, StreamDeclaration
from tests.builders.feeds import mock_brokers

pytestmark = pytest.mark.redis

EVENT = b'{"id":"%s","type":"A","time":5,"key":"k"}'


@pytest.fixture
def place(tmp_path, stores, server_url, monkeypatch):
    """A folder to work in, the settings for it, and the stream ``orders``."""
    monkeypatch.setenv("FORESTALL_REDIS_URL", server_url)
    monkeypatch.setenv("FORESTALL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("FORESTALL_SHARDS", "3")
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", "local[2]")
    monkeypatch.setenv("FORESTALL_FEED_INTERVAL_S", "0.2")
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    (tmp_path / "in").mkdir()
    return tmp_path


def ids(stores):
    return sorted(
        event.id
        for shard in range(3)
        for entry in stores.log.read_range(shard)
        if entry.kind == "events"
        for event in EventBatch.from_bytes(entry.body).to_events()
    )


def start(folder, *words):
    program = shutil.which("forestall", path=str(Path(sys.executable).parent))
    assert program is not None
    return subprocess.Popen(
        [program, "feed", *words], cwd=folder, env=dict(os.environ), stderr=subprocess.PIPE, text=True
    )


@pytest.mark.spark
@pytest.mark.slow
def test_a_folder_is_fed_until_the_process_is_told_to_stop(place, stores):
    (place / "in" / "a.csv").write_text("id,type,time,key\ne1,A,5,k\ne2,A,5\n")
    process = start(place, "folder", "in", "--stream", "orders", "--name", "night")
    try:
        deadline = time.monotonic() + 600
        while len(ids(stores)) < 2 and time.monotonic() < deadline and process.poll() is None:
            if ids(stores) == ["e1"] and not (place / "in" / "b.jsonl").exists():
                (place / "in" / "b.tmp").write_bytes(EVENT % b"e3")
                (place / "in" / "b.tmp").rename(place / "in" / "b.jsonl")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert ids(stores) == ["e1", "e3"]
    (letter,) = stores.dead_letters.page(10).items
    assert letter["origin"] == {"file": "a.csv", "row": 3}
    assert f"folder {place / 'in'} to stream orders" in said
    assert "ended: 2 events appended, 1 dead letter" in said
    assert (place / "data" / "feeds" / "night" / "spark" / "commits").is_dir()


@pytest.fixture
def handlers():
    """Gives the handlers of signals back that a command sets for its process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark", "handlers")
def test_a_topic_is_fed_as_far_as_it_is_now(call, place, stores, monkeypatch):
    monkeypatch.setattr("service.cli.feed.end_session", lambda session: None)  # the other tests of this process need it
    monkeypatch.chdir(place)
    with mock_brokers() as brokers:
        brokers.produce("t", [EVENT % b"e1", b"poison", EVENT % b"e2"], partition=0)
        (place / "kafka.conf").write_text("# quiet\nlog_level = 0\nsasl.password=geheim\n")
        words = ("--servers", brokers.address, "--topic", "t", "--stream", "orders", "--option-file", "kafka.conf")
        status, _, said = call("feed", "kafka", *words, "--option", "fetch.wait.max.ms=50", "--once")
    assert status == 1, said
    assert ids(stores) == ["e1", "e2"]
    (letter,) = stores.dead_letters.page(10).items
    assert letter["origin"] == {"topic": "t", "partition": 0, "offset": 1}
    assert letter["event"] == "poison"
    assert "geheim" not in said
    written = [path for path in (place / "data").rglob("*") if path.is_file() and b"geheim" in path.read_bytes()]
    assert written == []


def test_a_missing_folder_is_named(call, place):
    status, _, said = call("feed", "folder", "nowhere", "--stream", "orders")
    assert (status, "nowhere is not a folder; create it" in said) == (2, True)


def test_a_stream_that_is_not_declared_is_named(call, place):
    status, _, said = call("feed", "folder", "in", "--stream", "unknown")
    assert (status, "'unknown'" in said or "unknown" in said) == (2, True)


def test_brokers_that_are_away_are_named(call, place):
    words = ("--servers", "127.0.0.1:1", "--topic", "t", "--option", "log_level=0", "--patience", "1")
    status, _, said = call("feed", "kafka", *words, "--stream", "orders")
    assert status == 2
    assert "the Kafka brokers 127.0.0.1:1 do not answer" in said


def test_a_feed_that_runs_already_is_named(call, place):
    with opened_feed(place / "data", "mine", "orders", "x"):
        status, _, said = call("feed", "folder", "in", "--stream", "orders", "--name", "mine")
    assert (status, "'mine' is run by another process" in said) == (2, True)


def test_a_feed_without_its_checkpoint_is_refused(call, place, stores):
    stores.feeds.begin("mine", FeedMark(checkpoint="lost", batch=3), "orders")
    status, _, said = call("feed", "folder", "in", "--stream", "orders", "--name", "mine")
    assert (status, "another checkpoint" in said) == (2, True)


@pytest.mark.parametrize("option", ["sasl.password", "=geheim"])
def test_a_malformed_setting_is_refused_without_its_value(call, place, option):
    words = ("--servers", "a:1", "--topic", "t", "--stream", "orders", "--option", option)
    status, _, said = call("feed", "kafka", *words)
    assert (status, "NAME=VALUE" in said, "geheim" in said) == (2, True, False)


def test_a_name_that_is_no_folder_name_is_refused(call, place):
    status, _, said = call("feed", "folder", "in", "--stream", "orders", "--name", "../x")
    assert (status, "feed name" in said) == (2, True)


def test_columns_are_laid_out_as_the_stream_reads_them():
    usual = layout_for(StreamDeclaration(name="o", key="data.customer"), 9)
    assert (usual.top, usual.max_row_bytes) == (frozenset({"id", "type", "time", "key", "subject"}), 9)
    assert "shop" in (layout_for(StreamDeclaration(name="o", key="shop"), 9).top or ())
    by_type = layout_for(StreamDeclaration(name="o", key={"A": "shop", "*": "data.id"}), 9).top or frozenset()
    assert ("shop" in by_type, "data.id" in by_type) == (True, False)
    mapping = FieldMapping(id="order.id", time="at", data=None)
    mapped = layout_for(StreamDeclaration(name="o", key="shop", mapping=mapping), 9)
    assert (mapped.top, mapped.id, mapped.time) == (None, "order.id", "at")
    assert orjson.dumps(sorted(mapped.texts)) == b'["order.id","shop","type"]'

"""A log that is divided into more shards: nothing is lost, nothing comes twice, and it may fail anywhere."""

from contextlib import nullcontext
from functools import cache

import pytest

from pipeline import EventLogOptions, HeldOptions, LogDamaged, SourceOptionError
from pipeline.held_shards import HeldShards
from pipeline.sources.log_reader import EventLogReader, log_ends
from service import AlertSink, LogResharding, Stores
from service.errors import BackupRefused, ReshardRefused
from service.intake.announcing import Announcing
from service.processes import pipeline_process
from service.processes.cluster import forget_former, job_options
from service.stores import Keyspace, Submission, pattern_draft
from service.upkeep.resharding import reshard
from streams import (
    LAYOUT_KEY,
    EventBatch,
    PatternOn,
    Punctuation,
    StreamDeclaration,
    StreamOn,
    Tick,
    TraceEnd,
    key_hash,
    log_key,
)
from tests.builders.job import match_log
from tests.builders.service import HandClock, settings_for
from tests.builders.shards import event, log_of, run_inline

pytestmark = pytest.mark.redis

STREAM = StreamDeclaration(name="orders", key="data.id", end_events=("End",), keys={"customer": "data.customer"})
TEXTS = {
    "pair": "PATTERN pair EVENT SEQ(A a, U u)",
    "never": "PATTERN never EVENT SEQ(A a, NOT X) WITHIN 50 s",
    "customer": "PATTERN customer EVENT SEQ(A a, U u, X x) WHERE [customer]",
}
PATTERNS = [
    PatternOn(name=name, version=1, text=text, route=name if name == "customer" else "") for name, text in TEXTS.items()
]
KEYS = 30


def batches():
    """For every key an A, a U, an X and an End, key by key in each of four rounds of three batches."""
    number, found = 0, []
    for event_type in ("A", "U", "X", "End"):
        batch = []
        for key in range(KEYS):
            number += 1
            batch.append(event(number, event_type, f"k{key}", id=f"k{key}", customer=f"c{key % 7}"))
        found += [batch[:10], batch[10:20], batch[20:]]
    return found


@cache
def expected():
    """Ids of all alerts."""
    rows = run_inline(log_of([StreamOn(STREAM), *PATTERNS, *batches()]))
    return sorted(row.id for row in rows if row.kind == "alert")


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data", log_retention_entries=2)


@pytest.fixture
def stores(client, server_url, settings):
    return Stores(client, server_url, settings)


def match_all(settings, stores, layout):
    """What the pipeline does, without Spark: from its checkpoint to the log's end."""
    match_log(job_options(settings, layout, stores.url, tasks=1), AlertSink(stores, HandClock()))


@pytest.fixture(autouse=True)
def without_spark(monkeypatch, client):
    monkeypatch.setattr("service.upkeep.resharding.match_all", match_all)
    yield
    client.flushall()  # later tests would begin with the log that is held


def begin(stores):
    stores.registry.declare_stream(STREAM)
    for pattern in PATTERNS:
        draft = pattern_draft(name=pattern.name, text=pattern.text, route=pattern.route)
        stores.registry.put_pattern("orders", draft, 0)


def post(stores, batch):
    return stores.log.append_events(
        Submission(
            stream="orders",
            batch=EventBatch.from_events(batch),
            dead_letters=[],
            answer={},
            fingerprint="f",
            token=batch[0].id,
            keys={name: STREAM.attribute_of(name) for name in STREAM.keys},
        )
    )


def run(settings, stores):
    match_all(settings, stores, stores.log.layout.read())


def alerts(stores):
    return sorted(alert["id"] for alert in stores.alerts.page(limit=10_000).items)


def say_nothing(_text):
    pass


def divide(settings, stores, shards):
    said: list[str] = []
    layout = reshard(settings, stores, shards, said.append)
    return layout, said


def test_a_store_without_a_log_is_not_divided(client, settings, stores):
    with pytest.raises(
        ReshardRefused, match=r"has no log of a service with the data folder .*: set FORESTALL_DATA_DIR"
    ):
        divide(settings, stores, 6)
    assert not client.exists(LAYOUT_KEY)


@pytest.mark.parametrize(("cut", "place"), [(0, None), (2, None), (5, "redis"), (9, None)])
def test_alerts_are_those_of_a_log_that_was_never_divided(settings, stores, cut, place):
    settings = settings.model_copy(update={"snapshots": place})
    begin(stores)
    parts = batches()
    for batch in parts[:cut]:
        post(stores, batch)
    if cut != 2:  # else nothing was ever matched
        run(settings, stores)
    layout, said = divide(settings, stores, 6)
    assert (layout.shards, layout.generation, layout.former) == (6, 6, (3,))
    assert said == ["matching what the log holds", "dividing the states of 3 shards among 6"]
    for batch in parts[cut : cut + 2]:
        post(stores, batch)
    run(settings, stores)
    divide(settings, stores, 12)
    for number, batch in enumerate(parts[cut + 2 :]):
        post(stores, batch)
        if number % 3 == 0:
            run(settings, stores)
    run(settings, stores)
    assert alerts(stores) == expected()
    assert len(expected()) > 2 * KEYS
    letters = [letter["reason"] for letter in stores.dead_letters.page(9).items]
    assert letters == []


def test_new_shards_take_new_events_and_tell_of_themselves(settings, stores, client):
    begin(stores)
    post(stores, batches()[0])
    run(settings, stores)
    before = stores.pipeline_status.shards()
    divide(settings, stores, 6)
    after = stores.pipeline_status.shards()
    assert [report.shard for report in after] == list(range(6))
    for name in ("open_traces", "held"):
        totals = [
            sum(getattr(report.streams[stream], name) for report in reports for stream in report.streams)
            for reports in (before, after)
        ]
        assert totals[0] == totals[1] > 0
    assert set(post(stores, batches()[3]).positions) == set(range(6))
    run(settings, stores)
    backlog = stores.backlog.read()
    assert backlog.appended == backlog.matched
    assert backlog.appended.events > 0
    assert client.hget("forestall:log:matched", "position:5") is not None


def test_what_belonged_to_the_former_layout_is_removed(settings, stores, client):
    begin(stores)
    post(stores, batches()[0])
    run(settings, stores)
    old = job_options(settings, stores.log.layout.read(), stores.url, tasks=1)
    assert old.checkpoint.exists()
    client.hset("forestall:snapshots:0", "1-1", "5")
    layout, _ = divide(settings, stores, 6)
    assert not old.checkpoint.exists()
    assert old.handover is not None
    assert not old.handover.exists()
    assert client.keys("forestall:snapshots:?") == []
    new = job_options(settings, layout, stores.url, tasks=1)
    assert (new.checkpoint.name, new.log.generation) == ("checkpoint-6", 6)


def sizes_of(client):
    return [client.xlen(log_key(shard)) for shard in range(3)]


def appends(stores):
    """Every way to append, by what it appends."""
    return {
        "events": lambda: post(stores, batches()[0]),
        "pattern": lambda: stores.registry.put_pattern(
            "orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 0
        ),
        "stream": lambda: stores.registry.declare_stream(StreamDeclaration(name="others")),
        "punctuation": lambda: Announcing(stores, HandClock()).punctuate("orders", Punctuation(before_us=5)),
        "trace end": lambda: Announcing(stores, HandClock()).end_trace("orders", TraceEnd(key="k1")),
        "tick": lambda: stores.stream_times.tick("orders", Tick(time_us=9, cause="clock"), stores.log.layout),
    }


@pytest.mark.parametrize("what", ["events", "pattern", "stream", "punctuation", "trace end", "tick"])
def test_nothing_is_appended_while_the_log_is_divided_and_everything_afterwards(stores, client, what):
    begin(stores)
    sizes = sizes_of(client)
    names = set(client.keys())
    token = stores.log.layout.hold()
    with pytest.raises(LogResharding, match="run it again") as caught:
        appends(stores)[what]()
    assert caught.value.is_retryable
    assert sizes_of(client) == sizes
    assert set(client.keys()) == names
    stores.log.layout.release("another")
    with pytest.raises(LogResharding):
        appends(stores)[what]()
    stores.log.layout.release(token)
    appends(stores)[what]()
    assert sum(sizes_of(client)) > sum(sizes)


def test_a_batch_that_was_taken_is_answered_while_the_log_is_divided(stores):
    begin(stores)
    post(stores, batches()[0])
    token = stores.log.layout.hold()
    assert post(stores, batches()[0]).earlier == {}
    stores.log.layout.release(token)


@pytest.mark.parametrize("what", ["events", "pattern", "stream", "punctuation", "trace end", "tick"])
def test_a_process_that_remembers_the_former_layout_appends_to_the_right_shards(
    settings, stores, client, server_url, what
):
    begin(stores)
    late = Stores(client, server_url, settings)
    assert late.log.shards() == 3
    divide(settings, stores, 6)
    sizes = {shard: client.xlen(log_key(shard)) for shard in range(6)}
    appends(late)[what]()
    fresh = {shard for shard in range(6) if client.xlen(log_key(shard)) > sizes[shard]}
    homes = {"trace end": {key_hash("k1") % 6}, "events": set(fresh)}
    assert fresh == homes.get(what, set(range(6)))
    assert late.log.shards() == 6
    if what == "events":
        for shard in range(6):
            for entry in late.log.read_range(shard):
                if entry.kind == "events":
                    hashes = EventBatch.from_bytes(entry.body).key_hashes
                    assert (hashes % 6 == shard).all()


class Broken(Exception):
    """Stands for the end of the process."""


def breaking(monkeypatch, target, *, after=0, before_it=True):
    """Let the call of a function fail that comes after some others."""
    module, _, name = target.rpartition(".")
    owner = __import__(module.partition(":")[0], fromlist=["_"])
    owner = getattr(owner, module.partition(":")[2]) if ":" in module else owner
    whole, calls = getattr(owner, name), iter(range(1_000))

    def fail(*args, **kwargs):
        is_it = next(calls) == after
        if is_it and before_it:
            raise Broken
        answer = whole(*args, **kwargs)
        if is_it:
            raise Broken
        return answer

    monkeypatch.setattr(owner, name, fail)


STEPS = [
    ("service.upkeep.resharding.match_all", 0, True),
    ("service.upkeep.resharding.match_all", 0, False),
    ("shards.state:ShardState.split", 1, True),
    ("pipeline.snapshots:SnapshotIndex.enter", 0, True),
    ("pipeline.snapshots:SnapshotIndex.enter", 3, False),
    ("service.stores.log.layout:LayoutStore.switch", 0, True),
    ("service.stores.log.layout:LayoutStore.switch", 0, False),
    ("service.upkeep.resharding.forget_former", 0, True),
    ("service.processes.cluster.forget_states", 0, True),
]


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(("target", "after", "before_it"), STEPS)
def test_whatever_step_fails_the_log_goes_on_and_the_command_can_be_run_again(
    settings, stores, client, server_url, monkeypatch, target, after, before_it, is_killed
):
    begin(stores)
    parts = batches()
    for batch in parts[:2]:
        post(stores, batch)
    run(settings, stores)
    post(stores, parts[2])
    with monkeypatch.context() as patch:
        breaking(patch, target, after=after, before_it=before_it)
        if is_killed:  # no process removes the mark
            patch.setattr("service.stores.log.layout.LayoutStore.release", lambda *_: None)
        with pytest.raises(Broken):
            reshard(settings, stores, 6, say_nothing)
    later = Stores(client, server_url, settings)
    if is_killed and later.log.layout.read().shards == 3:
        with pytest.raises(LogResharding):
            post(later, parts[3])
    else:
        post(later, parts[3])
        run(settings, later)
        post(later, parts[4])
    layout, _ = divide(settings, later, 6)
    assert (layout.shards, layout.former) == (6, (3,))
    for batch in parts[3:]:
        post(later, batch)
    run(settings, later)
    assert alerts(later) == expected()
    assert not client.hexists(LAYOUT_KEY, "resharding")


@pytest.mark.parametrize("then", ["another number", "the former number"])
def test_states_of_a_resharding_that_was_not_finished_are_removed(settings, stores, client, monkeypatch, then):
    begin(stores)
    post(stores, batches()[0])
    with monkeypatch.context() as patch:
        breaking(patch, "pipeline.snapshots:SnapshotIndex.enter", after=3)
        with pytest.raises(Broken):
            reshard(settings, stores, 6, say_nothing)
    assert len(files_of(settings, 6)) == 4
    assert len(client.keys("forestall:snapshots:6:*")) == 3
    if then == "another number":
        divide(settings, stores, 12)
    else:
        forget_former(settings, stores.log.layout.read(), stores.url)  # as the pipeline does when it starts
    assert files_of(settings, 6) == client.keys("forestall:snapshots:6:*") == []


def files_of(settings, generation):
    folder = settings.data_dir / "snapshots" / f"generation-{generation}"
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("shards", [3, 6])
def test_the_current_number_unlocks_a_log_whose_resharding_was_killed(settings, stores, monkeypatch, shards):
    begin(stores)
    if shards == 6:
        divide(settings, stores, 6)
    with monkeypatch.context() as patch:
        breaking(patch, "service.stores.log.layout:LayoutStore.switch")
        patch.setattr("service.stores.log.layout.LayoutStore.release", lambda *_: None)
        with pytest.raises(Broken):
            reshard(settings, stores, 12, say_nothing)
    with pytest.raises(LogResharding):
        post(stores, batches()[0])
    layout, said = divide(settings, stores, shards)
    assert (layout.shards, said) == (shards, ["unlocking the log, which keeps its shards"])
    assert files_of(settings, 12) == []
    for batch in batches():
        post(stores, batch)
    run(settings, stores)
    assert alerts(stores) == expected()


def test_who_takes_over_is_the_one_who_divides(settings, stores, monkeypatch):
    begin(stores)

    def match_and_lose(*args):
        match_all(*args)
        stores.log.layout.hold()

    monkeypatch.setattr("service.upkeep.resharding.match_all", match_and_lose)
    with pytest.raises(LogResharding):
        reshard(settings, stores, 6, say_nothing)
    assert stores.log.layout.read().shards == 3
    with pytest.raises(LogResharding):
        post(stores, batches()[0])


def test_a_switch_whose_reply_was_lost_is_made_once(settings, stores):
    begin(stores)
    switch = stores.log.layout._switch
    stores.log.layout._switch = lambda **given: (switch(**given), switch(**given))[1]
    layout, _ = divide(settings, stores, 6)
    assert (layout.shards, layout.former) == (6, (3,))


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        (3, "has 3 shards and cannot be divided into 3.*possible are 6, 9, 12, 15 and other multiples up to 1024"),
        (1, "cannot be divided into 1"),
        (7, "cannot be divided into 7"),
        (1025 * 3, "cannot be divided into 3075"),
    ],
)
def test_numbers_that_will_not_do_are_refused_with_those_that_do(settings, stores, client, shards, message):
    begin(stores)
    with pytest.raises(ReshardRefused, match=message):
        reshard(settings, stores, shards, say_nothing)
    assert not client.hexists(LAYOUT_KEY, "resharding")


def test_a_pipeline_that_lives_is_refused_and_one_that_is_silent_is_gone(settings, stores, monkeypatch):
    begin(stores)
    now_us = [1_000_000_000]
    monkeypatch.setattr("service.upkeep.resharding.SystemClock.now_us", lambda _: now_us[0])
    stores.heartbeat.beat(now_us[0] - 4_000_000)
    with pytest.raises(ReshardRefused, match="reported 4 s ago: stop the service first"):
        reshard(settings, stores, 6, say_nothing)
    now_us[0] += 30_000_000
    assert reshard(settings, stores, 6, say_nothing).shards == 6


def test_no_pipeline_starts_while_the_log_is_divided(settings, stores):
    token = stores.log.layout.hold()
    with pytest.raises(LogResharding):
        pipeline_process._match(settings, stores)
    stores.log.layout.release(token)


def test_no_pipeline_starts_while_a_backup_is_restored(settings, stores, monkeypatch):
    def start(*_):
        raise AssertionError("the pipeline has started")

    keyspace = Keyspace(stores.client)
    monkeypatch.setattr(pipeline_process, "compiling_beside", lambda *_: nullcontext())
    monkeypatch.setattr(pipeline_process, "prepared_daemon", nullcontext)
    monkeypatch.setattr(pipeline_process, "build_context", lambda _: keyspace.begin_restoring())  # while Spark starts
    monkeypatch.setattr(pipeline_process, "end_session", lambda _: None)
    monkeypatch.setattr(pipeline_process, "await_machines", lambda *_: 1)
    monkeypatch.setattr(pipeline_process, "begin_continuous", start)
    with pytest.raises(BackupRefused, match="run forestall restore again"):
        pipeline_process._match(settings, stores)
    assert stores.heartbeat.is_doing() is None


def test_a_pipeline_that_starts_is_refused(settings, stores):
    begin(stores)
    stores.heartbeat.busy("loading the states, 2 of 3")
    with pytest.raises(ReshardRefused, match=r"is busy \(loading the states, 2 of 3\): stop the service first"):
        reshard(settings, stores, 6, say_nothing)


def test_a_log_that_was_divided_so_already_stays(settings, stores):
    begin(stores)
    divide(settings, stores, 6)
    layout, said = divide(settings, stores, 6)
    assert (layout.former, said) == ((3,), [])


def test_events_of_a_key_are_found_in_all_shards_that_had_it(settings, stores):
    begin(stores)
    divide(settings, stores, 6)
    layout, _ = divide(settings, stores, 24)
    assert layout.homes(22) == [1, 4, 22]
    assert layout.homes(2) == [2]
    assert layout.former_generations == (0, 6)


def test_a_job_of_the_former_layout_reads_nothing_any_more(settings, stores):
    begin(stores)
    old = job_options(settings, stores.log.layout.read(), stores.url, tasks=1).log
    divide(settings, stores, 6)
    with pytest.raises(SourceOptionError, match="started for 3 shards, but their number has changed since"):
        log_ends(old)


def test_a_new_checkpoint_begins_where_the_log_was_divided_as_long_as_that_state_is_kept(settings, stores, client):
    begin(stores)
    parts = batches()
    for batch in parts[:4]:
        post(stores, batch)
    layout, _ = divide(settings, stores, 6)
    for batch in parts[4:]:
        post(stores, batch)
    options: EventLogOptions = job_options(settings, layout, stores.url, tasks=1).log
    run(settings, stores)
    checkpoint = settings.data_dir / "checkpoint-6" / "offsets"
    checkpoint.unlink()
    run(settings, stores)
    assert alerts(stores) == expected()
    checkpoint.unlink()
    client.delete("forestall:snapshots:6:4")
    with pytest.raises(
        LogDamaged, match="shard 4 of the event log is to be read from 0-0 on, where the log was divided"
    ):
        EventLogReader(options).check(EventLogReader(options).initialOffset())
    with pytest.raises(LogDamaged, match="the snapshot of shard 4 at 0-0 is not in"):
        HeldShards(HeldOptions(log=options, handover=None)).state_at(4, "0-0")

import orjson
import pytest
import structlog

from service import AlertSink, WebhookDraft, WebhookLibrary
from service.stores import OperatorDraft, RegisteredWebhook, Severity, pattern_draft
from shards import ResultRows, RowBlock
from streams import Event, EventBatch, Input, PatternOn, StreamDeclaration, decode_control
from tests.builders.service import as_old_as_the_log, sink_row, stats_row

pytestmark = pytest.mark.redis


def row(kind, name, /, **fields):
    body = {"id": name, "stream": "s", "pattern": "p", "event_type": "A", "code": "c", **fields}
    return sink_row(kind=kind, stream="s", id=name, body=orjson.dumps(body))


ROWS = [
    row("alert", "a1"),
    row("ending", "e1", form="p1", constraints=["prior(A, B)"], atom="A a"),
    row("alert", "a2"),
    row("deviation", "d1", kind="order", pattern=None),
    row("correction", "c1", alert="a1"),
    row("timeout", "t1", missing=["b", "c"]),
    row("dead-letter", "l1"),
    row("ending", "e2", form="p1", constraints=["prior(A, B)"], atom="A a"),
]


def test_every_row_lands_in_its_store_and_a_replay_changes_nothing(stores, settings, clock):
    WebhookLibrary(stores, settings, clock).register(WebhookDraft(url="http://127.0.0.1:1/"))
    sink = AlertSink(stores, clock)
    sink(ROWS[:3], 5)
    for _ in range(2):
        sink(ROWS, 5)
    assert [alert["id"] for alert in stores.alerts.page().items] == ["a1", "a2"]
    assert [ending["id"] for ending in stores.results["ending"].page(9).items] == ["e2", "e1"]
    assert [counter["count"] for counter in stores.results["ending"].counts()] == [2]
    assert stores.results["timeout"].counts() == [{"stream": "s", "pattern": "p", "missing": "b, c", "count": 1}]
    assert stores.results["deviation"].counts() == [{"stream": "s", "event_type": "A", "kind": "order", "count": 1}]
    assert stores.results["correction"].counts() == [{"stream": "s", "pattern": "p", "count": 1}]
    assert stores.dead_letters.counts() == [{"stream": "s", "code": "c", "count": 1}]
    assert stores.deliveries.queued() == 3
    assert stores.deliveries.claim(clock.now_us() - 1, 1, 9) == []
    claimed = {delivery.alert: delivery.body for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)}
    assert claimed == {"a1": None, "a2": None, "c1": ROWS[4].body.decode()[:-1] + ',"severity":"medium"}'}


def test_a_pattern_that_is_given_up_is_logged_and_counted(stores, clock):
    letters = [
        row("dead-letter", "l1", code="work-limit", version=2, key="k", event_id="e", work=7),
        row("dead-letter", "l2", code="match-limit"),
        row("dead-letter", "l3", pattern=None),
    ]
    with structlog.testing.capture_logs() as logged:
        AlertSink(stores, clock)(letters, 5)
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("pattern-given-up", "warning")
    assert [line[name] for name in ("stream", "pattern", "key", "event_id", "work")] == ["s", "p", "k", "e", 7]
    assert [(found["code"], found["count"]) for found in stores.dead_letters.counts()] == [
        ("c", 1),
        ("match-limit", 1),
        ("work-limit", 1),
    ]
    assert [(found["pattern"], found["code"]) for found in stores.dead_letters.counts_by_pattern()] == [
        ("p", "match-limit"),
        ("p", "work-limit"),
    ]


def suspension(version=1, shard=0):
    fields = {"type": "pattern.suspended", "version": version, "key": "k", "event": "e", "reason": "too much"}
    return row("suspension", f"s{version}", shard=shard, **fields)


@pytest.fixture
def registered(stores):
    stores.registry.declare_stream(StreamDeclaration(name="s"))
    draft = pattern_draft(name="p", text="PATTERN p EVENT A+ a", severity="high")
    return stores.registry.put_pattern("s", draft, 1)[0]


def controls(stores):
    return [entry.kind.value for entry in stores.log.read_range(0)][1:]


def test_a_suspended_pattern_is_stopped_in_every_shard_told_once_and_resumed_as_its_next_version(
    stores, settings, clock, registered
):
    WebhookLibrary(stores, settings, clock).register(WebhookDraft(url="http://127.0.0.1:1/"))
    sink = AlertSink(stores, clock)
    with structlog.testing.capture_logs() as logged:
        sink([suspension(), suspension(shard=1)], 5)
    assert [line["event"] for line in logged] == ["pattern-suspended"]
    sink([suspension(), suspension(shard=1)], 5)  # the micro-batch again, after a crash
    sink([suspension(shard=1)], 6)  # a shard that was behind
    pattern = stores.registry.pattern("p")
    assert (pattern.state, pattern.suspension["reason"], pattern.suspension["shard"]) == ("suspended", "too much", 0)
    assert controls(stores) == ["pattern-on", "pattern-pause"]
    assert not stores.client.exists("forestall:stops:0")  # the shard that reports the stop has stopped
    (delivery,) = stores.deliveries.claim(clock.now_us(), 1, 9)
    assert (delivery.kind, delivery.alert) == ("pattern.suspended", "s1")
    told = orjson.loads(delivery.body)
    assert (told["type"], told["pattern"], told["severity"]) == ("pattern.suspended", "p", "high")
    assert stores.results["suspension"].counts() == [{"stream": "s", "pattern": "p", "count": 1}]

    resumed, is_new = stores.registry.pattern_operators.move("p", "resume", now_us=7)
    assert (is_new, resumed.state, resumed.version, resumed.registered_us) == (True, "active", 2, 7)
    sink([suspension()], 7)  # of the version before
    assert stores.registry.pattern("p") == resumed
    sink([suspension(version=2)], 8)
    assert stores.registry.pattern("p").state == "suspended"
    assert controls(stores) == ["pattern-on", "pattern-pause", "pattern-on", "pattern-pause"]


def test_a_changed_version_of_a_suspended_pattern_is_matched_afresh(stores, clock, registered):
    AlertSink(stores, clock)([suspension()], 5)
    assert not stores.registry.put_pattern("s", pattern_draft(name="p", text=registered.text), 2)[1]
    draft = pattern_draft(name="p", text="PATTERN p EVENT A+ a WITHIN 1 h", start="migrate")
    pattern, _ = stores.registry.put_pattern("s", draft, 2)
    assert (pattern.state, pattern.version, pattern.suspension) == ("active", 2, None)
    last = list(stores.log.read_range(0))[-1]
    control = decode_control(last.kind, last.body)
    assert isinstance(control, PatternOn)
    assert (control.version, control.start) == (2, "fresh")


@pytest.mark.parametrize("change", ["pause", "retire", "delete", "unknown"])
def test_a_pattern_that_is_stopped_already_is_not_suspended(stores, clock, registered, change):
    if change == "delete":
        stores.registry.pattern_operators.remove("p")
    elif change != "unknown":
        stores.registry.pattern_operators.move("p", change)
    before = controls(stores)
    told = row("suspension", "s9", version=1, pattern="q" if change == "unknown" else "p", shard=0, reason="r")
    AlertSink(stores, clock)([told], 5)
    assert controls(stores) == before
    assert stores.results["suspension"].page(9).items == []


@pytest.mark.parametrize("is_deleted", [False, True])
def test_operators_of_one_name_have_their_own_severities(stores, settings, clock, registered, is_deleted):
    severities: dict[str, Severity] = {"join": "critical", "aggregate": "low"}
    for kind, severity in severities.items():
        draft = OperatorDraft(kind=kind, name="p", inputs=(Input("s", ""),), body={}, severity=severity)
        stores.registry.operators(kind).put("s", draft, 1)
    if is_deleted:
        stores.registry.pattern_operators.remove("p")
    library = WebhookLibrary(stores, settings, clock)
    kinds = ("alert", "join.suspended", "aggregate.suspended")
    library.register(WebhookDraft(url="http://127.0.0.1:1/", kinds=kinds, min_severity="critical"))
    suspended = [
        row(f"{kind}-suspension", kind, type=f"{kind}.suspended", operator=kind, version=1, shard=0, reason="r")
        for kind in severities
    ]
    AlertSink(stores, clock)([row("alert", "a1"), *suspended], 5)
    (alert,) = stores.alerts.page().items
    (join,), (aggregate,) = (stores.results[f"{kind}-suspension"].page(9).items for kind in ("join", "aggregate"))
    assert [found["severity"] for found in (alert, join, aggregate)] == ["high", "critical", "low"]
    assert [delivery.alert for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)] == ["join"]


@pytest.mark.parametrize(
    ("wanted", "delivered"),
    [
        ({"kinds": ("deviation",)}, {"d1"}),
        ({"kinds": ("deviation",), "pattern": "p"}, set()),
        ({"kinds": ("alert", "correction", "deviation"), "stream": "s"}, {"a1", "a2", "c1", "d1"}),
        ({"kinds": ("correction",), "pattern": "p"}, {"c1"}),
        ({"kinds": ("correction",), "pattern": "q"}, set()),
    ],
)
def test_a_webhook_gets_what_it_asks_for(stores, clock, wanted, delivered):
    fields = {"stream": None, "pattern": None, **wanted}
    stores.webhooks.put(
        RegisteredWebhook(id="w", url="http://x", secret="whsec_", is_enabled=True, registered_us=0, **fields)
    )
    AlertSink(stores, clock)(ROWS, 1)
    assert {delivery.alert for delivery in stores.deliveries.claim(clock.now_us(), 1, 9)} == delivered


def test_nothing_needs_no_redis(stores, clock, client):
    client.close()
    AlertSink(stores, clock)([], 1)
    assert stores.alerts.page().items == []


def test_what_shards_tell_of_themselves_is_kept_apart(stores, clock, client):
    told = stats_row(1, "4-0", state_bytes=3, streams={})
    for _ in range(2):
        AlertSink(stores, clock)([told, ROWS[0]], 5)
    (report,) = stores.pipeline_status.shards()
    assert (report.shard, report.position, report.state_bytes) == (1, "4-0", 3)
    assert [alert["id"] for alert in stores.alerts.page().items] == ["a1"]
    assert stores.alerts.counts() == {("s", "p"): 1}


def test_endings_that_are_but_counted_are_not_listed(stores, clock):
    body = {"id": "x", "stream": "s", "pattern": "p", "form": "p2", "constraints": [], "atom": "A a", "count": 7}
    counted = sink_row(kind="ending-count", stream="s", id="x", body=orjson.dumps(body))
    for _ in range(2):
        AlertSink(stores, clock)([counted], 5)
    assert [found["count"] for found in stores.results["ending"].counts()] == [7]
    assert stores.results["ending"].page(9).items == []


def test_bodies_are_stored_as_they_came_with_the_severity_as_last_member(stores, clock, client, registered):
    AlertSink(stores, clock)([row("alert", "a1"), row("correction", "c1"), row("timeout", "t1", missing=["b"])], 1)
    plain = b'"stream":"s","pattern":"p","event_type":"A","code":"c"'
    assert (
        stores.alerts.body("a1")
        == b'{"id":"a1",%b,"created_at":"2026-01-01T00:00:00.000000Z","severity":"high"}' % plain
    )
    blocks = [client.xrange(stores.results[name].key)[0][1][b"block"] for name in ("correction", "timeout")]
    assert blocks == [
        b'{"format":1,"size":0}\n{"id":"c1",%b,"severity":"high"}' % plain,
        b'{"format":1,"size":0}\n{"id":"t1",%b,"missing":["b"]}' % plain,
    ]


def test_alerts_that_pruning_would_lose_are_counted_whatever_they_return(stores, clock):
    alerts = [
        row("alert", "a1", would_be_lost=True),
        row("alert", "a2", returns={"would_be_lost": True}),
        row("alert", "a3"),
    ]
    AlertSink(stores, clock)(alerts, 1)
    assert stores.alerts.lost_counts() == {("s", "p"): 1}
    assert stores.alerts.counts() == {("s", "p"): 3}


def derived(number, shard, *, rekeyed=True, into="hints"):
    body = {"id": f"d{number}", "stream": "s", "into": into, "type": "T", "time": f"2026-01-01T00:00:0{number}Z"}
    body |= {"key": f"k{number}", "data": {"n": number}, "pattern": "p", "version": 1, "source_key": "x"}
    return sink_row(
        kind="derived", stream="s", id=f"d{number}", body=orjson.dumps({**body, "rekeyed": rekeyed}), shard=shard
    )


def rekeyed(shard, *numbers, into="hints"):
    """The events of some derived rows, on their way to the log."""
    events = [
        Event(id=f"d{n}", type="T", time_us=1_767_225_600_000_000 + n * 1_000_000, key=f"k{n}", data={"n": n})
        for n in numbers
    ]
    found = ResultRows.rekeyed(into, EventBatch.from_events(events))
    return list(RowBlock(found=found, stream="s", position="1-0", shard=shard))


def derived_log(stores):
    """Of each shard the events of the stream hints that it has, and its ticks, in their order."""
    found = []
    for shard in range(stores.log.shards()):
        own: list[object] = []
        for entry in stores.log.read_range(shard):
            if entry.stream == "hints" and entry.kind == "events":
                own += sorted(event.id for event in EventBatch.from_bytes(entry.body).to_events())
            elif entry.stream == "hints" and entry.kind == "tick":
                own.append(orjson.loads(entry.body)["time"])
        found.append(own)
    return found


DERIVED_BATCH = [
    derived(1, 0),
    derived(3, 0),
    derived(2, 0),
    derived(4, 1, rekeyed=False),
    derived(5, 1),
    *rekeyed(0, 1, 3),
    *rekeyed(0, 2),
    *rekeyed(1, 5),
    stats_row(0, "5-0", after="2-0", promises={"hints": 7}),
    stats_row(1, "6-0", after="3-0", promises={"hints": 5}),
    stats_row(2, "6-0", after="3-0", promises={"hints": 9}),
]


def test_derived_events_are_listed_delivered_and_appended_once_and_time_follows(stores, settings, clock):
    stores.registry.declare_stream(StreamDeclaration(name="hints", derived=True))
    as_old_as_the_log(stores.client, "hints")
    WebhookLibrary(stores, settings, clock).register(WebhookDraft(url="http://127.0.0.1:1/", kinds=("derived",)))
    sink = AlertSink(stores, clock)
    for _ in range(2):
        sink(DERIVED_BATCH, 5)
    assert [event["id"] for event in stores.results["derived"].page(9).items] == ["d5", "d4", "d2", "d3", "d1"]
    assert stores.results["derived"].counts() == [{"stream": "s", "pattern": "p", "into": "hints", "count": 5}]
    assert stores.deliveries.queued() == 5
    found = derived_log(stores)
    assert sorted(one for own in found for one in own if isinstance(one, str)) == ["d1", "d2", "d3", "d5"]
    assert [own[-1] for own in found] == [5, 5, 5], "the tick is behind the events"
    assert stores.stream_times.read()[1]["hints"].newest_us == 1_767_225_605_000_000


@pytest.mark.parametrize("step", ["events", "results", "stats"])
def test_a_sink_that_fails_anywhere_is_repeated_without_harm(stores, clock, monkeypatch, step):
    stores.registry.declare_stream(StreamDeclaration(name="hints", derived=True))
    as_old_as_the_log(stores.client, "hints")
    places = {
        "results": (stores.results["derived"], "append"),
        "events": (stores.derived, "write"),
        "stats": (stores.pipeline_status, "note"),
    }
    owner, name = places[step]
    sink = AlertSink(stores, clock)

    def failing(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        with pytest.raises(ConnectionError):
            sink(DERIVED_BATCH, 5)
    sink(DERIVED_BATCH, 5)
    assert len(stores.results["derived"].page(9).items) == 5
    found = derived_log(stores)
    assert sorted(one for own in found for one in own if isinstance(one, str)) == ["d1", "d2", "d3", "d5"]
    assert [own[-1] for own in found] == [5, 5, 5]
    assert [report.position for report in stores.pipeline_status.shards()] == ["5-0", "6-0", "6-0"]

from typing import Any

import numpy as np
import orjson
import pytest

from service import Intake
from service.errors import BatchTooLarge, IdempotencyKeyReused, InvalidIdempotencyKey, UnknownStream
from service.intake.posting import FeedPart
from service.settings import Limits
from service.stores import Condition, FeedMark, FeedStep
from streams import EventBatch, FieldMapping, StreamDeclaration, format_time, parse_time

pytestmark = pytest.mark.redis


@pytest.fixture
def intake(stores, clock):
    stores.registry.declare_stream(StreamDeclaration(name="orders", key="data.id", event_types=("A", "B")))
    return Intake(stores.log, stores.registry, Limits(max_batch_events=100), clock)


def plain(number, **changes):
    event = {"id": f"e{number}", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k", "n": number}}
    return {**event, **changes}


def cloud(number, **changes):
    return {**plain(number), "specversion": "1.0", "source": "/shop", **changes}


def logged(stores):
    batches = [
        EventBatch.from_bytes(entry.body)
        for shard in range(3)
        for entry in stores.log.read_range(shard)
        if entry.kind == "events"
    ]
    return [event for batch in batches for event in batch.to_events()]


def test_good_events_are_in_the_log(intake, stores):
    report = intake.ingest("orders", [plain(1), cloud(2)])
    assert (report.accepted, report.rejected, report.is_duplicate) == (2, (), False)
    assert [(event.id, event.type, event.key, event.data["n"]) for event in logged(stores)] == [
        ("e1", "A", "k", 1),
        ("e2", "A", "k", 2),
    ]


NESTED = orjson.loads("[" * 500 + "]" * 500)
BAD = {
    "no object": (3, "object"),
    "no id": (plain(1, id=None), "id"),
    "no key": (plain(1, data={}), "data.id"),
    "null key": (plain(1, data={"id": None}), "data.id"),
    "no type": ({"id": "e", "time": 1, "data": {"id": "k"}}, "type"),
    "undeclared type": (plain(1, type="C"), "C"),
    "no time": (plain(1, time=None), "time"),
    "time without zone": (plain(1, time="2026-01-01T00:00:00"), "zone"),
    "wrong data": (plain(1, data=[]), "data"),
    "deep data": (plain(1, data={"id": "k", "deep": NESTED}), "nested more than 100"),
    "long integer": (plain(1, data={"id": "k", "n": 2**70}), "beyond 64 bits"),
    "endless integer": (plain(1, data={"id": "k", "n": 10**5000}), "beyond 64 bits"),
    "half a surrogate pair": (plain(1, data={"id": "k", "n": "\ud800"}), "surrogate"),
    "half a cloudevent": (cloud(1, source=None), "source"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_event_is_a_dead_letter_with_the_reason_and_stops_nobody(intake, stores, name):
    event, reason = BAD[name]
    report = intake.ingest("orders", [plain(1), event, plain(2)])
    (rejected,) = report.rejected
    assert (report.accepted, rejected.index, rejected.code) == (2, 1, "event-rejected")
    assert reason in rejected.detail
    (letter,) = stores.dead_letters.page(10).items
    assert (letter["stream"], letter["index"], letter["reason"]) == ("orders", 1, rejected.detail)
    assert len(letter["event"]) <= 32_001
    assert len(logged(stores)) == 2


def test_cloudevents_may_be_demanded(intake):
    report = intake.ingest("orders", [cloud(1), plain(2)], shape="cloudevents")
    assert [rejected.index for rejected in report.rejected] == [1]


def test_plain_events_are_read_by_the_declared_mapping(intake, stores):
    mapping = FieldMapping(id="nr", type="what", time="at", data=None)
    stores.registry.declare_stream(StreamDeclaration(name="own", key="who", mapping=mapping))
    assert intake.ingest("own", [{"nr": 7, "what": "A", "at": 5, "who": "me"}]).accepted == 1
    (event,) = logged(stores)
    assert (event.id, event.type, event.time_us, event.key) == ("7", "A", 5, "me")


def test_a_batch_with_a_key_is_taken_once(intake, stores):
    batch = [plain(1), 3]
    first = intake.ingest("orders", batch, idempotency_key="b1")
    again = intake.ingest("orders", batch, idempotency_key="b1")
    assert not first.is_duplicate
    assert again.is_duplicate
    assert (again.accepted, again.rejected) == (first.accepted, first.rejected)
    assert len(logged(stores)) == 1
    assert len(stores.dead_letters.page(10).items) == 1


def test_an_event_that_is_sent_again_is_dropped_and_counted(intake, stores):
    for number in range(3):
        report = intake.ingest("orders", [plain(1)])
        assert (report.accepted, report.duplicates, report.is_duplicate) == (not number, number > 0, False)
    assert len(logged(stores)) == 1


def test_a_batch_that_was_taken_in_part_is_completed(intake, stores):
    intake.ingest("orders", [plain(1), plain(2)])
    report = intake.ingest("orders", [plain(0), plain(1), 3, plain(2), plain(3), plain(3)])
    assert (report.accepted, report.duplicates, [one.index for one in report.rejected]) == (2, 3, [2])
    assert [event.id for event in logged(stores)] == ["e1", "e2", "e0", "e3"]


def test_the_identity_of_a_cloudevent_is_its_source_and_id(intake):
    report = intake.ingest("orders", [cloud(1), cloud(1, source="/other"), plain(1), cloud(1)])
    assert (report.accepted, report.duplicates) == (3, 1)


def test_a_rejected_event_may_come_again(intake):
    assert intake.ingest("orders", [plain(1, time=None)]).accepted == 0
    assert intake.ingest("orders", [plain(1)]).accepted == 1


def test_a_stream_may_take_events_as_often_as_they_come(intake, stores):
    stores.registry.declare_stream(StreamDeclaration(name="all", key="data.id", duplicates="keep"))
    for _ in range(2):
        report = intake.ingest("all", [plain(1), plain(1)])
        assert (report.accepted, report.duplicates) == (2, 0)


PLACES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "file": ("o.csv:2", [{"file": "o.csv", "row": 2}, {"file": "o.csv"}]),
    "topic": ("o:0:2", [{"topic": "o", "partition": 0, "offset": offset} for offset in (2, 3)]),
}


@pytest.mark.parametrize("kind", PLACES)
def test_ids_that_a_feed_made_of_places_are_no_identities(intake, stores, kind):
    made, origins = PLACES[kind]
    before = FeedMark(checkpoint="c")
    for batch in range(2):
        after = FeedMark(checkpoint="c", batch=batch + 1)
        stores.feeds.begin("f", before, "orders")
        part = FeedPart(
            step=FeedStep(feed="f", before=before, after=after),
            origins=origins,
        )
        report = intake.ingest("orders", [plain(1, id=made), plain(1)], part=part)
        assert (report.accepted, report.duplicates) == ((2, 0) if batch == 0 else (1, 1))
        before = after


def test_a_key_with_another_batch_is_refused(intake, stores):
    intake.ingest("orders", [plain(1)], idempotency_key="b1")
    with pytest.raises(IdempotencyKeyReused, match="'b1'"):
        intake.ingest("orders", [plain(2)], idempotency_key="b1")
    assert len(logged(stores)) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "ü", "a\nb"])
def test_a_strange_key_is_refused(intake, key):
    with pytest.raises(InvalidIdempotencyKey):
        intake.ingest("orders", [plain(1)], idempotency_key=key)


def test_an_empty_batch_is_nothing(intake, stores):
    assert intake.ingest("orders", []).accepted == 0
    assert logged(stores) == []


def test_a_large_batch_is_refused(intake, stores):
    with pytest.raises(BatchTooLarge, match="at most 100"):
        intake.ingest("orders", [plain(n) for n in range(101)])
    assert logged(stores) == []


def test_an_unknown_stream_is_refused(intake):
    with pytest.raises(UnknownStream, match="'payments'"):
        intake.ingest("payments", [plain(1)])


FAR = "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("form", [plain, cloud])
@pytest.mark.parametrize(
    ("max_ahead", "times", "refused"),
    [
        (None, ["2026-01-01T06:00:00.000000Z", "2026-01-01T06:00:00.000001Z", FAR], [1, 2]),
        (60, ["2026-01-01T00:01:00.000000Z", "2026-01-01T00:01:01Z"], [1]),
        ("none", [FAR], []),
    ],
)
def test_an_event_from_the_future_is_a_dead_letter_and_moves_no_time(stores, clock, form, max_ahead, times, refused):
    stores.registry.declare_stream(StreamDeclaration(name="orders", key="data.id", lateness=5, max_ahead=max_ahead))
    intake = Intake(stores.log, stores.registry, Limits(), clock)
    sent = [form(number, time=time) for number, time in enumerate(times)]
    expected = intake.judge("orders", sent)
    report = intake.ingest("orders", sent)
    assert report.rejected == expected
    assert [(one.index, one.code) for one in report.rejected] == [(index, "event-ahead") for index in refused]
    assert report.accepted == len(times) - len(refused)
    latest = max((time for row, time in enumerate(times) if row not in refused))
    _, known = stores.stream_times.read()
    assert format_time(known["orders"].newest_us) == format_time(parse_time(latest))
    assert len(list(stores.dead_letters.all())) == len(refused)
    if refused:
        assert f"the stream takes times up to {times[0]}; correct the time, or" in report.rejected[0].detail


def test_a_dead_letter_from_the_future_is_taken_once_its_stream_allows_it(intake, stores, clock):
    assert intake.ingest("orders", [plain(1, time="2026-01-01T07:00:00Z")]).accepted == 0
    clock.forward(3_600)
    assert intake.ingest("orders", [plain(1, time="2026-01-01T07:00:00Z")]).accepted == 1


def test_events_of_one_time_keep_the_order_in_which_they_came(intake, stores, clock):
    intake.ingest("orders", [plain(n, data={"id": f"k{n % 5}"}) for n in (3, 1, 7)])
    clock.forward(-5)
    intake.ingest("orders", [plain(n, data={"id": f"k{n % 5}"}) for n in (0, 8)])
    entries = [entry for shard in range(3) for entry in stores.log.read_range(shard) if entry.kind == "events"]
    batch = EventBatch.joined([EventBatch.from_bytes(entry.body) for entry in entries])
    assert batch.arrivals is not None
    ordered = [batch.to_events()[row].id for row in np.argsort(batch.arrivals)]
    assert ordered == ["e3", "e1", "e7", "e0", "e8"]


@pytest.mark.parametrize("members", [{"key": "data.n"}, {"derived": True}])
def test_no_event_enters_a_stream_that_was_declared_again_meanwhile(intake, stores, monkeypatch, members):
    append = stores.log.append_events

    def late(submission):
        stores.registry.removal.remove("orders", Condition(), is_cascading=False)
        stores.registry.declare_stream(StreamDeclaration(name="orders", **members))
        return append(submission)

    monkeypatch.setattr(stores.log, "append_events", late)
    with pytest.raises(UnknownStream, match="'orders'"):
        intake.ingest("orders", [plain(1)])
    assert logged(stores) == []

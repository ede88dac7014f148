import tracemalloc

import orjson
import pytest
from starlette.datastructures import Headers

from api.requests.event_forms import read_events
from service import BatchTooLarge
from streams import EventBatch

pytestmark = pytest.mark.redis

PLAIN = {"id": "e1", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}}
CLOUD = {**PLAIN, "specversion": "1.0", "source": "/shop"}


def send(http, value, kind="application/json", stream="orders", **headers):
    content = value if isinstance(value, bytes) else orjson.dumps(value)
    return http.post(f"/v1/events?stream={stream}", content=content, headers={"content-type": kind, **headers})


def logged(stores):
    return [
        event.id
        for shard in range(3)
        for entry in stores.log.read_range(shard)
        if entry.kind == "events"
        for event in EventBatch.from_bytes(entry.body).to_events()
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("application/cloudevents+json", CLOUD),
        ("application/cloudevents+json; charset=UTF-8", CLOUD),
        ("application/cloudevents-batch+json", [CLOUD]),
        ("application/json", PLAIN),
        ("application/json", [PLAIN]),
        ("application/json", [CLOUD]),
    ],
)
def test_events_are_taken_in_every_form(orders, stores, kind, value):
    answer = send(orders, value, kind)
    assert (answer.status_code, answer.json()) == (
        202,
        {"accepted": 1, "rejected": [], "duplicates": 0},
    )
    assert logged(stores) == ["e1"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data": {}}, "data.id"),
        ({"time": None}, "time"),
        ({"time": "yesterday"}, "RFC 3339"),
        ({"time": 1.5}, "time"),
        ({"type": 7}, "type"),
        ({"id": ""}, "id"),
        ({"data": "x"}, "data"),
    ],
)
def test_a_bad_event_is_told_and_kept_as_a_dead_letter(orders, stores, changes, reason):
    answer = send(orders, [PLAIN, {**PLAIN, **changes}])
    assert answer.status_code == 202
    body = answer.json()
    (rejected,) = body["rejected"]
    assert (body["accepted"], rejected["index"], rejected["code"]) == (1, 1, "event-rejected")
    assert reason in rejected["detail"]
    letters = orders.get("/v1/dead-letters").json()
    assert [(letter["index"], letter["reason"]) for letter in letters["items"]] == [(1, rejected["detail"])]
    assert letters["counts"] == [{"stream": "orders", "code": "event-rejected", "count": 1}]
    assert logged(stores) == ["e1"]


def test_an_event_that_is_sent_again_is_a_success_and_counted(orders, stores):
    for number in range(3):
        answer = send(orders, [PLAIN])
        assert answer.status_code == 202
        assert (answer.json()["accepted"], answer.json()["duplicates"]) == (not number, number > 0)
    assert logged(stores) == ["e1"]
    assert 'forestall_duplicate_events_total{stream="orders"} 2.0' in orders.get("/metrics").text


def nested(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "b1"}])
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (b'{"id":"k","deep":%b}' % nested(1000), "nested more than 100"),
        (b'{"id":"k","deep":%b}' % nested(99), "nested more than 100"),
        (b'{"id":"k","n":%d}' % 2**70, "beyond 64 bits"),
        (b'{"id":"k","n":%d}' % -(2**63 + 1), "beyond 64 bits"),
        (b'{"id":%d}' % 2**70, "beyond 64 bits"),
    ],
)
def test_an_event_that_cannot_be_carried_leaves_the_others(orders, stores, part, reason, headers):
    bad = b'{"id":"bad","type":"A","time":1,"data":%b}' % part
    answer = send(orders, b"[%b,%b]" % (orjson.dumps(PLAIN), bad), **headers)
    assert answer.status_code == 202
    (rejected,) = answer.json()["rejected"]
    assert (rejected["index"], reason in rejected["detail"]) == (1, True)
    assert logged(stores) == ["e1"]
    assert orders.get("/v1/dead-letters").json()["items"][0]["reason"] == rejected["detail"]


def test_the_largest_extent_is_carried(orders, stores):
    part = b'{"id":"k","deep":%b,"most":%d,"least":%d}' % (nested(98), 2**63 - 1, -(2**63))
    answer = send(orders, b'{"id":"e1","type":"A","time":1,"data":%b}' % part)
    assert (answer.status_code, answer.json()["rejected"]) == (202, [])
    assert logged(stores) == ["e1"]


@pytest.mark.parametrize("value", [b"1" * 5000, b'"\\ud800"', b'"\xed\xa0\x80"', nested(1100)])
def test_what_is_no_json_value_is_a_400(orders, check_problem, value):
    check_problem(send(orders, b'[{"data":%b}]' % value), 400, "malformed-body")


def test_the_description_says_that_not_all_events_need_be_taken(http):
    operation = http.get("/openapi.json").json()["paths"]["/v1/events"]["post"]
    assert "see `rejected`" in operation["responses"]["202"]["description"]


def test_a_plain_object_among_cloudevents_is_rejected(orders):
    assert send(orders, [PLAIN], "application/cloudevents-batch+json").json()["rejected"][0]["index"] == 0


def test_a_batch_that_is_sent_again_is_taken_once(orders, stores):
    headers = {"Idempotency-Key": "b1"}
    first = send(orders, [PLAIN, 3], **headers).json()
    again = send(orders, [PLAIN, 3], **headers)
    assert again.status_code == 202
    assert (again.json(), again.headers["idempotency-replayed"]) == (first, "true")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert logged(stores) == ["e1"]


def test_a_key_that_is_used_for_another_batch_is_refused(orders, check_problem):
    send(orders, [PLAIN], **{"Idempotency-Key": "b1"})
    check_problem(send(orders, [], **{"Idempotency-Key": "b1"}), 422, "idempotency-key-mismatch")
    check_problem(send(orders, [PLAIN], **{"Idempotency-Key": "x" * 201}), 400, "idempotency-key")


@pytest.mark.parametrize(
    ("body", "line", "column"), [(b'{"id":\n "e1",}', 2, 6), (b"", 1, 1), (b'{"a": NaN}', 1, 7), (b'["\xff"]', 1, 1)]
)
def test_malformed_json_is_told_with_its_place(orders, check_problem, body, line, column):
    shown = check_problem(send(orders, body), 400, "malformed-body")
    assert (shown["line"], shown["column"]) == (line, column)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("application/cloudevents+json", [CLOUD]),
        ("application/cloudevents-batch+json", CLOUD),
        ("application/json", 3),
        ("application/json", "event"),
        ("application/json", None),
    ],
)
def test_a_body_of_another_form_than_promised_is_refused(orders, check_problem, kind, value):
    check_problem(send(orders, value, kind), 400, "event-form")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "application/json; charset=latin-1"])
def test_other_media_types_are_not_read(orders, check_problem, kind):
    check_problem(send(orders, PLAIN, kind), 415, "unsupported-media-type")


def test_compressed_bodies_are_not_read(orders, check_problem):
    answer = send(orders, PLAIN, **{"Content-Encoding": "gzip"})
    check_problem(answer, 415, "unsupported-media-type")


def test_an_unknown_stream_is_a_404(orders, check_problem):
    check_problem(send(orders, PLAIN, stream="nowhere"), 404, "unknown-stream")


def test_the_stream_must_be_named(orders, check_problem):
    check_problem(orders.post("/v1/events", json=PLAIN), 422, "wrong-shape")


def test_too_many_events_are_a_413(orders, check_problem, stores):
    check_problem(send(orders, [PLAIN] * 51), 413, "batch-too-large")
    assert logged(stores) == []


def test_a_large_body_is_a_413(orders, check_problem, stores, settings):
    limit = settings.limits.max_body_bytes
    body = check_problem(send(orders, b" " * (limit + 1)), 413, "body-too-large")
    assert body["limit_bytes"] == limit
    assert send(orders, b" " * (limit - 2) + b"[]").status_code == 202


def test_a_large_body_is_a_413_while_it_streams(orders, check_problem):
    chunks = (b" " * 10_000 for _ in range(30))
    answer = orders.post("/v1/events?stream=orders", content=chunks, headers={"content-type": "application/json"})
    check_problem(answer, 413, "body-too-large")


BINARY = {f"ce-{name}": str(value) for name, value in CLOUD.items() if name != "data"}


def test_a_cloudevent_may_come_in_binary_mode(orders, stores):
    headers = BINARY | {"ce-type": "caf%C3%A9%20%22A%22", "ce-source": '"/shop"', "ce-traceparent": "00-1-2-01"}
    answer = send(orders, {"id": "k", "n": 1}, "application/json; charset=utf-8", **headers)
    assert (answer.status_code, answer.json()) == (
        202,
        {"accepted": 1, "rejected": [], "duplicates": 0},
    )
    (entry,) = [entry for shard in range(3) for entry in stores.log.read_range(shard) if entry.kind == "events"]
    (event,) = EventBatch.from_bytes(entry.body).to_events()
    assert (event.id, event.type, event.key, event.data) == ("e1", 'café "A"', "k", {"id": "k", "n": 1})


def test_structured_mode_wins_over_header_fields(orders, stores):
    assert send(orders, CLOUD, "application/cloudevents+json", **BINARY | {"ce-id": "other"}).json()["accepted"] == 1
    assert logged(stores) == ["e1"]


@pytest.mark.parametrize(
    ("changes", "body", "kind", "status", "code"),
    [
        ({}, b"{", "application/json", 400, "malformed-body"),
        ({}, b"<a/>", "application/xml", 415, "unsupported-media-type"),
        ({}, b"{}", "", 415, "unsupported-media-type"),
        ({"ce-data": "x"}, b"{}", "application/json", 400, "event-form"),
        ({"ce-a_b": "x"}, b"{}", "application/json", 400, "event-form"),
        ({"ce-id": "%ff"}, b"{}", "application/json", 400, "event-form"),
        ({"ce-id": b"\xff"}, b"{}", "application/json", 400, "event-form"),
    ],
)
def test_what_is_no_binary_mode_is_refused(orders, check_problem, changes, body, kind, status, code):
    check_problem(send(orders, body, kind, **BINARY | changes), status, code)


@pytest.mark.parametrize(("missing", "body"), [("ce-id", {"id": "k"}), ("ce-time", {"id": "k"}), (None, b"")])
def test_a_bad_event_in_binary_mode_is_told(orders, missing, body):
    answer = send(orders, body, **{name: value for name, value in BINARY.items() if name != missing})
    assert (answer.status_code, answer.json()["accepted"], len(answer.json()["rejected"])) == (422, 0, 1)


def test_nothing_taken_is_no_success(orders, check_problem):
    bad = {**PLAIN, "time": "yesterday"}
    first, again = [send(orders, [bad, bad], **{"Idempotency-Key": "k"}) for _ in range(2)]
    shown = check_problem(first, 422, "nothing-accepted")
    assert (shown["accepted"], [one["index"] for one in shown["rejected"]]) == (0, [0, 1])
    assert shown["rejected"][0]["detail"] in shown["detail"]
    assert again.headers["idempotency-replayed"] == "true"
    assert {**again.json(), "instance": None} == {**first.json(), "instance": None}
    assert send(orders, [bad, PLAIN]).status_code == 202
    assert send(orders, []).status_code == 202


def lines(*values):
    return b"\n".join(value if isinstance(value, bytes) else orjson.dumps(value) for value in values)


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/ndjson", "application/jsonl"])
def test_events_may_come_as_lines(orders, stores, kind):
    answer = send(orders, lines(PLAIN, b"\r", {**CLOUD, "id": "e2"}, b""), kind)
    assert (answer.status_code, answer.json()) == (
        202,
        {"accepted": 2, "rejected": [], "duplicates": 0},
    )
    assert sorted(logged(stores)) == ["e1", "e2"]


def test_bad_lines_are_told_with_their_numbers_and_the_others_are_taken(orders, stores):
    bad = [b'{"id": ', b'{"id":"\\ud800"}', b"\xff", b"7", {**PLAIN, "time": None}, b'{"id": %d}' % 10**30, b"{} {}"]
    sent = lines(PLAIN, b"", *bad, {**PLAIN, "id": "e2"})
    first = send(orders, sent, "application/x-ndjson", **{"Idempotency-Key": "b1"})
    assert first.status_code == 202
    rejected = first.json()["rejected"]
    assert [(one["index"], one["line"]) for one in rejected] == [(n + 1, n + 3) for n in range(len(bad))]
    assert rejected[0]["detail"].startswith("column ")
    assert all(one["detail"] for one in rejected)
    assert sorted(logged(stores)) == ["e1", "e2"]
    letters = orders.get("/v1/dead-letters").json()["items"]
    assert sorted(letter["index"] for letter in letters) == [n + 1 for n in range(len(bad))]
    again = send(orders, sent, "application/x-ndjson", **{"Idempotency-Key": "b1"})
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    assert sorted(logged(stores)) == ["e1", "e2"]


def test_lines_are_numbered_as_editors_do():
    body = b'\n  \n {"a": 1}\r\n\n\t7 \n' + b"x"
    sent = read_events(Headers(), "application/x-ndjson", body, most=3)
    assert sent.lines == [3, 5, 6]
    assert sent.objects[:2] == [{"a": 1}, 7]


def test_no_more_lines_are_read_than_there_may_be():
    body = b"x\n" * 5_000_000
    read_events(Headers(), "application/x-ndjson", b"x\n", most=50)  # what is imported or kept once is not counted
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge, match="more than 50 events"):
            read_events(Headers(), "application/x-ndjson", body, most=50)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # a list of the lines alone would take 40 MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", [b"\n" * 10_000_000, b" " * 10_000_000, b"\n {}\n" + b" \n" * 5_000_000])
def test_blank_lines_are_passed_over_in_one_step(body):
    sent = read_events(Headers(), "application/x-ndjson", body, most=50)
    assert len(sent.objects) == body.count(b"{}")


def test_too_many_lines_are_refused_whole(orders, check_problem, stores):
    check_problem(send(orders, lines(*[PLAIN] * 51), "application/x-ndjson"), 413, "batch-too-large")
    assert logged(stores) == []

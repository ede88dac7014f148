import pytest

from streams import KeyRange, Punctuation, RecordKind, decode_control

pytestmark = pytest.mark.redis


def punctuations(stores):
    return [
        [decode_control(one.kind, one.body) for one in stores.log.read_range(shard) if one.kind == "punctuation"]
        for shard in range(stores.log.shards())
    ]


@pytest.mark.parametrize(
    ("body", "record"),
    [
        ({"before": "2026-01-01T00:00:00Z"}, Punctuation(before_us=1_767_225_600_000_000)),
        ({"key": "t7"}, Punctuation(key="t7")),
        ({"keys": ["t7", "t8"]}, Punctuation(keys=("t7", "t8"))),
        ({"before": "2026-01-01T01:00:00+01:00", "key": "7"}, Punctuation(before_us=1_767_225_600_000_000, key="7")),
        ({"range": {"from": -3, "to": 7}}, Punctuation(range=KeyRange(low=-3, high=7))),
        (
            {"range": {"from": None, "to": 7}, "by": "order", "time": "2026-01-01T00:00:00Z"},
            Punctuation(range=KeyRange(high=7), by="order", time_us=1_767_225_600_000_000),
        ),
    ],
)
def test_every_shard_is_told(orders, stores, body, record):
    answer = orders.post("/v1/streams/orders/punctuations", json=body)
    nothing: dict[str, object] = {"before": None, "key": None, "keys": [], "range": None, "by": None, "time": None}
    announced = answer.json()
    assert [one.startswith("the range finishes nothing") for one in announced.pop("warnings")] == ["range" in body] * (
        "range" in body
    )
    assert (answer.status_code, announced) == (202, nothing | body)
    assert punctuations(stores) == [[record]] * stores.log.shards()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "give 'before', 'key', 'keys' or 'range'"),
        ({"before": None, "key": None}, "give 'before', 'key', 'keys' or 'range'"),
        ({"range": {}}, "give 'from', 'to' or both"),
        ({"range": {"from": 2, "to": 1}}, "no key is in a range from 2 to 1"),
        ({"range": {"from": "1"}}, "valid integer"),
        ({"range": {"to": 2**63}}, "an integer beyond 64 bits"),
        ({"key": "7", "by": "order"}, "'by' and 'time' are about a 'range'"),
        ({"before": "soon"}, "is not RFC 3339"),
        ({"before": "2026-01-01T00:00:00"}, "has no time zone"),
        ({"key": ""}, "at least 1 character"),
        ({"keys": ["a", ""]}, "at least 1 character"),
        ({"keys": ["a"] * 1_001}, "at most 1000 items"),
        ({"after": "2026-01-01T00:00:00Z"}, "body.after: no such member; there are before, by, key, keys, range, time"),
        (
            {"befor": "2026-01-01T00:00:00Z"},
            "body.befor: no such member (did you mean before?); there are before, by, key, keys, range, time",
        ),
    ],
)
def test_what_says_nothing_is_refused(orders, stores, check_problem, body, part):
    answer = orders.post("/v1/streams/orders/punctuations", json=body)
    assert part in check_problem(answer, 422, "wrong-shape")["detail"]
    assert punctuations(stores) == [[]] * stores.log.shards()


def test_the_stream_must_be_declared(http, check_problem):
    check_problem(http.post("/v1/streams/none/punctuations", json={"key": "k"}), 404, "unknown-stream")


def test_the_kind_is_of_the_log():
    assert RecordKind("punctuation") is RecordKind.PUNCTUATION

"""Validation, explanation and figures of joins with ``wait: auto``."""

import re
from typing import Any

import numpy as np
import pytest

from joins import (
    Item,
    ItemColumns,
    JoinRefused,
    KeyMonitor,
    WaitDecider,
    explain,
    keeps_rows,
    keys_summary,
    read_join,
    waiting_inputs,
    waiting_sentences,
)
from joins.waiting.inputs import Arrivals
from joins.waiting.prediction import KeyFigures, heads, predicted_rows

DOCUMENT: dict[str, Any] = {
    "inputs": [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p"}],
    "wait": "auto",
    "return": {"o": "id(o)"},
}
BODY = read_join(DOCUMENT)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"wait": "5 s"}, "'wait' of a join is '5 s'; write none or auto"),
        ({"wait": "none"}, "or 'wait: auto' where keys are numbers that rise roughly"),
        ({"wait": "none", "memory": {"rows": 5}}, "'memory' of a join needs 'spill: true' or 'wait: auto'"),
        ({"memory": {"rows": 5, "spill": "yes"}}, "'spill' of the memory of a join is true or false, got 'yes'"),
        ({"memory": {"rows": 0}}, "'memory' of a join is {'rows': 0}"),
        ({"max_latency": "5 s"}, "a join has max_latency"),
    ],
)
def test_a_document_says_what_is_kept_or_is_refused(members: dict[str, Any], said: str) -> None:
    with pytest.raises(JoinRefused, match=re.escape(said)):
        read_join({**DOCUMENT, **members})


def test_with_wait_every_input_is_bounded_and_keys_are_finished() -> None:
    assert BODY.waits
    assert all(one.closes and one.finishes_ranges for one in BODY.inputs)
    total = read_join({**DOCUMENT, "emit": "on_close", "return": {"n": "count(p)"}, "memory": {"rows": 5}})
    assert (total.memory_rows, total.most_rows) == (None, 5)
    spilling = read_join({**DOCUMENT, "memory": {"rows": 5, "spill": True}})
    assert (spilling.memory_rows, spilling.most_rows) == (5, None)
    assert keeps_rows(BODY, read_join({**DOCUMENT, "window": "5 s"}))
    unwaiting = read_join({**DOCUMENT, "window": "5 s", "wait": "none"})
    assert not keeps_rows(unwaiting, read_join({**DOCUMENT, "window": "5 s"}))


def test_an_explanation_says_what_lets_events_go() -> None:
    said = explain(read_join({**DOCUMENT, "memory": {"rows": 5_000}}))
    assert said[0].startswith("WO-Join: keys rise roughly")
    assert said[1].startswith("At most 5,000 events of a shard are held.")
    assert said[2].startswith(
        "o: events are kept until p has finished their key; a key of it is finished when its keys "
    )


def summary(name: str, first: int, reached_us: int) -> dict[str, object]:
    """2,048 keys one after the other, of each two events, one a microsecond; each fourth is 30 too low."""
    keys = np.repeat(np.arange(first, first + 2_048), 2)
    keys[::4] -= 30
    monitor = KeyMonitor()
    monitor.add(np.arange(reached_us - len(keys) + 1, reached_us + 1), keys)
    return keys_summary(1, name, monitor.take_chunks(), reached_us)


def test_of_each_input_is_said_what_was_measured_and_what_follows() -> None:
    decider = WaitDecider()
    decider.observe([summary("o", 1_000, 5_000), summary("p", 0, 5_000)])
    record = decider.decide()
    assert record is not None
    said = {one.input: one.to for one in record.closed}
    counts = {"o:arrived": 4_096, "o:late": 4, "o:held": 700, "p:arrived": 4_096, "p:late": 0, "p:held": 3}
    found = waiting_inputs(BODY, counts, decider.to_json())
    o, p = found["o"], found["p"]
    assert (o.disorder, o.closing_key, o.lag) == (29, said["o"], 0)
    assert (p.disorder, p.closing_key, p.lag) == (29, said["p"], 1_000)
    assert o.accuracy == 1 - 4 / 4_096
    assert o.predicted is not None
    assert abs(o.predicted - 2 * (3_047 - (said["p"] or 0))) < 100, "those above the closing key of the other one"
    assert p.predicted == 0
    first, second = waiting_sentences(found, {"o": 1_000_000})
    assert first == (
        f"o: keys come up to 29 below the highest one before them, of 4,096 events; keys up to {said['o']} are "
        "finished (decided at 1970-01-01T00:00:01.000000Z); no input is ahead of it; 4 of 4,096 events came for a "
        f"finished key (accuracy about 99.9023%); 700 are in memory, {o.predicted:,} are expected."
    )
    assert "; its highest key is 1,000 below that of the input that is farthest ahead; 0 of 4,096" in second


def test_little_is_said_where_little_is_known() -> None:
    found = waiting_inputs(BODY, {}, None)
    assert waiting_sentences(found, {}) == []
    assert found["o"].accuracy is None
    decider = WaitDecider()
    decider.observe([summary("o", 0, 5_000)])
    found = waiting_inputs(BODY, {"o:arrived": 5}, decider.to_json())
    assert (found["o"].lag, found["o"].predicted, found["p"].disorder) == (None, None, None)
    (sentence,) = waiting_sentences(found, {})
    assert sentence == (
        "o: keys come up to 29 below the highest one before them, of 4,096 events; no keys are finished yet; 0 of 5 "
        "events came for a finished key (accuracy about 100.0000%); 0 are in memory."
    )


def test_a_closing_key_below_all_measured_keys_is_not_called_a_bound_of_finished_keys() -> None:
    decider, monitor, keys = WaitDecider(), KeyMonitor(), np.arange(10, 2_058)
    keys[1_900] = 5
    monitor.add(np.arange(2_048), keys)
    decider.observe([keys_summary(1, "o", monitor.take_chunks(), 2_047)])
    record = decider.decide()
    assert record is not None
    assert (record.closed[0].to or 0) < 0
    (sentence,) = waiting_sentences(waiting_inputs(BODY, {}, decider.to_json()), {})
    assert f"; no key of these events is finished, as the closing key {record.closed[0].to} is below them; " in sentence


def figures(**changed: Any) -> KeyFigures:
    known: dict[str, Any] = {
        "events": 1_000,
        "distance": 10,
        "room": 13,
        "highest": 500,
        "least": 240,
        "rise": 250,
        "span_us": 100,
    }
    return KeyFigures(**{**known, "reached_us": 1_000, "closing": 400, **changed})


def test_an_input_holds_the_events_above_the_lowest_closing_key_of_the_others() -> None:
    inputs = {"a": figures(), "b": figures(closing=300, highest=900, reached_us=1_100), "c": figures(closing=350)}
    assert heads(inputs) == {"a": 500, "b": 650, "c": 500}
    assert predicted_rows(inputs) == {"a": 800, "b": 1_200, "c": 800}


def test_nothing_is_predicted_before_all_is_known() -> None:
    for lacking in (figures(closing=None), figures(rise=0), figures(highest=None), figures(reached_us=None)):
        assert predicted_rows({"a": figures(), "b": lacking}) is None
    assert predicted_rows({"a": figures()}) is None


def test_events_are_counted_by_input_and_so_are_late_ones() -> None:
    arrivals = Arrivals(2)
    items = ItemColumns.of(
        [
            (Item.EVENT, 0, 7, 1),
            (Item.CLOSING, 0, 7, 1),
            (Item.PLACE, 1, 0, 2),
            (Item.EVENT, 1, 7, 3),
            (Item.TIME, 0, 0, 9),
        ]
    )
    arrivals.note(items, np.array([2, 3], np.int32))
    arrivals = Arrivals(2, arrivals.to_json())
    arrivals.note(items, np.array([0], np.int32))
    assert arrivals.measures(BODY, [5, 6]) == {
        "o:arrived": 2,
        "o:late": 1,
        "o:held": 5,
        "p:arrived": 4,
        "p:late": 2,
        "p:held": 6,
    }

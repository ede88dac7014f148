"""The expected number of retained events of a join, compared with the observed number."""

import numpy as np
import pytest

from joins import FIGURE, Item, ItemColumns, Window, WindowJoin, figures, read_join
from joins.costs.observing import StateObserver
from joins.figures import numbers_of
from tests.builders.joins import GeneratedStream, generated

SECOND = 1_000_000
STREAMS = {"stream": "a", "as": "o"}, {"stream": "b", "as": "p"}


def body_of(window, closes):
    inputs = [{**one, "closed_by": ["end"] if closes else []} for one in STREAMS]
    return read_join({"inputs": inputs, "window": window, "return": {"x": "id(o)"}})


def observed(items, windows, closes):
    """An observer and a join that have had some items, and later means of what is expected and stored of all inputs."""
    observer, join, stored, expected = StateObserver(windows, closes), WindowJoin(windows), [], []
    for start in range(0, len(items), 50):
        part = items.slice(start, start + 50)
        hashed = ItemColumns(
            kinds=part.kinds,
            inputs=part.inputs,
            keys=part.keys * np.uint64(0x9E3779B97F4A7C15),
            times_us=part.times_us,
        )
        observer.observe(hashed)
        join.push(hashed)
        stored.append(join.stored)
        expected.append(sum((observer.rate(one) or 0) * (observer.stay_us(one) or 0) / SECOND for one in (0, 1)))
    later = len(stored) // 3
    return observer, join, (float(np.mean(expected[later:])), float(np.mean(stored[later:])))


@pytest.mark.compiled
@pytest.mark.parametrize("window", ["250 ms", "20 s", "none"])
def test_what_is_expected_is_within_15_percent_of_synchronous_streams(window):
    body = body_of(window, closes=True)
    items = generated([GeneratedStream(spacing=20)] * 2, 60, seed=5)
    observer, join, (expected, mean) = observed(items, [one.window for one in body.inputs], [True, True])
    told = numbers_of(body, observer, join.stored_by_input)
    assert expected == pytest.approx(mean, rel=0.15)
    last = sum((observer.rate(one) or 0) * (observer.stay_us(one) or 0) / SECOND for one in (0, 1))
    assert sum(told[f"{alias}{FIGURE}expected"] for alias in "op") / 1000 == pytest.approx(last, rel=0.01)
    assert sum(told[f"{alias}{FIGURE}stored"] for alias in "op") == join.stored


def test_rate_and_window_say_what_is_held_where_no_key_is_finished():
    body = body_of("2 s", closes=False)
    rows = [(Item.EVENT, number % 2, number % 7, number * SECOND // 10) for number in range(201)]
    observer, join, _ = observed(ItemColumns.of(rows), [one.window for one in body.inputs], [False, False])
    told = numbers_of(body, observer, join.stored_by_input)
    assert figures(body, told) == [
        (
            "o: 5.05 events a second and a window of 2 s; so an event stays 2 s, and 10 are held on average; "
            "10 are in memory."
        ),
        (
            "p: 5 events a second and a window of 2 s; so an event stays 2 s, and 10 are held on average; "
            "10 are in memory."
        ),
    ]
    doubled = figures(body, {name: 2 * number for name, number in told.items()})  # of two shards
    assert doubled[1].startswith("p: 10 events a second")
    assert "an event stays 2 s, and 20 are held on average; 20 are in memory" in doubled[1]


def test_lives_of_keys_say_how_long_an_event_stays():
    body = body_of("none", closes=True)
    rows = []
    for key in range(1, 41):  # two events of the first input, a closing of it after 4 s, of the other one after 6 s
        begin = key * 10 * SECOND
        rows += [(Item.EVENT, 0, key, begin), (Item.EVENT, 0, key, begin + 2 * SECOND)]
        rows += [(Item.CLOSING, 0, key, begin + 4 * SECOND), (Item.CLOSING, 1, key, begin + 6 * SECOND)]
    observer, join, _ = observed(ItemColumns.of(rows), [Window(), Window()], [True, True])
    (sentence,) = figures(body, numbers_of(body, observer, join.stored_by_input))
    assert sentence == (
        "o: 0.202 events a second; a key lives 4 s, and nothing joins it any more 6 s after its first event (lag 1.50, "
        "no window: case 6 of Eq. 6.1); so an event stays 4 s, and 1 are held on average; 0 are in memory."
    )


def test_of_many_keys_a_part_is_followed_and_rates_follow_the_events():
    observer = StateObserver([Window("time", SECOND)] * 2, [True, False])
    for start in range(100):
        keys = np.random.default_rng(start).integers(0, 1 << 63, 1000).astype(np.uint64)
        fast = start >= 50
        times = (start - 50) * 1000 * 100 + np.arange(1000) * 100 if fast else start * SECOND + np.arange(1000) * 1000
        observer.observe(
            ItemColumns(
                kinds=np.full(1000, Item.EVENT, np.uint8),
                inputs=np.zeros(1000, np.uint8),
                keys=keys,
                times_us=times.astype(np.int64) + (50 * SECOND if fast else 0),
            )
        )
    assert len(observer._open) <= 1024
    assert observer.rate(0) == pytest.approx(10_000, rel=0.05)
    assert observer.rate(1) == 0
    assert observer.stay_us(1) == SECOND


def test_nothing_is_said_before_time_has_passed_nor_of_numbers_of_events():
    body = read_join(
        {
            "inputs": [
                {**STREAMS[0], "closed_by": "unique", "window": {"last": 3}},
                {**STREAMS[1], "closed_by": "end"},
            ],
            "return": {"x": "id(o)"},
        }
    )
    observer = StateObserver([one.window for one in body.inputs], [True, True])
    assert figures(body, numbers_of(body, observer, [0, 0])) == []
    observer.observe(ItemColumns.of([(Item.EVENT, 0, 1, 0), (Item.EVENT, 1, 1, SECOND)]))
    assert all(name.startswith(f"p{FIGURE}") for name in numbers_of(body, observer, [1, 1]))


@pytest.mark.parametrize(("optional", "stay_s"), [((), 0.9), ((2,), 5.5), ((0, 1, 2), 5.5)])
def test_an_input_that_may_be_absent_makes_no_event_useless_before_the_others_are_finished(optional, stay_s):
    observer, join = StateObserver([Window()] * 3, [True] * 3, optional), WindowJoin([Window()] * 3, optional=optional)
    rows = []
    for key in range(1, 41):  # events of the first input for 5 s; the third one has none and closes the key after 3 s
        begin, closings = key * 10 * SECOND, [(2, 3), (0, 5), (1, 8)]
        rows += [(Item.EVENT, 0, key, begin + place * SECOND // 10) for place in range(50)]
        rows += [(Item.CLOSING, number, key, begin + after_s * SECOND) for number, after_s in closings]
    held_us, before_us = 0, 0
    for item in sorted(rows, key=lambda row: row[3]):
        held_us += join.stored * (item[3] - before_us)
        before_us = item[3]
        observer.observe(ItemColumns.of([item]))
        join.push(ItemColumns.of([item]))
    assert observer.stay_us(0) == pytest.approx(stay_s * SECOND, rel=0.05)
    assert held_us / (40 * 50) == pytest.approx(stay_s * SECOND, rel=0.05)

"""How far keys come out of order, by chunks of all shards, and which keys are finished by that."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import KeyMonitor, WaitDecider, held_summary, keys_summary
from joins.waiting.chunks import MOST_CHUNKS, chunks_of, farthest, fewer, joined
from joins.waiting.decider import BLOCK_EVENTS, ENOUGH_EVENTS, InputKeys
from streams import KeysClosed

keys = st.lists(st.integers(-40, 40), min_size=1, max_size=120)


def distances(rows):
    """The distance of each event: how far its key is below the highest key before it. Rows are (time, key)."""
    found, highest = [], None
    for _, key in rows:
        found.append(0 if highest is None else max(highest - key, 0))
        highest = key if highest is None else max(highest, key)
    return found


def made(rows):
    times, numbers = zip(*rows, strict=True)
    return np.array(times, np.int64), np.array(numbers, np.int64)


def monitored(rows, cuts=()):
    """The chunks of a shard whose events come in parts."""
    monitor, times_and_keys = KeyMonitor(), made(rows)
    for part in zip(*(np.split(one, sorted(cuts)) for one in times_and_keys), strict=True):
        monitor.add(*part)
    return monitor.take_chunks()


def measured(chunks):
    return max(farthest(chunks, chunks), *(one.distance for one in chunks))


@settings(deadline=None)
@given(keys, st.sets(st.integers(0, 120), max_size=5))
def test_chunks_of_one_shard_have_its_largest_distance_however_it_is_cut(numbers, cuts):
    rows = list(enumerate(numbers))
    chunks = monitored(rows, {cut for cut in cuts if cut <= len(rows)})
    assert chunks == monitored(rows)
    assert measured(chunks) == max(distances(rows))
    assert sum(one.events for one in chunks) == len(rows)


@settings(deadline=None)
@given(keys, st.integers(1, 4), st.randoms(use_true_random=False))
def test_chunks_of_several_shards_have_at_least_the_largest_distance_of_all(numbers, shards, chance):
    rows = list(enumerate(numbers))
    parts: list[list[tuple[int, int]]] = [[] for _ in range(shards)]
    for row in rows:
        chance.choice(parts).append(row)
    chunks = [one for part in parts if part for one in monitored(part)]
    chance.shuffle(chunks)
    found = measured(chunks)
    assert found >= max(distances(rows))
    assert found <= max(numbers) - min(numbers)
    assert measured(fewer(chunks, 2)) >= found
    if len(chunks) > 1:
        assert measured([joined(chunks[0], chunks[-1]), *chunks[1:-1]]) >= found


def test_of_events_of_shards_that_take_turns_little_is_added():
    rows = [(number, number - number % 7) for number in range(4_000)]
    chunks = [one for shard in range(4) for one in monitored(rows[shard::4])]
    assert max(distances(rows)) <= measured(chunks) <= max(distances(rows)) + 4 * 64 * 2


def test_chunks_stay_few_and_keep_the_largest_distance():
    chance = random.Random(7)
    rows = [(number, number - chance.choice([0, 0, 0, 90])) for number in range(70_000)]
    chunks = monitored(rows, range(0, 70_000, 999))
    assert chunks == monitored(rows)
    assert len(chunks) <= MOST_CHUNKS
    assert measured(chunks) == max(distances(rows)) > 0


def test_events_that_are_older_than_others_before_them_count_as_of_their_time():
    chunks = monitored([(10, 5), (3, 7), (12, 1)])
    assert [(one.first_us, one.last_us, one.distance) for one in chunks] == [(10, 12, 6)]


def test_keys_may_be_as_far_apart_as_they_can_be():
    rows = [(0, (1 << 63) - 1), (1, -(1 << 63))]
    assert measured(chunks_of(*made(rows))) == (1 << 64) - 1
    inputs = InputKeys()
    inputs.observe([replace(one, events=5_000) for one in chunks_of(*made(rows))], 1)
    assert inputs.decide("o") is None


# --- one input ----------------------------------------------------------------------------------------------------


def scrambled(seed, first, count, bound):
    """Keys that rise, each of which comes at most so much too late, one per microsecond."""
    chance = random.Random(seed)
    order = sorted(range(first, first + count), key=lambda key: key + chance.uniform(0, bound))
    return [(first + place, key) for place, key in enumerate(order)]


def decided(inputs, rows, step=256):
    """What is decided, with the number of events before."""
    found = []
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        inputs.observe(monitored(part), part[-1][0])
        if (closed := inputs.decide("o")) is not None:
            found.append((at + len(part), closed))
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.integers(0, 300), st.sampled_from([64, 256, 1_000]))
def test_no_key_comes_that_is_finished_where_the_disorder_stays_the_same(seed, bound, step):
    rows = scrambled(seed, 0, 6_000, bound)
    found = decided(InputKeys(), rows, step)
    assert found
    assert min(at for at, _ in found) >= ENOUGH_EVENTS
    late = sum(key <= closed.to for at, closed in found for _, key in rows[at:])
    assert late == 0 if bound == 0 else late <= len(rows) // 100
    closings = [closed.to for _, closed in found]
    assert closings == sorted(set(closings))
    assert closings[-1] >= 6_000 - 2 * bound - 3 * max(step, BLOCK_EVENTS)


def test_the_closing_key_is_as_far_below_the_highest_as_the_largest_distance_with_headroom():
    rows = [(number, number) for number in range(2_048)]
    rows[700] = (700, 600)  # 99 below the one before it
    ((_, closed),) = decided(InputKeys(), rows, 2_048)
    assert closed.seen["distance"] == 99
    assert closed.seen["room"] == 124
    assert 2_048 - 2 * BLOCK_EVENTS <= closed.to + 124 + 1 < 2_048 - BLOCK_EVENTS
    assert closed.time_us == 2_047


def test_a_disturbance_is_forgotten_after_eight_blocks():
    inputs = InputKeys()
    rows = scrambled(1, 0, 2_048, 10)
    rows += scrambled(2, 2_048, 1_024, 900)
    decided(inputs, rows)
    assert inputs.figures().distance > 500
    decided(inputs, scrambled(3, 3_072, 4_608, 10))
    assert inputs.figures().distance < 20


def test_one_odd_key_far_above_closes_nothing_and_is_forgotten():
    inputs = InputKeys()
    rows = scrambled(1, 0, 12_000, 10)
    rows[2_047] = (2_047, 10**15)
    found = decided(inputs, rows)
    assert max(closed.to for _, closed in found) < 12_000
    assert found[-1][1].to > 11_000


def test_keys_that_begin_again_are_noticed_after_a_while_and_measured_anew():
    inputs = InputKeys()
    assert decided(inputs, scrambled(1, 0, 4_096, 10))
    again = [(4_096 + time_us, key) for time_us, key in scrambled(2, 0, 3_000, 10)]
    found = decided(inputs, again)
    at, closed = found[0]
    assert (at, closed.to, closed.time_us) == (ENOUGH_EVENTS, None, again[ENOUGH_EVENTS - 1][0])
    assert all(ENOUGH_EVENTS < one.to < 3_000 for _, one in found[1:])
    assert len(found) > 1


def test_some_late_events_do_not_begin_keys_again():
    inputs = InputKeys()
    rows = scrambled(1, 0, 4_096, 10)
    decided(inputs, rows)
    late = [(4_096 + number, number if number % 300 else 4_096 + number) for number in range(2_400)]
    assert all(closed.to is not None for _, closed in decided(inputs, late))


def test_what_a_shard_has_to_catch_up_with_is_not_late() -> None:
    inputs, rows = InputKeys(), scrambled(1, 0, 8_000, 10)
    assert decided(inputs, rows[::2], 1_000)
    assert all(closed.to is not None for _, closed in decided(inputs, rows[1::2], 1_000))
    again = [(8_000 + time_us, key) for time_us, key in scrambled(2, 0, 2_000, 10)]
    assert decided(inputs, again)[0][1].to is None


# --- all inputs ---------------------------------------------------------------------------------------------------


def summary(rows, name="o", version=1):
    return keys_summary(version, name, monitored(rows), rows[-1][0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_what_shards_say_is_without_meaning_and_the_state_can_be_saved(seed, shards, chance):
    one, other = WaitDecider(), WaitDecider()
    rows, said = scrambled(seed, 0, 4_000, 50), []
    for at in range(0, len(rows), 500):
        parts = [rows[at : at + 500][shard::shards] for shard in range(shards)]
        summaries = [summary(part, name) for part in parts for name in ("o", "p")]
        one.observe(summaries)
        other.observe(chance.sample(summaries, len(summaries)))
        said.append(one.decide())
        assert other.decide() == said[-1]
        other = WaitDecider.from_json(other.to_json())
        assert other.to_json() == one.to_json()
    records = [record for record in said if record is not None]
    assert records
    assert {tuple(closed.input for closed in record.closed) for record in records} == {("o", "p")}


def test_what_one_input_does_decides_nothing_about_another():
    alone, both = WaitDecider(), WaitDecider()
    rows, found = scrambled(1, 0, 4_000, 50), []
    for at in range(0, 4_000, 250):
        alone.observe([summary(rows[at : at + 250])])
        both.observe([summary(rows[at : at + 250]), summary([(9 * at, 5)], "p")])
        found.append(alone.decide())
        assert both.decide() == found[-1]
    assert any(isinstance(record, KeysClosed) for record in found)


def test_another_version_of_a_join_begins_anew():
    decider = WaitDecider()
    decider.observe([summary(scrambled(1, 0, 4_000, 50))])
    assert decider.decide() is not None
    decider.observe([summary(scrambled(1, 0, 500, 50), version=2), summary(scrambled(1, 4_000, 500, 50))])
    assert decider.decide() is None
    assert decider.inputs["o"].figures().events == 500
    again = [(8_000 + time_us, key) for time_us, key in scrambled(2, 0, 2_000, 10)]
    decider.observe([summary(again, version=2)])
    record = decider.decide()
    assert record is not None
    assert record.closed[0].to is None, "what the version before had finished may be in force"


def held(shard, events, allowed=100):
    return {**held_summary(1, events, allowed, ["o", "p"]), "shard": shard}


def test_a_join_may_be_refused_again_once_it_is_resumed() -> None:
    decider = WaitDecider()
    decider.observe([held(0, 90), held(1, 100)])
    assert decider.decide() is None
    decider.observe([held(1, 101)])
    record = decider.decide()
    assert record is not None
    assert record.refused == (
        "it holds 101 events in a shard, and its memory is 100 rows; too little is known of its inputs to finish keys "
        "of all of them"
    )
    assert record.closed == ()
    decider = WaitDecider.from_json(decider.to_json())
    decider.observe([summary([(1, 1)])])
    assert decider.decide() is None
    decider.observe([held(0, 5), held(1, 300)])
    assert decider.decide() is not None


def test_a_join_is_refused_by_what_is_expected_when_that_is_first_known_and_later_by_what_is_held() -> None:
    rows = scrambled(1, 0, 4_000, 600)
    for allowed, is_refused in ((500, True), (2_000, False)):
        decider = WaitDecider()
        decider.observe([held(0, 5, allowed), held(1, 5, allowed), summary(rows), summary(rows, "p")])
        record = decider.decide()
        assert record is not None
        assert (record.refused is not None) is is_refused
        assert len(record.closed) == 2
    decider.observe([summary([(4_000, 0)]), held(0, 5, allowed)])
    assert decider.decide() is None, "it is in use by now, and one event is too late"


def of_reading(rows, version, reading):
    return keys_summary(version, "o", monitored(rows), rows[-1][0], reading)


@pytest.mark.parametrize("before", ["orders", "invoices", ""])
def test_a_closing_key_continues_only_where_the_input_is_read_equally(before: str) -> None:
    decider = WaitDecider()
    decider.observe([of_reading(scrambled(1, 0, 4_000, 50), 1, before)])
    record = decider.decide()
    assert record is not None
    assert (record.version, record.closed[0].reading) == (1, before)
    decider = WaitDecider.from_json(decider.to_json())
    rows = [(8_000 + time_us, key) for time_us, key in scrambled(2, 0, 2_000, 10)]
    decider.observe([of_reading(rows, 2, "orders")])
    record = decider.decide()
    assert record is not None
    assert (record.version, record.closed[0].reading) == (2, "orders")
    assert (record.closed[0].to is None) == (before != "invoices"), "or the keys of another reading begin again"

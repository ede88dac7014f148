"""The measured bound of out-of-orderness: the histogram of lags, and the decider against its reference."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import (
    BLOCK_EVENTS,
    NEVER_US,
    AutoLateness,
    DeclarationError,
    Lags,
    LatenessDecider,
    ReorderBuffer,
    StreamDeclaration,
    lateness_summary,
)
from streams.disorder import BLOCKS, bins_of, upper_end_us
from streams.event_time import MOST_SECONDS
from tests.references.streams import LagReport, ReferenceDecider

SECOND = 1_000_000
TEN_YEARS = MOST_SECONDS * SECOND

lags_us = st.one_of(st.integers(0, 40), st.integers(0, 200 * SECOND), st.integers(0, TEN_YEARS))
rules = st.builds(
    lambda ends, start, share: AutoLateness(at_least=ends[0], at_most=ends[1], start=start, late_share=share),
    st.tuples(st.sampled_from([0, 0.5, 3]), st.sampled_from([3, 100, 4_000])),
    st.sampled_from([0, 1, 60, 9_000]),
    st.sampled_from([0, 0.001, 0.1]),
)


def counted(some, limit_us=TEN_YEARS):
    lags = Lags()
    lags.add(np.array(some, np.int64), limit_us)
    return lags


@given(st.lists(lags_us, min_size=1, max_size=60))
def test_bins_are_in_order_and_an_eighth_wide_at_most(some):
    values = np.sort(np.array(some, np.int64))
    bins = bins_of(values)
    ends = [upper_end_us(number) for number in bins.tolist()]
    assert np.all(np.diff(bins) >= 0)
    assert max(bins) < 512
    assert all(value <= end <= value + value // 8 for value, end in zip(values.tolist(), ends, strict=True))


@given(st.lists(st.lists(lags_us, max_size=20), max_size=5), st.randoms(), st.sampled_from([50, SECOND, TEN_YEARS]))
def test_lags_merge_in_any_order(parts, random, limit_us):
    merged, shuffled = Lags(), random.sample(parts, len(parts))
    for part in shuffled:
        merged.merge(Lags.from_json(orjson.loads(orjson.dumps(counted(part, limit_us).to_json()))))
    assert merged == counted([lag for part in parts for lag in part], limit_us)


def test_lags_beyond_the_limit_are_counted_only():
    lags = counted([0, 5, 11, 12], limit_us=10)
    assert (lags.events, lags.beyond, lags.largest_us, lags.bound_us()) == (4, 2, 5, 5)


def test_a_share_of_the_events_may_be_late():
    lags = counted([0] * 990 + [100] * 9 + [9_000])
    assert lags.bound_us() == 9_000
    assert lags.bound_us(0.001) == upper_end_us(int(bins_of(np.array([100]))[0]))
    assert lags.bound_us(0.01) == 0


@given(st.lists(st.integers(0, 30), max_size=30), st.lists(st.integers(0, 30), max_size=30))
def test_a_lag_is_the_newest_time_before_less_the_own(before, times):
    buffer = ReorderBuffer(TEN_YEARS)
    newest = NEVER_US
    for time in before:
        buffer.note_time(time)
        newest = max(newest, time)
    expected = []
    for time in times:
        expected.append(max(newest - time, 0))
        newest = max(newest, time)
    assert buffer.lags_us(np.array(times, np.int64)).tolist() == expected


@st.composite
def steps(draw):
    """What shards say step by step: how many events of which lags, and what they know of earlier decisions."""
    found = []
    for _ in range(draw(st.integers(1, 25))):
        largest = draw(st.sampled_from([0, 30, 5 * SECOND, 90 * SECOND, 5_000 * SECOND]))
        shards = draw(st.integers(1, 3))
        found.append(
            [
                (
                    draw(st.lists(st.integers(0, largest), max_size=4)) + [0] * draw(st.sampled_from([0, 40, 300])),
                    draw(st.integers(0, 9)) > 0,
                )
                for _ in range(shards)
            ]
        )
    return found


@given(steps(), rules, st.randoms())
@settings(deadline=None)
def test_the_decider_equals_its_reference_whatever_the_order_of_shards_and_restarts(steps, declared, random):
    decider, reference = LatenessDecider(), ReferenceDecider()
    in_force, number, before = declared.start_us, 0, (declared.start_us, 0)
    for step in steps:
        told = [
            LagReport(declared, *((in_force, number) if is_up_to_date else before), lags)
            for lags, is_up_to_date in step
        ]
        summaries = [
            lateness_summary(one.rules, one.bound_us, one.number, counted(one.lags_us, declared.at_most_us))
            for one in told
        ]
        decider.observe(random.sample(summaries, len(summaries)))
        found = decider.decide()
        expected = reference.decide(told)
        assert (None if found is None else (found.number, found.bound_us)) == expected
        if found is not None:
            before, (in_force, number) = (in_force, number), (found.bound_us, found.number)
            assert declared.at_least_us <= found.bound_us <= declared.at_most_us
        if random.random() < 0.3:
            decider = LatenessDecider.from_json(orjson.loads(orjson.dumps(decider.to_json())))


def followed(decider, state, lags, declared):
    """The bound and its number after one shard has observed ``lags`` and applied the decision."""
    bound_us, number = state
    decider.observe([lateness_summary(declared, bound_us, number, counted(lags, declared.at_most_us))])
    change = decider.decide()
    return state if change is None else (change.bound_us, change.number)


def test_a_bound_rises_at_once_and_falls_after_enough_events():
    declared, decider, quiet = AutoLateness(), LatenessDecider(), [0] * BLOCK_EVENTS
    state = followed(decider, (declared.start_us, 0), [100 * SECOND], declared)
    assert state == (125 * SECOND, 1)
    state = followed(decider, state, [110 * SECOND], declared)
    assert state == (125 * SECOND, 1), "an eighth of room is left"
    bounds = []
    for _ in range(3 * BLOCKS):
        state = followed(decider, state, quiet, declared)
        bounds.append(state[0] // SECOND)
    assert bounds[: BLOCKS - 1] == [125] * (BLOCKS - 1)
    assert bounds[BLOCKS] == 62
    assert bounds[-1] == 31


def test_a_stream_that_is_declared_anew_begins_with_its_own_bound():
    declared, decider, state = AutoLateness(start=10), LatenessDecider(), (10 * SECOND, 0)
    for lag in (100, 200):
        state = followed(decider, state, [lag * SECOND], declared)
    assert state == (250 * SECOND, 2)
    assert followed(decider, (10 * SECOND, 0), [0], declared) == (250 * SECOND, 1)


def test_a_bound_stays_where_it_can_hardly_fall():
    declared, decider = AutoLateness(), LatenessDecider()
    block = [50 * SECOND] + [0] * (BLOCK_EVENTS - 1)
    state = (declared.start_us, 0)
    for _ in range(4 * BLOCKS):
        state = followed(decider, state, block, declared)
    assert state == (declared.start_us, 0)


def test_an_event_beyond_the_largest_bound_does_not_raise_it():
    declared, decider = AutoLateness(at_most=90), LatenessDecider()
    assert followed(decider, (declared.start_us, 0), [5_000 * SECOND], declared) == (declared.start_us, 0)
    assert decider.seen() == {"events": 1, "largest_us": 0, "beyond": 1}


# --- declarations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("auto", "auto"),
        ({"auto": {}}, "auto"),
        ({"auto": {"at_most": 3600}}, "auto"),
        ({"auto": {"at_most": 30, "start": 5}}, {"auto": {"at_most": 30, "start": 5}}),
    ],
)
def test_a_declaration_says_auto_as_it_was_said(said, kept):
    declaration = StreamDeclaration.from_json({"name": "orders", "lateness": said})
    assert declaration.to_json()["lateness"] == kept
    assert StreamDeclaration.from_json(declaration.to_json()) == declaration


@pytest.mark.parametrize(
    ("members", "start_s"), [({}, 60), ({"at_most": 30}, 30), ({"at_least": 90}, 90), ({"start": 0}, 0)]
)
def test_the_bound_at_the_start_is_within_the_limits(members, start_s):
    declaration = StreamDeclaration.from_json({"name": "orders", "lateness": {"auto": members}})
    assert declaration.lateness_us == start_s * SECOND


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("aut", "or a number of seconds, 'auto', or an object"),
        (True, "or a number of seconds"),
        ([], "or a number of seconds"),
        ({"auto": {}, "more": 1}, "or an object"),
        ({"auto": 5}, "or an object"),
        ({"auto": {"at_mots": 5}}, "did you mean at_most?"),
        ({"auto": {"at_most": "5"}}, "at_most of auto is a number"),
        ({"auto": {"at_most": -1}}, "at_most of auto is -1 seconds; it must be 0 or more"),
        ({"auto": {"start": float("nan")}}, "start of auto is nan seconds"),
        ({"auto": {"at_least": 9, "at_most": 8}}, "at_least of auto is 9 seconds, more than at_most, which is 8"),
        ({"auto": {"late_share": 1}}, "late_share of auto is 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(said, reason):
    with pytest.raises(DeclarationError) as refused:
        StreamDeclaration.from_json({"name": "orders", "lateness": said})
    assert reason in refused.value.message
    assert refused.value.details["field"] == "lateness"


def test_a_derived_stream_has_no_lateness():
    with pytest.raises(DeclarationError, match="lateness says how posted events are read"):
        StreamDeclaration.from_json({"name": "late", "derived": True, "lateness": "auto"})

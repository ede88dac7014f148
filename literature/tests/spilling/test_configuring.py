"""Rules that tune a join: their decisions; they change no result, and save work."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns
from joins.errors import JoinRefused
from literature.costs import best_purge_threshold
from literature.punctuations import Anything, OneOf, Pattern, Range, constant, matches
from literature.spilling import (
    RULES,
    Component,
    Condition,
    Configurator,
    Happening,
    Observed,
    Row,
    Settings,
    SpillingJoin,
    SpillingRules,
    SpillingStats,
    Thresholds,
    default_rows,
)
from literature.spilling.configuring import (
    join_disk_where_it_pays,
    propagate_for_consumer,
    propagate_in_batches,
    purge_by_need,
)
from literature.spilling.reference import ReferencePairJoin
from tests.builders.joins import GeneratedStream, generated

SCAN = SpillingRules(purge="scan", buckets=16)


def observed(consumer="pushed", rules=SCAN, live=0, **counted):
    """Observed counts of a join."""
    return Observed(rules=rules, consumer=consumer, counted=SpillingStats(**counted), live=live)


def settings_of(rows=None, **thresholds):
    """Settings."""
    return Settings(thresholds=Thresholds(**thresholds), rows=default_rows() if rows is None else rows)


def test_the_state_is_purged_as_often_as_costs_least_and_eagerly_where_memory_is_short():
    def threshold(now, rules=SCAN, **counted):
        seen = observed(rules=rules, live=142, **counted)
        return purge_by_need(seen, settings_of(purge_punctuations=now, memory_events=1_000)).thresholds

    calm = {"events": 1_000, "punctuations": 100, "purged": 700, "purges": 10}
    best = round(best_purge_threshold(142, 7.0, 10.0, 16))
    assert best == 11  # the figure of the specification
    assert threshold(1, **calm).purge_punctuations == threshold(400, **calm).purge_punctuations == best
    assert threshold(13, **calm).purge_punctuations == 13  # near enough
    assert threshold(400, **calm, relocations=1).purge_punctuations == 1
    assert threshold(400, **calm, in_memory=800).purge_punctuations == 1
    assert threshold(400, replace(SCAN, purge="indexed"), **calm).purge_punctuations == 1
    assert threshold(7, events=1_000).purge_punctuations == 7  # no counts to learn from
    assert threshold(400, events=1_000, punctuations=100).purge_punctuations == 200  # too rare to tell
    assert threshold(1, **calm).memory_events == 1_000


def test_punctuations_are_propagated_as_their_consumer_wants_them():
    def rows(consumer, rules=SCAN):
        own = Row(Happening.PAIR_READY, (Component.DISK_JOIN,))
        changed = propagate_for_consumer(observed(consumer, rules), settings_of((*default_rows("pair"), own)))
        assert own in changed.rows
        assert [row for row in changed.rows if Component.STATE_PURGE in row.components] == [
            row for row in default_rows() if Component.STATE_PURGE in row.components
        ]
        return {row.happening for row in changed.rows if Component.PROPAGATION in row.components}

    request = Happening.PROPAGATE_REQUEST
    assert rows("blocking") == {Happening.COUNT_ZERO, request}
    assert rows("polling") == {request}
    assert rows("pushed") == {Happening.PROPAGATE_COUNT_REACHED, Happening.PROPAGATE_TIME_EXPIRED, request}
    assert rows("none") == rows("blocking", replace(SCAN, uses_punctuations=False)) == set()


def test_propagations_that_report_nothing_become_rarer():
    def count(now, consumer="pushed", **counted):
        return propagate_in_batches(
            observed(consumer, **counted), settings_of(propagate_punctuations=now)
        ).thresholds.propagate_punctuations

    assert count(4, propagations=10, propagated=4) == 8
    assert count(4, propagations=10, propagated=10) == 4
    assert count(4, propagations=10, propagated=100) == 2
    assert count(1, propagations=10, propagated=100) == 1
    assert count(1_000, propagations=10) == count(1_024, propagations=10) == 1_024
    assert count(4) == count(4, "blocking", propagations=10) == 4


def test_disk_joins_wait_for_more_where_they_find_nothing():
    def count(now, **counted):
        seen = observed(**counted)
        return join_disk_where_it_pays(seen, settings_of(activation_events=now)).thresholds.activation_events

    assert count(1_000) == 1_000
    assert count(1_000, disk_joins=2) == 2_000
    assert count(1_000, disk_joins=2, disk_results=1) == 500
    assert count(100, disk_joins=2, disk_results=1) == count(64, disk_joins=2, disk_results=1) == 64
    assert count(10, disk_joins=2, disk_results=1) == 10
    assert count(10**6, disk_joins=2) == 10**6


KEYS = range(5)
values = st.integers(0, 4)
patterns = st.one_of(
    st.builds(constant, values),
    st.builds(Range, low=values, high=values),
    st.builds(OneOf, st.frozensets(values, max_size=2)),
    st.just(Anything()),
)


@st.composite
def workloads(draw):
    """Steps (is it a closing, input, key, pattern); no step has a key that both inputs closed."""
    steps = []
    closed: list[set[int]] = [set(), set()]
    kinds = st.sampled_from([False] * 4 + [True])
    for is_closing, number, key, pattern in draw(
        st.lists(st.tuples(kinds, st.integers(0, 1), values, patterns), max_size=60)
    ):
        named = {value for value in KEYS if matches(pattern, value)}
        if (named if is_closing else {key}) & closed[0] & closed[1]:
            continue
        if is_closing:
            closed[number] |= named
        steps.append((is_closing, number, key, pattern))
    return steps


def arbitrary(choices):
    """A rule that applies a sequence of changes, whatever the counts; some registries are not usable."""
    left = list(choices)

    def change(seen, current):
        return left.pop(0)(current) if left else current

    return change


def lossy(current):
    """Settings that a join must refuse."""
    return replace(current, rows=(Row(Happening.STATE_FULL, (Component.STATE_PURGE,)),))


def with_thresholds(**changed):
    """A change of thresholds, which is refused if they are not valid."""
    return lambda current: replace(current, thresholds=replace(current.thresholds, **changed))


REFUSED = with_thresholds(purge_punctuations=0)
changes = st.sampled_from(
    [
        lossy,
        REFUSED,
        with_thresholds(purge_punctuations=1),
        with_thresholds(purge_punctuations=9),
        with_thresholds(propagate_punctuations=5, activation_events=1),
        with_thresholds(block_events=1),
        lambda current: replace(current, rows=default_rows("on-zero")),
        lambda current: replace(current, rows=default_rows("none")),
        lambda current: replace(current, rows=default_rows("pull", is_index_eager=True)),
        lambda current: replace(current, rows=default_rows("pair", purges=False)),
    ]
)


def played(join, steps, size):
    """The pairs and propagated patterns that steps lead to, in batches."""
    pairs: list[tuple[int, ...]] = []
    said: list[object] = []
    owners: list[int] = []
    for first in range(0, len(steps), size):
        part = steps[first : first + size]
        closings = [pattern for is_closing, _, _, pattern in part if is_closing]
        rows, place = [], 0
        for is_closing, number, key, _ in part:
            rows.append((Item.CLOSING if is_closing else Item.EVENT, number, place if is_closing else key, 0))
            place += is_closing
        found = join.push(ItemColumns.of(rows), closings)
        pairs += map(tuple, found.members.tolist())
        said += [(one.pattern, one.cause) for one in found.propagated]
        owners += [first + place for place in found.result_items.tolist()]
    return pairs, said, owners


def meaning_of(steps):
    """The pairs that every join finds."""
    meaning = ReferencePairJoin()
    for is_closing, number, key, pattern in steps:
        if is_closing:
            meaning.take_punctuation(number, pattern, 0)
        else:
            meaning.take_event(number, key, 0)
    return sorted(pair[:2] for pair in meaning.pairs)


@settings(max_examples=120)
@given(
    workloads(),
    st.lists(changes, max_size=12),
    st.sampled_from([1, 3, 10]),
    st.sampled_from([2, 6, 10**6]),
    st.sampled_from(["pushed", "polling", "blocking", "none"]),
    st.sampled_from(["scan", "indexed"]),
)
def test_no_rule_changes_a_result_and_refused_ones_change_nothing(steps, chosen, interval, memory, consumer, purge):
    with tempfile.TemporaryDirectory() as folder:
        configurator = Configurator(consumer, interval_items=interval, rules=[arbitrary(chosen), *RULES])
        join = SpillingJoin(
            Path(folder),
            rules=SpillingRules(buckets=2, purge=purge),
            thresholds=Thresholds(memory_events=memory, activation_events=1),
            configurator=configurator,
        )
        pairs, _, _ = played(join, steps, 7)
        pairs += map(tuple, join.idle(0).members.tolist())
        pairs += map(tuple, join.finish().members.tolist())
        assert sorted(pairs) == meaning_of(steps)
        refusals = [one for one in chosen[: len(steps) // interval] if one is lossy or one is REFUSED]
        assert len(configurator.refused) == min(16, len(refusals))


@settings(max_examples=80)
@given(workloads(), st.sampled_from([2, 5]), st.integers(1, 60), st.sampled_from([3, 10**6]))
def test_reports_come_at_the_same_items_whatever_the_cuts_and_reloads(steps, interval, size, memory):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:

        def join_in(folder):
            return SpillingJoin(
                Path(folder),
                rules=SpillingRules(buckets=2, purge="scan"),
                thresholds=Thresholds(memory_events=memory, purge_punctuations=5),
                configurator=Configurator("blocking", interval_items=interval),
            )

        whole, parts = join_in(one), join_in(two)
        found: tuple[list[object], ...] = ([], [], [])
        expected = played(whole, steps, 1_000)
        for first in range(0, len(steps), size):
            for column, more in zip(found, played(parts, steps[first : first + size], 1_000), strict=True):
                column.extend(more)
            saved = parts.dump()
            parts = join_in(two)
            parts.load(*saved)
        assert found[:2] == expected[:2]
        assert parts.stats == whole.stats
        names = ("thresholds", "rows", "configurator", "monitor")
        assert [parts.dump()[0][name] for name in names] == [whole.dump()[0][name] for name in names]


def test_a_decision_takes_effect_at_the_next_item(tmp_path):
    """The report comes after the third item; the fourth one is propagated at once."""
    join = SpillingJoin(tmp_path, rows=default_rows("none"), configurator=Configurator("blocking", interval_items=3))
    closings = [(Item.CLOSING, 0, place, 0) for place in range(5)]
    found = join.push(ItemColumns.of(closings), [constant(7 * place) for place in range(5)])
    assert [said.item for said in found.propagated] == [3, 3, 3, 3, 4]
    assert join.dump()[0]["configurator"]["items"] == 2


def test_a_registry_that_a_rule_makes_is_refused_with_a_reason(tmp_path):
    configurator = Configurator(interval_items=1, rules=[arbitrary([lossy, with_thresholds(purge_punctuations=0)])])
    join = SpillingJoin(tmp_path, configurator=configurator)
    before = join.dump()[0]
    join.push(ItemColumns.of([(Item.EVENT, 0, 1, 0)] * 3))
    assert [reason.split(": ")[1] for reason in configurator.refused] == [
        "no row of the registry relocates a full state once no unused punctuation is left",
        "the threshold purge_punctuations is at least 1, not 0",
    ]
    after = join.dump()[0]
    assert [after[name] for name in ("rows", "thresholds")] == [before[name] for name in ("rows", "thresholds")]
    with pytest.raises(JoinRefused):
        join.tune(rows=[Row(Happening.STATE_FULL, (Component.STATE_RELOCATION,), Condition.UNUSED_PUNCTUATIONS)])
    with pytest.raises(ValueError, match="an item apart"):
        Configurator(interval_items=0)


def work_of(folder, purge, configurator=None):
    """Comparisons and scans of a join of generated streams that purges by scans."""
    items = generated([GeneratedStream(spacing=10)] * 2, 12, seed=1)
    join = SpillingJoin(
        folder,
        rules=SCAN,
        thresholds=Thresholds(purge_punctuations=purge),
        rows=default_rows("none"),
        configurator=configurator,
    )
    said: list[Pattern] = []
    is_closing = items.kinds == Item.CLOSING
    said = [constant(key) for key in items.keys[is_closing].tolist()]
    items.keys[is_closing] = range(len(said))
    pairs = len(join.push(items, said).members)
    return join.stats.comparisons + join.stats.scans, pairs, join


@pytest.mark.compiled
def test_a_join_that_tunes_itself_does_about_as_little_work_as_the_best_threshold(tmp_path):
    fixed = {purge: work_of(tmp_path, purge)[:2] for purge in (1, 5, 10, 20, 400)}
    least = min(work for work, _ in fixed.values())
    for start, factor in ((1, 1.25), (400, 2.0)):  # the first thousands of items are part of it
        work, pairs, join = work_of(tmp_path, start, Configurator("none"))
        assert {found for _, found in fixed.values()} == {pairs}
        assert 4 <= join.dump()[0]["thresholds"]["purge_punctuations"] <= 25
        assert work <= factor * least
        assert work < 0.85 * fixed[start][0]

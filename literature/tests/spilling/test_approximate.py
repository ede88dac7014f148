"""A join with a target recall: nothing spurious, what is lost is counted, and enough is found in nearly all runs."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Cause, Item, ItemColumns, JoinStateError
from literature.punctuations import FinitePunctuation, ProbablePunctuation, Range, Scope, constant
from literature.spilling import (
    ApproximateJoin,
    RecallBudget,
    RecallRules,
    Risk,
    SpillingJoin,
    SpillingRules,
    Thresholds,
    inherited,
)
from literature.spilling.reference import ReferencePairJoin

EVENT, CLOSING, HINT = "event", "closing", "hint"
values = st.integers(0, 4)
hints = st.builds(
    ProbablePunctuation,
    pattern=st.builds(Range, low=values, high=values) | st.builds(constant, values),
    scope=st.builds(Scope, events=st.integers(1, 6), is_rest=st.sampled_from([True, True, False])),
    probability=st.sampled_from([0.5, 0.9, 1.0]),
    reading=st.sampled_from(["claim", "per-event"]),
)


@st.composite
def workloads(draw):
    """Steps (kind, input, key or hint); hints may be false; an input has no event of a key that it closed."""
    kinds = st.sampled_from([EVENT] * 8 + [CLOSING] + [HINT] * 3)
    steps = []
    closed: set[tuple[int, int]] = set()
    for kind, number, key, hint in draw(st.lists(st.tuples(kinds, st.integers(0, 1), values, hints), max_size=50)):
        if kind != HINT and (number, key) in closed:
            continue
        if kind == CLOSING:
            closed.add((number, key))
        steps.append((kind, number, hint if kind == HINT else key))
    return steps


def take(join, step, time):
    """Perform a step; return the pairs found."""
    kind, number, said = step
    if kind == HINT:
        return list(map(tuple, join.announce(number, said, time).found.members.tolist()))
    is_event = kind == EVENT
    items = ItemColumns.of([(Item.EVENT if is_event else Item.CLOSING, number, said if is_event else 0, time)])
    return list(map(tuple, join.push(items, [] if is_event else [constant(said)]).members.tolist()))


def meaning_of(steps):
    """The pairs of an exact join."""
    meaning = ReferencePairJoin()
    for time, (kind, number, said) in enumerate(steps):
        if kind == EVENT:
            meaning.take_event(number, said, time)
        elif kind == CLOSING:
            meaning.take_punctuation(number, constant(said), time)
    return {pair[:2] for pair in meaning.pairs}


@settings(max_examples=200)
@given(
    workloads(), st.sampled_from([2, 5, 10**6]), st.sampled_from([None, 0.5, 0.95]), st.integers(0, 50), st.booleans()
)
def test_nothing_is_spurious_and_all_that_is_lost_is_counted(steps, memory, confidence, border, is_reloaded):
    rules, kept = SpillingRules(buckets=2), RecallRules(target=0.3, confidence=confidence)
    with tempfile.TemporaryDirectory() as folder:
        join = ApproximateJoin(
            SpillingJoin(Path(folder), rules=rules, thresholds=Thresholds(memory_events=memory, block_events=2)), kept
        )
        found = []
        for time, step in enumerate(steps):
            if time == border and is_reloaded:
                saved = join.dump()
                join = ApproximateJoin(SpillingJoin(Path(folder), rules=rules), kept)
                join.load(*saved)
            found += take(join, step, time)
        found += map(tuple, join.join.finish().members.tolist())
        expected = meaning_of(steps)
        assert len(found) == len(set(found)) == join.report.emitted
        assert set(found) <= expected
        assert len(expected) == join.report.emitted + join.report.lost_observed
        assert join.report.measured == (len(found) / len(expected) if expected else 1)


def test_without_a_probable_punctuation_for_the_rest_nothing_is_lost(tmp_path):
    join = ApproximateJoin(SpillingJoin(tmp_path), RecallRules(target=0.01, confidence=None))
    join.push(ItemColumns.of([(Item.EVENT, 0, 1, 0)]))
    sure = ProbablePunctuation(pattern=constant(1), scope=Scope(events=3), probability=1.0)
    hints = (sure, FinitePunctuation(pattern=constant(2), scope=Scope(events=3, is_rest=True)))
    assert [join.announce(1, hint, 1).purged for hint in hints] == [0, 0]
    assert join.announce(1, replace(sure, scope=Scope(us=3, is_rest=True)), 1).purged == 0
    assert join.announce(1, replace(sure, scope=Scope(events=3, is_rest=True)), 1).purged == 1
    assert join.push(ItemColumns.of([(Item.EVENT, 1, 1, 2)])).members.tolist() == []
    assert (join.report.lost_observed, join.report.lost_bound, join.report.measured) == (1, 0, 0)


def test_what_is_purged_follows_the_budget_of_the_specification(tmp_path):
    """lost_bound += n (1 - prob) max |U_v|, while it is at most 1 - target of what is emitted and lost."""
    join = ApproximateJoin(SpillingJoin(tmp_path), RecallRules(target=0.9, confidence=None))
    rows = [(Item.EVENT, 0, key, 0) for key, count in ((1, 1), (2, 3), (3, 9)) for _ in range(count)]
    join.push(ItemColumns.of([*rows, *((Item.EVENT, number, 9, 0) for number in (0, 1) for _ in range(5))]))
    assert join.report.emitted == 25
    said = ProbablePunctuation(
        pattern=Range(low=1, high=3), scope=Scope(events=10, is_rest=True), probability=0.92, reading="per-event"
    )
    assert join.announce(1, said, 1).purged == 1 + 3  # 10 * 0.08 * 3 = 2.4 <= 0.1 * 27.4; 7.2 would be too much
    assert join.report.lost_bound == pytest.approx(2.4)
    assert join.announce(1, said, 1).purged == 0
    found = join.push(ItemColumns.of([(Item.EVENT, 1, 2, 2), (Item.EVENT, 1, 3, 2)]))
    assert len(found.members) == 9
    assert join.report.lost_observed == 3


def test_false_claims_may_lose_a_hard_budget_at_worst(tmp_path):
    rules = RecallRules(target=0.5, confidence=None, most_lost=12)
    join = ApproximateJoin(SpillingJoin(tmp_path), rules)
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in (1, 2, 2, 3)]))
    join.push(ItemColumns.of([(Item.EVENT, number, 9, 0) for number in (0, 1) for _ in range(30)]))

    def claim(key):
        hint = ProbablePunctuation(pattern=constant(key), scope=Scope(events=5, is_rest=True), probability=0.999)
        return join.announce(1, hint, 1).purged

    assert [claim(1), claim(2), claim(3)] == [1, 0, 1]  # 5 * 1, then 5 * 2 would be 15, 5 * 1


def test_what_is_said_of_results_inherits_probabilities(tmp_path):
    join = ApproximateJoin(SpillingJoin(tmp_path), RecallRules(target=0.9))

    def over(number, key, probability):
        scope = Scope(events=1, is_rest=True)
        said = join.announce(
            number, ProbablePunctuation(pattern=constant(key), scope=scope, probability=probability), 1
        )
        return said.over and (said.over.cause, round(said.over.probability, 9))

    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in (1, 2)] + [(Item.CLOSING, 1, 0, 0)]), [constant(2)])
    assert over(0, 1, 0.75) is None  # an event of it is stored
    assert over(1, 1, 0.75) == (Cause.REGULAR, 0.5)
    assert over(0, 2, 0.75) == (Cause.REGULAR, 0.75)  # the other input has closed it for sure
    assert over(0, 7, 0.75) == (Cause.IMMEDIATE, 0.75)
    assert inherited(Cause.REGULAR, 0.3, 0.4) == 0


def test_counts_of_purged_events_are_forgotten_once_the_key_is_closed(tmp_path):
    join = ApproximateJoin(SpillingJoin(tmp_path), RecallRules(target=0.9))
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(100)]))
    scope = Scope(events=10, is_rest=True)
    said = ProbablePunctuation(pattern=Range(low=0, high=99), scope=scope, probability=1.0)
    assert join.announce(1, said, 0).purged == 100
    join.push(ItemColumns.of([(Item.CLOSING, 1, 0, 0), (Item.CLOSING, 1, 1, 0)]), [Range(high=97), constant(98)])
    assert join.dump()[0]["recall"]["purged"] == [[[99, 1]], []]


def run_of(seed, rules, risk):
    """A run that uses the whole budget: 900 results, then a calibrated hint, and no later results.

    Returns:
        The number of purged events, and the measured recall.
    """
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        join = ApproximateJoin(SpillingJoin(Path(folder), rules=SpillingRules(buckets=4)), rules)
        join.push(ItemColumns.of([(Item.EVENT, number, 999, 0) for number in (0, 1) for _ in range(30)]))
        join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(20) for _ in range(risk.most)]))
        hint = ProbablePunctuation(
            pattern=Range(low=0, high=19),
            scope=Scope(events=risk.events, is_rest=True),
            probability=1 - risk.doubt,
            reading="claim" if risk.is_claim else "per-event",
        )
        purged = join.announce(1, hint, 1).purged
        wrong = (chance.random() if risk.is_claim else chance.random(risk.events)) < risk.doubt
        keys = np.where(np.broadcast_to(wrong, risk.events), chance.integers(0, 20, risk.events), 1_000)
        join.push(ItemColumns.of([(Item.EVENT, 1, int(key), 2) for key in keys]))
        return purged, join.report.measured


def largest(rules, *, most, is_claim):
    """The risk of the most doubtful hint of 200 events by which a run still purges."""
    doubts = [step / 2_000 for step in range(1, 2_000)]
    risks = [Risk(events=200, doubt=doubt, most=most, is_claim=is_claim) for doubt in doubts]
    return [risk for risk in risks if RecallBudget().allows(risk, rules, 900)][-1]


@pytest.mark.compiled
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("target", [0.8, 0.95])
def test_the_target_is_reached_in_95_percent_of_runs_even_if_all_is_spent(most, target):
    rules = RecallRules(target=target, confidence=0.95)
    risk = largest(rules, most=most, is_claim=False)
    runs = [run_of(seed, rules, risk) for seed in range(150)]
    assert all(purged == 20 * most for purged, _ in runs)
    assert np.mean([recall >= target for _, recall in runs]) >= 0.95
    assert min(recall for _, recall in runs) < 1


@pytest.mark.compiled
def test_the_expected_loss_alone_would_not_reach_it():
    """Half of the runs lose more than they expect."""
    rules = RecallRules(target=0.95, confidence=None)
    runs = [run_of(seed, rules, largest(rules, most=1, is_claim=False)) for seed in range(150)]
    assert 0.3 < np.mean([recall >= 0.95 for _, recall in runs]) < 0.8


def sessions(seed, rules):
    """Run a join over keys with bursts of events, each announced as over afterwards by a calibrated source.

    Returns:
        The measured recall, and the number of purged events.
    """
    chance = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        join, purged, late = ApproximateJoin(SpillingJoin(Path(folder), rules=SpillingRules(buckets=1)), rules), 0, []
        for key in range(80):
            join.push(ItemColumns.of([(Item.EVENT, number, key, key) for number in (0, 1, 0, 1)]))
            probability = float(chance.choice([0.9, 0.99, 0.999]))
            scope = Scope(events=2, is_rest=True)  # a key has at most two events more
            hint = ProbablePunctuation(pattern=constant(key), scope=scope, probability=probability)
            purged += join.announce(1, hint, key).purged
            late += [key] * (2 if chance.random() > probability else 0)
            while late and chance.random() < 0.1:
                join.push(ItemColumns.of([(Item.EVENT, 1, late.pop(0), key)]))
        join.push(ItemColumns.of([(Item.EVENT, 1, key, 200) for key in late]))
        return join.report.measured, purged


@pytest.mark.compiled
@pytest.mark.parametrize(("target", "least"), [(0.9, 80), (0.97, 1)])
def test_sessions_keep_their_target_recall(target, least):
    runs = [sessions(seed, RecallRules(target=target)) for seed in range(40)]
    assert np.mean([recall >= target for recall, _ in runs]) >= 0.95
    assert min(purged for _, purged in runs) >= least  # of 160 stored events
    assert min(recall for recall, _ in runs) < 1


def test_a_state_without_its_recall_is_refused(tmp_path):
    join = ApproximateJoin(SpillingJoin(tmp_path), RecallRules(target=0.9))
    with pytest.raises(JoinStateError, match="the recall"):
        join.load(*SpillingJoin(tmp_path).dump())


def test_shares_are_shares():
    for target, confidence in ((0.0, None), (1.0, None), (0.5, 1.0)):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            RecallRules(target=target, confidence=confidence)

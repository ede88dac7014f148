"""The index follows the questions: it moves when the mix changes, and not when it does not."""

import numpy as np
import pytest

from aggregates.asking import Question
from aggregates.asking.costs import CostModel
from aggregates.asking.tuning import PERIOD, Tuner
from tests.builders.questions import ATTRIBUTES, VALUES, held, index_of

N = {"n": VALUES["n"]}
CAPS = np.array([11, 11, 11])
ROWS = 50_000


def filled(**options):
    index = index_of(held(ROWS), **options)
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 2_048, ROWS) for name in ATTRIBUTES}
    index.insert(np.arange(ROWS), columns)
    return index


def ask(index, rng, mix, count):
    """Questions whose filters have shares; returns the comparisons of each."""
    names, shares = list(mix), list(mix.values())
    work = []
    for choice in rng.choice(len(names), count, p=shares):
        where = {name: int(rng.integers(0, 2_048)) for name in names[choice]}
        answer = index.ask(Question(values=N, where=where))
        work.append(answer.compared)
    return work


STAGES = [
    {("user",): 0.3, ("user", "region"): 0.4, ("kind",): 0.3},
    {("user",): 0.4, ("user", "region"): 0.1, ("region",): 0.3, ("kind",): 0.2},
    {("user",): 0.3, ("user", "region"): 0.4, ("region", "kind"): 0.25, ("kind",): 0.05},
]


@pytest.mark.compiled
def test_the_configuration_follows_the_questions_in_three_stages():
    index, rng = filled(), np.random.default_rng(2)
    configurations, moved = [], []
    for stage in STAGES:
        before = index.migrations
        ask(index, rng, stage, 8 * PERIOD)
        configurations.append(index.explain()["configuration"])
        moved.append(index.migrations - before)
    assert configurations[0]["region"] == 0 < configurations[1]["region"]
    assert all(1 <= count <= 3 for count in moved)
    explained = index.explain()
    assert explained["cost_ns"]["best"] <= explained["cost_ns"]["present"] <= 1.3 * explained["cost_ns"]["best"]
    assert {"where": ["user", "region"], "share": pytest.approx(0.4, abs=0.1), "events": ROWS} in explained["asked_for"]


@pytest.mark.compiled
def test_a_tuned_index_compares_less_than_half_of_one_that_keeps_its_first_configuration():
    work = {}
    for is_tuned in (True, False):
        index, rng = filled(model=CostModel(1.0, 1.0, 0.1, moving=2.0)), np.random.default_rng(2)
        ask(index, rng, STAGES[0], 12 * PERIOD)  # until what was expected before is forgotten
        index._is_tuned = is_tuned
        work[is_tuned] = sum(sum(ask(index, rng, stage, 8 * PERIOD)) for stage in (*STAGES[1:], STAGES[0]))
    assert work[True] * 2 < work[False]


def test_a_stable_mix_of_questions_causes_no_further_move():
    tuner, rng = Tuner(3), np.random.default_rng(4)
    bits: tuple[int, ...] = (0, 0, 0)
    moves = []
    for assessment in range(100):
        shares = np.array([0.4, 0.1, 0.3, 0.2]) * (1 + rng.uniform(-0.01, 0.01, 4))
        for pattern, count in zip((1, 3, 2, 4), np.round(shares / shares.sum() * PERIOD), strict=True):
            for _ in range(int(count)):
                tuner.note_question(pattern, ROWS)
        found = tuner.assess(bits, ROWS, CAPS)
        if found.is_worthwhile:
            bits = found.choice.configuration
            moves.append(assessment)
    assert moves
    assert max(moves) <= 3


def test_a_move_has_to_pay_for_itself():
    tuner = Tuner(3)
    tuner.note_events(10**9)
    for _ in range(PERIOD):
        tuner.note_question(1, 100)
    found = tuner.assess((0, 0, 0), 100, CAPS)
    assert not found.is_worthwhile
    assert found.choice.configuration == (0, 0, 0)


def test_before_any_question_each_attribute_alone_is_expected():
    index = filled()
    assert sum(index.explain()["configuration"].values()) == 12  # one partition for 8 events or more
    assert [kind["where"] for kind in index.explain()["asked_for"]] == [["kind"], ["region"], ["user"]]


def test_saving_keeps_what_was_observed():
    index, rng = filled(), np.random.default_rng(2)
    ask(index, rng, STAGES[0], PERIOD + 40)
    again = index_of(held(ROWS))
    again.load(*index.dump())
    assert again.dump() == index.dump()
    members = ("configuration", "asked_for", "questions", "migrations")
    assert [again.explain()[name] for name in members] == [index.explain()[name] for name in members]
    assert (
        ask(index, np.random.default_rng(9), STAGES[0], PERIOD)[-1]
        == ask(again, np.random.default_rng(9), STAGES[0], PERIOD)[-1]
    )

"""Bounds of shares by samples, against exact fractions and against draws; which attributes and sources are worth it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from literature.costs import InputRates
from literature.punctuations import (
    Candidate,
    Saving,
    SourceChoice,
    Weights,
    constant,
    greatest_share,
    least_share,
    matches,
    net_gain,
    sampled_punctuation,
    saving_of,
    unanimous_share,
    with_punctuations,
    worthwhile,
)
from literature.punctuations.sampling import tail


def exact_tail(successes, sample, share):
    """The tail, computed with exact fractions."""
    return sum(
        math.comb(sample, one) * share**one * (1 - share) ** (sample - one) for one in range(successes, sample + 1)
    )


@settings(max_examples=200)
@given(st.integers(1, 60), st.data(), st.fractions(0, 1, max_denominator=50))
def test_the_tail_is_the_sum_of_the_exact_terms(sample, data, share):
    successes = data.draw(st.integers(0, sample))
    assert tail(successes, sample, float(share)) == pytest.approx(
        float(exact_tail(successes, sample, share)), abs=1e-11
    )


@settings(max_examples=200)
@given(st.integers(1, 60), st.data(), st.sampled_from([0.001, 0.05, 0.3, 0.9]))
def test_the_bound_is_where_the_tail_is_the_risk(sample, data, risk):
    successes = data.draw(st.integers(0, sample))
    share = least_share(successes, sample, risk)
    if successes == 0:
        assert share == 0
    else:
        assert float(exact_tail(successes, sample, Fraction(share))) == pytest.approx(risk, abs=1e-9)
    assert least_share(successes, sample, risk) + greatest_share(sample - successes, sample, risk) == pytest.approx(1)


def test_known_bounds():
    assert unanimous_share(20, 0.05) == pytest.approx(0.861, abs=5e-4)  # the example of the specification
    assert least_share(20, 20, 0.05) == unanimous_share(20, 0.05)
    assert least_share(8, 10, 0.025) == pytest.approx(0.4439, abs=5e-5)  # 95 % on both sides: 0.4439 to 0.9748
    assert greatest_share(8, 10, 0.025) == pytest.approx(0.9748, abs=5e-5)
    for arguments in ((0, 0, 0.5), (3, 2, 0.5), (1, 2, 0.0), (1, 2, 1.0)):
        with pytest.raises(ValueError, match="a sample has events"):
            least_share(*arguments)


def test_a_sample_of_a_buffer_says_too_much_no_more_often_than_its_risk():
    """For a buffer of 50 events of which some have the key: the bound is above the truth in at most 5 % of samples."""
    absent = constant(1)
    for bad in (1, 3, 10, 25):
        keys = [1] * bad + [0] * (50 - bad)
        kept = [least_share(successes, 20, 0.05) for successes in range(21)]
        truth = 1 - bad / 50
        weights = [math.comb(20, one) * truth**one * (1 - truth) ** (20 - one) for one in range(21)]
        assert sum(weight for weight, share in zip(weights, kept, strict=True) if share > truth) <= 0.05
        said = sampled_punctuation(keys, absent, sample=20, risk=0.05, chance=np.random.default_rng(bad))
        drawn = np.random.default_rng(bad).integers(0, 50, 20).tolist()
        assert said.probability == kept[sum(not matches(absent, keys[place]) for place in drawn)]
        assert (said.scope.events, said.reading) == (50, "per-event")


RATES = InputRates(events=100.0, window=20.0, life=1.0)


def saved(inputs, punctuations):
    """The saving by punctuations of the second input, with which events of the first stay for half a life."""
    return saving_of(inputs, with_punctuations(inputs, 1, punctuations, [1.0, math.inf]), event_bytes=10)


def test_what_punctuations_save_follows_the_cost_model():
    saving = saved([RATES, RATES], 1.0)
    assert saving.held_bytes == pytest.approx(10 * (100 * 20 - 100 * 0.5))  # Little's law: 20 s, or half a life
    assert saving.work > 0
    assert saved([RATES, RATES], 1e6).work < 0
    endless = InputRates(events=1.0)
    assert saved([endless, RATES], 1.0).held_bytes == math.inf
    assert saved([endless, endless], 1.0) == Saving(held_bytes=0.0, work=0.0)


def test_only_keys_that_are_used_get_punctuations_and_only_if_they_pay():
    def of(name, held, delay=0.0):
        return Candidate(attribute=name, saving=Saving(held_bytes=held, work=5), punctuations=10, cost=2, delay=delay)

    candidates = [of("order", 100), of("unused", 1e9), of("customer", 10), of("slow", 100, delay=90), of("item", 200)]
    weights = Weights(byte=1, work=2, latency=1)
    assert net_gain(of("order", 100), weights) == 100 + 2 * 5 - 10 * 2
    assert worthwhile(candidates, ["order", "customer", "slow", "item"], weights) == ["item", "order"]
    assert worthwhile(candidates, ["customer"], Weights(byte=2, work=2)) == ["customer"]


def test_a_source_that_purges_nothing_is_disabled_and_tried_again():
    choice = SourceChoice(patience=10, rest=2)
    choice.note("buffer", 9, 0)
    choice.note("buffer", 9, 1)
    choice.note("buffer", 9, 0)
    assert choice.is_enabled("buffer")
    choice.note("buffer", 1, 0)
    assert not choice.is_enabled("buffer")
    again = SourceChoice(patience=10, rest=2)
    again.load(choice.dump())
    assert [again.evaluate(), again.evaluate(), again.evaluate()] == [[], ["buffer"], []]
    assert again.is_enabled("buffer")
    for_ever = SourceChoice(patience=1)
    for_ever.note("terminal", 1, 0)
    assert [for_ever.evaluate() for _ in range(3)] == [[], [], []]
    assert not for_ever.is_enabled("terminal")

"""Attributes of simulated events."""

from collections.abc import Callable

import numpy as np
import pytest

from workflows import (
    Attribute,
    BooleanAttribute,
    ChoiceAttribute,
    ConstantAttribute,
    ExponentialAttribute,
    IntegerAttribute,
    InvalidWorkflow,
    NormalAttribute,
    TextAttribute,
    ThresholdAttribute,
    UniformAttribute,
)

ROWS = 20_000


def test_integers_are_uniform_over_their_domain() -> None:
    values = IntegerAttribute("quantity", 4).sample(np.random.default_rng(1), ROWS)
    assert set(values) == {1, 2, 3, 4}
    assert all(type(value) is int for value in values)
    assert np.bincount(values)[1:] / ROWS == pytest.approx(0.25, abs=0.02)


def test_texts_are_uniform_over_their_domain() -> None:
    values = TextAttribute("region", 2).sample(np.random.default_rng(1), ROWS)
    assert set(values) == {"region-1", "region-2"}
    assert values.count("region-1") / ROWS == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("fail_ratio", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_threshold_fails_as_often_as_asked(fail_ratio: float) -> None:
    attribute = ThresholdAttribute(names=("price",), fail_ratio=fail_ratio)
    values = np.array(attribute.sample(np.random.default_rng(1), ROWS))
    assert values.min() >= 1
    assert values.max() <= 1_000
    assert np.mean(values <= 200) == pytest.approx(fail_ratio, abs=0.02 if 0 < fail_ratio < 1 else 0)


def test_a_fifth_failing_is_plainly_uniform() -> None:
    attribute = ThresholdAttribute(names=("price",), fail_ratio=0.2)
    values = np.array(attribute.sample(np.random.default_rng(1), ROWS))
    assert np.histogram(values, bins=10, range=(1, 1_001))[0] / ROWS == pytest.approx(0.1, abs=0.01)


def test_integers_may_begin_elsewhere() -> None:
    values = IntegerAttribute("level", 3, -1).sample(np.random.default_rng(1), ROWS)
    assert set(values) == {-1, 0, 1}


def test_choices_come_by_their_weights() -> None:
    values = ChoiceAttribute("channel", ("web", 7, True), (1.0, 0.0, 3.0)).sample(np.random.default_rng(1), ROWS)
    assert set(values) == {"web", True}
    assert values.count("web") / ROWS == pytest.approx(0.25, abs=0.02)
    alike = ChoiceAttribute("channel", ("web", 7)).sample(np.random.default_rng(1), ROWS)
    assert alike.count(7) / ROWS == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("attribute", "mean", "deviation"),
    [
        (UniformAttribute("x", -1.0, 3.0), 1.0, 4 / 12**0.5),
        (NormalAttribute("x", 70.0, 2.0), 70.0, 2.0),
        (ExponentialAttribute("x", 5.0), 5.0, 5.0),
        (BooleanAttribute("x", 0.2), 0.2, 0.4),
        (ConstantAttribute("x", 2.5), 2.5, 0.0),
    ],
)
def test_numbers_have_their_distribution(attribute: Attribute, mean: float, deviation: float) -> None:
    values = attribute.sample(np.random.default_rng(1), ROWS)
    assert attribute.names == ("x",)
    assert all(type(value) in (float, bool) for value in values)
    numbers = np.array(values, np.float64)
    assert numbers.mean() == pytest.approx(mean, abs=0.05 * max(1.0, deviation))
    assert numbers.std() == pytest.approx(deviation, abs=0.05 * max(1.0, deviation))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BooleanAttribute("x", 1.1), "x: share 1.1 is not between 0 and 1"),
        (lambda: ChoiceAttribute("x", ()), "x: a choice needs at least one value"),
        (lambda: ChoiceAttribute("x", ("a",), (1.0, 2.0)), "x: 1 values need as many weights, got 2"),
        (lambda: ChoiceAttribute("x", ("a",), (-1.0,)), "x: weights are 0 or more"),
        (lambda: ChoiceAttribute("x", ("a",), (float("inf"),)), "x: weights are 0 or more"),
        (lambda: UniformAttribute("x", 2.0, 1.0), "x: 2.0 to 1.0 is not a range"),
        (lambda: NormalAttribute("x", 0.0, -1.0), "x: a deviation is 0 or more"),
        (lambda: NormalAttribute("x", float("nan"), 1.0), "x: numbers lie between"),
        (lambda: NormalAttribute("x", 1.0, float("inf")), "x: numbers lie between -1e300 and 1e300, got inf"),
        (lambda: ExponentialAttribute("x", 0.0), "x: a mean is above 0"),
        (lambda: IntegerAttribute("x", 2**60), "x: whole numbers lie between"),
    ],
)
def test_impossible_distributions_are_refused(build: Callable[[], Attribute], message: str) -> None:
    with pytest.raises(InvalidWorkflow) as caught:
        build()
    assert message in caught.value.message


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="at least 1 value, got 0"):
        IntegerAttribute("quantity", 0)
    with pytest.raises(InvalidWorkflow, match="region: a domain"):
        TextAttribute("region", -1)
    with pytest.raises(InvalidWorkflow, match=r"fail ratio 1\.5"):
        ThresholdAttribute(names=("price",), fail_ratio=1.5)
    with pytest.raises(InvalidWorkflow, match="1 <= threshold < highest"):
        ThresholdAttribute(names=("price",), fail_ratio=0.5, threshold=10, highest=10)

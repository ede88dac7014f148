"""Attributes of simulated events."""

import numpy as np
import pytest

from workflows import IntegerAttribute, InvalidWorkflow, TextAttribute, ThresholdAttribute

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


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="at least 1 value, got 0"):
        IntegerAttribute("quantity", 0)
    with pytest.raises(InvalidWorkflow, match="region: a domain"):
        TextAttribute("region", -1)
    with pytest.raises(InvalidWorkflow, match=r"fail ratio 1\.5"):
        ThresholdAttribute(names=("price",), fail_ratio=1.5)
    with pytest.raises(InvalidWorkflow, match="1 <= threshold < highest"):
        ThresholdAttribute(names=("price",), fail_ratio=0.5, threshold=10, highest=10)

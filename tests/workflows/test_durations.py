"""How durations are written."""

import pytest

from workflows import (
    ExponentialDuration,
    FixedDuration,
    InvalidWorkflow,
    NormalDuration,
    UniformDuration,
    parse_duration_us,
)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5 min", 300_000_000),
        ("5m", 300_000_000),
        (" 5 minutes ", 300_000_000),
        ("1.5 h", 5_400_000_000),
        ("2 hours", 7_200_000_000),
        ("200 ms", 200_000),
        ("7us", 7),
        ("0 s", 0),
        ("1 sec", 1_000_000),
        ("3 d", 259_200_000_000),
        ("1 week", 604_800_000_000),
        ("0.0000005 s", 1),
    ],
)
def test_durations_are_numbers_with_a_unit(text: str, us: int) -> None:
    assert parse_duration_us(text) == us


@pytest.mark.parametrize("text", ["", "5", "min", "-5 min", "5 moons", "1e3 s", "5 min 3 s", "٣ s", "5 M"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidWorkflow, match="is not a duration; write a number and a unit"):
        parse_duration_us(text)


def test_durations_are_bounded() -> None:
    assert parse_duration_us("3660 d") == 3_660 * 86_400_000_000
    with pytest.raises(InvalidWorkflow, match="at most ten years"):
        parse_duration_us("3661 d")
    with pytest.raises(InvalidWorkflow, match="between 0 and ten years, got -1"):
        FixedDuration(-1)
    with pytest.raises(InvalidWorkflow, match="the smaller value before the larger"):
        UniformDuration(2, 1)
    with pytest.raises(InvalidWorkflow, match="is above 0"):
        ExponentialDuration(0)
    with pytest.raises(InvalidWorkflow, match="between 0 and ten years"):
        NormalDuration(1, 10**18)

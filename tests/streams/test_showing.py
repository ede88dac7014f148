"""Values in messages stay readable."""

from streams.showing import shown


def test_short_values_are_shown_in_full() -> None:
    assert shown("abc") == "'abc'"
    assert shown([1, None]) == "[1, None]"


def test_long_and_deep_values_are_cut() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert len(shown("x" * 1_000)) <= 60
    assert len(shown(deep)) <= 60

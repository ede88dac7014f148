"""Process trees are valid once constructed."""

from collections.abc import Callable

import pytest

from workflows import (
    Activity,
    ExclusiveChoice,
    IntegerAttribute,
    InvalidWorkflow,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    ThresholdAttribute,
    activity_names,
    iterate_activities,
)

A, B = Activity("A"), Activity("B")


def test_activities_come_from_left_to_right() -> None:
    tree = Sequence((A, Parallel((B, Loop(body=Activity("C"), redo=A))), ExclusiveChoice((Silent(), Activity("D")))))
    assert [activity.name for activity in iterate_activities(tree)] == ["A", "B", "C", "A", "D"]
    assert activity_names(tree) == ("A", "B", "C", "D")


def test_equal_trees_are_equal_values() -> None:
    assert Sequence((A, Loop(body=B, repetitions=3))) == Sequence((Activity("A"), Loop(body=B, repetitions=3)))
    assert len({Parallel((A, B)), Parallel((A, B)), Parallel((B, A))}) == 2


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: Activity(""), "needs a name"),
        (
            lambda: Activity(
                "A", (IntegerAttribute("price", 5), ThresholdAttribute(names=("x", "price"), fail_ratio=0))
            ),
            "two attributes share a name among price, x, price",
        ),
        (lambda: Sequence(()), "a sequence needs at least one part"),
        (lambda: Parallel(()), "a parallel block needs"),
        (lambda: ExclusiveChoice(()), "a choice needs"),
        (lambda: ExclusiveChoice((A, B), (1.0,)), "2 branches needs the same number of probabilities, not 1"),
        (lambda: ExclusiveChoice((A, B), (0.5, 0.6)), "sum to 1"),
        (lambda: ExclusiveChoice((A, B), (-0.5, 1.5)), "between 0 and 1"),
        (lambda: Loop(body=A, repetitions=0), "at least once, got 0"),
        (lambda: Loop(body=A, redo=B, repetitions=1), "never reaches its redo part"),
        (lambda: Loop(body=A, again=1.0), "below 1, got 1.0"),
    ],
)
def test_contradictions_are_refused(build: Callable[[], ProcessTree], reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        build()

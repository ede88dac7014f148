from dataclasses import replace

import pytest

from constraints import ConstraintSet, Exclusive, Prior, Settings, guard_features, guarded_exercise
from constraints.exercises import guarded
from streams.kernels.recording import recorded

SMALL = ConstraintSet.of([Exclusive("B", "L"), Prior("A", "X")])
CAPPED = replace(SMALL, settings=Settings(max_monitor_states=2))


@pytest.mark.parametrize(
    ("constraint_set", "ties", "features"),
    [
        (SMALL, "log", {"guard"}),
        (CAPPED, "log", {"guard", "bits"}),
        (CAPPED, "simultaneous", {"guard"}),
    ],
)
def test_a_constraint_set_says_what_its_guard_needs(constraint_set, ties, features):
    assert guard_features(constraint_set, ties=ties) == features


def test_the_exercise_names_its_features_in_one_order():
    assert guarded_exercise() == "constraints.exercises:guarded:shared,runs,idle,saved,guard,bits"
    assert guarded_exercise({"guard", "shared"}) == "constraints.exercises:guarded:shared,guard"


@pytest.mark.parametrize(("features", "matches"), [("shared", 6), ("shared,guard", 12), ("runs,guard,bits", 27)])
def test_patterns_match_with_and_without_each_guard(features, matches):
    found = []
    recorded(lambda: found.append(guarded(features)))
    assert found == [matches]


@pytest.mark.compiled
def test_a_guard_needs_no_other_engine():
    def kernels(features):
        return {needed.name for needed in recorded(lambda: guarded(features))}

    assert not any(".run_rows." in name for name in kernels("shared,guard"))
    assert kernels("shared,guard") <= kernels("shared,runs,guard,bits")

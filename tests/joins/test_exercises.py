"""The exercise of joins reaches their kernels."""

from joins import JOIN_EXERCISE
from joins.exercises import joined
from shards.kinds.joins import JoinKind
from streams.compiling import run_exercise


def test_its_name_leads_to_it() -> None:
    assert JoinKind.exercise == JOIN_EXERCISE
    run_exercise(JOIN_EXERCISE)
    assert joined() == 100

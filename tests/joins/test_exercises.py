"""The exercise of joins stands for their kernels."""

from joins import JOIN_EXERCISE
from joins.exercises import joined
from service.trials.matching import EVERY_JOIN
from streams.compiling import run_exercise


def test_its_name_leads_to_it() -> None:
    assert EVERY_JOIN == JOIN_EXERCISE
    run_exercise(JOIN_EXERCISE)
    assert joined() == 100

"""The exercise of questions reaches their kernels."""

from aggregates.asking import QUESTIONS_EXERCISE
from aggregates.asking.exercises import asked
from streams.compiling import run_exercise


def test_its_name_leads_to_it():
    run_exercise(QUESTIONS_EXERCISE)
    assert asked() == 8

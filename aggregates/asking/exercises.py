"""A small index that calls all kernels of questions, to compile them (``streams.compiling``)."""

from __future__ import annotations

import numpy as np

from aggregates.asking.question_index import QuestionIndex
from aggregates.asking.questions import AskedValue, HeldWindow, Question

QUESTIONS_EXERCISE = "aggregates.asking.exercises:asked"


def asked() -> int:
    """Insert events, late ones too, move them, and answer by scanning and by probing; returns a count."""
    index = QuestionIndex(HeldWindow(attributes=("a", "b"), measures=("c",), span_us=1_000), is_tuned=False)
    times_us = np.arange(200)
    for first in (100, 0):
        index.insert(times_us + first, {"a": times_us % 20, "b": times_us % 7, "c": times_us})
    values = {"n": AskedValue("count"), "total": AskedValue("sum", "c")}
    index.configure({"a": 4, "b": 1})
    index.tune()
    answers = [index.ask(Question(by=("b",), where={"a": 3}, values=values, window_us=one)) for one in (None, 20)]
    return sum(len(answer.groups) for answer in answers)

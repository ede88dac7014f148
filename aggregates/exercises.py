"""Exercises that compile all kernels with a small aggregate and a small index of questions (``streams.compiling``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aggregates.asking import AskedValue, HeldWindow, Question, QuestionIndex
from aggregates.columns import EventColumns, ScalarColumn, group_hash
from aggregates.document import read_aggregate
from aggregates.running import AggregateRun
from aggregates.steps import InBounds
from aggregates.windows import Window

AGGREGATE_EXERCISE = "aggregates.exercises:aggregated"


def aggregated() -> int:
    """Run small aggregates that call all kernels of the package (an exercise, see ``streams.compiling``).

    Return the number of derived events and of groups in answers.
    """
    values = {"n": "count()", "mean": "avg(x)", "least": "min(x)"}
    body = read_aggregate({"of": "x", "by": ["g"], "values": values, "window": "5 us"})
    run = AggregateRun(body, lambda columns, size: np.arange(size) % 2 == 0, is_simultaneous=True)
    ranged = AggregateRun(body, InBounds(lambda columns, size: np.ones(size, np.bool_)), bounds=[("n", 1.0, np.inf)])
    fixed = AggregateRun(replace(body, window=Window("tumbling", 5, 5)), None)
    fixed.load(*fixed.dump())
    count = check_questions() + len(ranged.process(_events(0)))
    for first in (0, 10):
        count += len(run.process(_events(first)))
        run.load(*run.dump())
    return count + len(run.advance_time(40))


def _events(first_us: int) -> EventColumns:
    numbers = np.arange(20)
    groups, ids = [n % 3 for n in range(20)], [f"e{n}" for n in range(20)]
    return EventColumns(
        times_us=first_us + numbers // 4,
        hashes=np.array([group_hash((group,)) for group in groups], np.uint64),
        by=[groups],
        keys=["k"] * 20,
        key_hashes=np.ones(20, np.uint64),
        ids=ids,
        arguments=[ScalarColumn.of([n / 8 for n in range(20)])],
        clocks_us=first_us + numbers // 4,
        newest_us=first_us + 4,
    )


def check_questions() -> int:
    """Fill and reconfigure an index and ask questions, to compile their kernels. Return the number of groups."""
    index = QuestionIndex(HeldWindow(attributes=("a", "b"), measures=("c",), span_us=1_000), is_tuned=False)
    times_us = np.arange(200)
    for first in (100, 0):
        index.insert(times_us + first, {"a": times_us % 20, "b": times_us % 7, "c": times_us})
    values = {"n": AskedValue("count"), "total": AskedValue("sum", "c")}
    index.configure({"a": 4, "b": 1})
    index.tune()
    filters: Sequence[Mapping[str, int]] = ({"a": 3}, {})  # the first probes the index, the second scans it
    answers = [index.ask(Question(by=("b",), where=where, values=values)) for where in filters]
    return sum(len(answer.groups) for answer in answers)

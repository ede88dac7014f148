"""Answers of several shards merge into the answer of one."""

import json
from dataclasses import replace

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates.asking import Answer, AskedValue, Question, merged
from tests.builders.questions import VALUES, data, held, index_of, insert, questions


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 30), data(), st.integers(0, 2)), max_size=60),
    st.lists(questions(), min_size=1, max_size=4),
)
def test_merged_answers_equal_the_answer_of_one_index(events, asked):
    one, several = index_of(held(100)), [index_of(held(100), (1, 1, 2)) for _ in range(3)]
    insert(one, [event[:2] for event in events])
    for number, index in enumerate(several):
        insert(index, [event[:2] for event in events if event[2] == number])
    newest_us = max((event[0] for event in events), default=0)
    for drawn in asked:
        question = replace(drawn, until_us=max(newest_us, drawn.until_us or 0))
        answers = [Answer.from_json(json.loads(json.dumps(index.ask(question).to_json()))) for index in several]
        whole = one.ask(question)
        assert merged(answers).rows() == whole.rows()
        assert (merged(answers).events, merged(answers).end_us) == (whole.events, question.until_us)


def test_sums_keep_what_rounding_takes():
    parts = []
    for prices in ([1e16, 1.0], [1.0, -1e16], [1.0]):
        index = index_of(held())
        insert(index, [(0, {"price": price}) for price in prices])
        parts.append(index.ask(Question(values={"total": VALUES["total"], "mean": VALUES["mean"]})))
    assert merged(parts).rows() == [{"total": 3, "mean": None}]


def test_a_sum_beyond_all_numbers_is_infinite():
    index = index_of(held())
    insert(index, [(0, {"price": 1e308}), (0, {"price": 1e308})])
    with np.errstate(over="ignore", invalid="ignore"):  # of which the kernel warns as plain Python
        answer = index.ask(Question(values={"total": VALUES["total"]}))
    assert answer.rows() == [{"total": float("inf")}]


def test_a_sum_beyond_the_range_of_floats_is_null_also_when_merged():
    index = index_of(held(10))
    insert(index, [(1, {"user": "ann", "price": 1e308}), (2, {"user": "ann", "price": 1e308})])
    with np.errstate(over="ignore", invalid="ignore"):  # of which the kernel warns as plain Python
        answer = index.ask(Question(values={"total": AskedValue("sum", "price"), "mean": AskedValue("avg", "price")}))
    other = Answer.from_json(orjson.loads(orjson.dumps(answer.to_json())))
    for rows in (other.rows(), merged([other, other]).rows()):
        assert orjson.loads(orjson.dumps(rows)) == [{"total": None, "mean": None}]

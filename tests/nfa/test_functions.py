"""Functions of one event: every one equals its reference, in every way of evaluation."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from nfa import (
    FUNCTIONS,
    Matcher,
    PatternRefused,
    columns_of_events,
    describe_pattern,
    match_order,
    parse_pattern,
    pattern_from_json,
    pattern_to_json,
)
from nfa import parse_event_expression as parsed
from nfa.conditions.projection import project
from nfa.language.references import FUNCTIONS as NAMES
from streams import Event, EventBatch
from tests.builders.worked_examples import examples_in
from tests.references.patterns.values import DataScope, value_of

EXAMPLES = [(text, value) for function in FUNCTIONS.values() for text, value in function.examples]


def values(text, *rows):
    """The values of an expression for events with the given attributes."""
    events = [Event(id=str(place), type="A", time_us=place, key="k", data=row) for place, row in enumerate(rows)]
    return parsed(text).column(columns_of_events(EventBatch.from_events(events)), np.arange(len(rows)))


EVENT = {"items": [{"price": 50, "quantity": 2}, {"price": 120, "quantity": 1}], "tags": ["new", "gift"]}


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_the_examples_of_the_table(text, value):
    assert values(text, EVENT) == values(value, EVENT)


def test_the_schema_of_documents_names_every_function():
    schema = json.loads(files("nfa.language").joinpath("pattern.schema.json").read_text(encoding="utf-8"))
    assert set(schema["$defs"]["call"]["properties"]["name"]["enum"]) == set(NAMES)


REFUSED = {
    "lower(5) = 'a'": "column 29: text of lower(text) is a text, and 5 is a number",
    "lower(v) = 5": "column 29: lower(v) is a text, and 5 a number: comparing them is always null",
    "lower(v) IN ('a', 5)": "column 29: lower(v) is a text, and 5 a number",
    "lower(v) + 1 > 2": "column 29: lower(v) + 1 needs a number, and lower(v) is a text",
    "NOT upper(v)": "column 33: NOT upper(v) needs a condition",
    "prev(v) IS NULL OR coalesce(sum(b.x), avg(b.y))": "a condition, and coalesce(sum(b.x), avg(b.y)) is a number",
    "length(v) LIKE 'a'": "needs a text, and length(v) is a number",
    "substr(v) = 'a'": "column 29: substr has 1 arguments here; write substr(text, start, [length])",
    "matches(v, '(a')": "column 29: expression of matches is '(a': it is not a regular expression of RE2 (missing )",
    "matches(v, '(a)\\1')": "it is not a regular expression of RE2 (invalid escape sequence: \\1)",
    "matches(v, '(?=a)')": "it is not a regular expression of RE2",
    "matches(v, '((a{1000}){1000}){1000}')": "it is not a regular expression of RE2",
    "matches(v, '[a-z]{1,600}x{600}')": "it has about 1,200 states: characters, each as often as {n,m} repeats",
    "matches(v, '(([a-z]{9}){9}[(]{9}\\)){9,}(a|b){90}')": "about 1,089 states",
    "matches(v, w)": "column 40: expression of matches(text, expression) is a constant, and w is not; write its value",
    "matches(v, NULL)": "expression of matches is NULL: write a text",
    "cidr(v, '10.0.0.0/99')": "network of cidr is '10.0.0.0/99': it is not a network",
    "lowr(v) = 'a'": "lowr is not a function (did you mean lower?)",
    "contains(v, b.w)": "column 29: the arguments of contains(v, b.w) are of several events",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_arguments_that_cannot_fit_are_refused(text, message):
    with pytest.raises(PatternRefused) as refused:
        Matcher().add_pattern(f"PATTERN p EVENT SEQ(B b, A [{text}])")
    assert message in str(refused.value)


MATCHED = [
    ("SEQ(A a [matches(v, 'x\\x{2013}y')], B b)", 'A1:"x–y" A2:"xy" B3', 1),
    ("SEQ(A a [lower(v) = 'xy'], B b)", 'A1:"xY" A2:"x" B3', 1),
    ("SEQ(A a, B b [upper(b.v) = upper(a.v)])", 'A1:"xY" A2:"x" B3:"XY" B4', 1),
    ("SEQ(A a, B b [lower(v) = lower(a.v) AND length(v) > 1])", 'A1:"xY" A2:"x" B3:"XY" B4:"X"', 1),
    ("SEQ(A+ a [length(v) > 1], B b) WHERE sum(length(a.v)) > 3 AND lower('A') = 'a'", 'A1:"xY" A2:"xyz" B3', 1),
    ("SEQ(A a, NOT C [trim(v) = trim(a.v)], B b [contains(v, 'x')])", 'A1:"x" C2:"y" A3:"y" C4:"x" B5:"x"', 1),
]


@pytest.mark.parametrize(("text", "trace", "number"), MATCHED)
def test_splits_into_batches_change_nothing(text, trace, number):
    events = list(next(examples_in(f"e | {text} | {trace} | -")).events)
    found = []
    for size in (1, len(events)):
        matcher = Matcher()
        matcher.add_pattern(f"PATTERN p EVENT {text}")
        outputs = [
            matcher.process(EventBatch.from_events(events[at : at + size])) for at in range(0, len(events), size)
        ]
        outputs.append(matcher.finish())
        found.append(sorted((match for output in outputs for match in output.matches()), key=match_order))
    assert [match.bindings for match in found[0]] == [match.bindings for match in found[1]]
    assert len(found[0]) == number


PATHS = [
    ("items[0].price", [10, None, None, 7]),
    ("items[-1].price + 1", [21.0, None, None, None]),
    ("length(items[1].tags[0])", [3, None, None, None]),
    ("items.`[0]`.price", [10, None, None, 7]),
    ("items[2] IS NULL", [True, True, True, True]),
]
ROWS = [
    {"items": [{"price": 10}, {"price": 20, "tags": ["abc"]}]},
    {"items": []},
    {"items": 5},
    {"items": {"[0]": {"price": 7}}},
]


@pytest.mark.parametrize(("text", "wanted"), PATHS)
def test_paths_into_lists(text, wanted):
    assert values(text, *ROWS) == wanted
    pattern = parse_pattern(f"PATTERN p EVENT A a [({text}) = 3] RETURN a.items[1].price AS price")
    assert parse_pattern(describe_pattern(pattern)) == pattern
    assert pattern_from_json(pattern_to_json(pattern)) == pattern


@pytest.mark.parametrize("text", ["items[9999999999]", "items[-9999999999]"])
def test_places_that_no_list_has_are_refused(text):
    with pytest.raises(PatternRefused, match="is not a place in a list"):
        parse_pattern(f"PATTERN p EVENT A a [{text} > 3]")


TEXTS = [
    ("v between 1 and 2 OR NOT v BETWEEN 3 AND w + 1", "v BETWEEN 1 AND 2 OR v NOT BETWEEN 3 AND w + 1"),
    ("CASE WHEN v > 1 THEN 'a' WHEN w THEN 'b' ELSE 'c' END = 'a'", "if(v > 1, 'a', if(w, 'b', 'c')) = 'a'"),
    ("case when v = 1 then w END", "if(v = 1, w, NULL)"),
    ("case = 'x' AND `when` = 1 AND end > 2 AND else < 3", "case = 'x' AND when = 1 AND end > 2 AND else < 3"),
    ("lower = 'x' AND LOWER(lower) = 'x'", "lower = 'x' AND lower(lower) = 'x'"),
]


@pytest.mark.parametrize(("text", "written"), TEXTS)
def test_texts_and_documents_read_back(text, written):
    pattern = parse_pattern(f"PATTERN p EVENT A a [{text}]")
    assert written in describe_pattern(pattern)
    assert parse_pattern(describe_pattern(pattern)) == pattern
    assert pattern_from_json(pattern_to_json(pattern)) == pattern


def test_a_case_with_very_many_branches_is_refused():
    deep = "CASE WHEN v > 1 THEN " * 60 + "1" + " END" * 60
    for text in (deep, "CASE " + "WHEN v = 1 THEN 2 " * 60 + "END"):
        with pytest.raises(PatternRefused, match="nest deeper than 50"):
            parse_pattern(f"PATTERN p EVENT A a [{text} = 1]")


def test_the_index_takes_between_and_functions():
    matcher = Matcher()
    names = [f"c{number}" for number in range(20)]
    for name in names:
        matcher.add_pattern(f"PATTERN {name} EVENT A a [lower(v) = '{name}']")
    (event,) = next(examples_in('e | A | A1:"C7" | -')).events
    (match,) = matcher.process(EventBatch.from_events([event])).matches()
    assert match.pattern == "c7"


LISTS = [
    ("any(items, price > 100)", [True, False, None, False, None, None]),
    ("any(items, price > 40 AND quantity BETWEEN 2 AND 3)", [True, False, None, False, None, None]),
    ("sum(items, price * quantity)", [220.0, 10.0, None, None, None, None]),
    ("sum_of(items, length(name))", [None, 5.0, None, None, None, None]),
    ("any(items, any(tags, value = 'x'))", [None, True, None, False, None, None]),
    ("NOT any(items, price IS NULL)", [True, True, False, True, None, None]),
]
LIST_ROWS: list[dict[str, Any]] = [
    {"items": [{"price": 50, "quantity": 2, "tags": []}, {"price": 120, "quantity": 1, "tags": [1]}]},
    {"items": [{"price": 10, "quantity": 1, "name": "Äpfel", "tags": ["y", "x"]}]},
    {"items": [{"name": 5}, 7]},
    {"items": []},
    {"items": {"price": 200}},
    {},
]


@pytest.mark.parametrize(("text", "wanted"), LISTS)
def test_functions_of_the_elements_of_lists(text, wanted):
    assert values(text, *LIST_ROWS) == wanted
    pattern = parse_pattern(f"PATTERN p EVENT A a RETURN ({text.replace('(items', '(a.items')}) AS x")
    events = [Event(id="A1", type="A", time_us=1, key="k", data=row) for row in LIST_ROWS]
    assert [one["x"] for one in project(pattern.returns, [{"a": [event]} for event in events])] == wanted
    assert [value_of(pattern.returns[0].expression, DataScope(plain={"a": event})) for event in events] == wanted
    assert parse_pattern(describe_pattern(pattern)) == pattern
    assert pattern_from_json(pattern_to_json(pattern)) == pattern

"""Functions of one event: every one equals its reference, in every way of evaluation."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from nfa import FUNCTIONS, Matcher, PatternRefused, columns_of_events, match_order
from nfa import parse_event_expression as parsed
from nfa.language.references import FUNCTIONS as NAMES
from nfa.worked_examples import examples_in
from streams import Event, EventBatch

EXAMPLES = [(text, value) for function in FUNCTIONS.values() for text, value in function.examples]


def values(text, *rows):
    """The values of an expression for events with the given attributes."""
    events = [Event(id=str(place), type="A", time_us=place, key="k", data=row) for place, row in enumerate(rows)]
    return parsed(text).column(columns_of_events(EventBatch.from_events(events)), len(rows))


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_the_examples_of_the_table(text, value):
    assert values(text, {}) == values(value, {})


def test_the_schema_of_documents_names_every_function():
    schema = json.loads(files("nfa.language").joinpath("pattern.schema.json").read_text(encoding="utf-8"))
    assert set(schema["$defs"]["call"]["properties"]["name"]["enum"]) == set(NAMES)


REFUSED = {
    "lower(5) = 'a'": "column 29: text of lower(text) is a text, and 5 is a number",
    "lower(v) = 5": "column 29: lower(v) is a text, and 5 a number: comparing them is always null",
    "lower(v) IN ('a', 5)": "column 29: lower(v) is a text, and 5 a number",
    "lower(v) + 1 > 2": "column 29: lower(v) + 1 needs a number, and lower(v) is a text",
    "NOT upper(v)": "column 33: NOT upper(v) needs a condition",
    "length(v) LIKE 'a'": "needs a text, and length(v) is a number",
    "substr(v) = 'a'": "column 29: substr has 1 arguments here; write substr(text, start, [length])",
    "matches(v, '(a')": "column 29: expression of matches is '(a': it is no regular expression of RE2 (missing ): (a)",
    "matches(v, '(a)\\1')": "it is no regular expression of RE2 (invalid escape sequence: \\1)",
    "matches(v, '(?=a)')": "it is no regular expression of RE2",
    "matches(v, '((a{1000}){1000}){1000}')": "it is no regular expression of RE2",
    "matches(v, w)": "column 40: expression of matches(text, expression) is a constant, and w is not; write its value",
    "matches(v, NULL)": "expression of matches is NULL: write a text",
    "cidr(v, '10.0.0.0/99')": "network of cidr is '10.0.0.0/99': it is no network",
    "lowr(v) = 'a'": "lowr is not a function (did you mean lower?)",
    "contains(v, b.w)": "column 29: the arguments of contains(v, b.w) are of several events",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_arguments_that_cannot_fit_are_refused(text, message):
    with pytest.raises(PatternRefused) as refused:
        Matcher().add_pattern(f"PATTERN p EVENT SEQ(B b, A [{text}])")
    assert message in str(refused.value)


MATCHED = [
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

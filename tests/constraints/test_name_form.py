"""Event types with conditions, as documents name them."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from constraints import ConstraintSet, InvalidConstraints, Prior, Rule, parse_constraints, to_document
from nfa import Symbol, parse_step

HIGH = "Quote [price > 1000]"
SYMBOLS = {HIGH: Symbol(parse_step(HIGH))}


def problem_of(document: object) -> str:
    with pytest.raises(InvalidConstraints) as caught:
        parse_constraints(document)
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    "document",
    [
        ["prior(Approve, Quote [price > 1000])"],
        ["prior(Approve,Quote[price>1000])"],
        ["prior( `Approve` , `Quote`  [ Quote.price > 1000 ] )"],
        [{"prior": ["Approve", "Quote [price > 1000]"]}],
        [{"prior": ["Approve", "`Quote`[price>1000]"]}],
        {"prior": [["Approve", " Quote [price > 1000] "]]},
        "- prior(Approve, Quote [price > 1000])",
        '- prior: [Approve, "Quote [price > 1000]"]',
        "prior:\n- - Approve\n  - Quote [price > 1000]\n",
    ],
    ids=str,
)
def test_every_way_to_write_a_condition_names_one_symbol(document: object) -> None:
    constraint_set = parse_constraints(document).constraint_set
    assert constraint_set == ConstraintSet((Prior("Approve", HIGH),), symbols=SYMBOLS)
    assert constraint_set.types == {"Approve", "Quote"}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("A [x IN ('a,b', '(', ']')]", "A [x IN ('a,b', '(', ']')]"),
        ("A [name = 'it''s, (]']", "A [name = 'it''s, (]']"),
        ("A [`odd, ] name` = 1]", "A [`odd, ] name` = 1]"),
        ("send quote [x = 1 AND (y = 2 OR z = 3)]", "`send quote` [x = 1 AND (y = 2 OR z = 3)]"),
        ("`a, (b)` [x = 1]", "`a, (b)` [x = 1]"),
        ("a.b [c.d IS NULL]", "a.b [c.d IS NULL]"),
        ("SEQ [x = 1]", "`SEQ` [x = 1]"),
    ],
)
def test_commas_brackets_and_odd_names(written: str, name: str) -> None:
    expected = (Rule("response", (name, "B")),)
    for document in ([f"response({written}, B)"], [{"response": [written, "B"]}]):
        assert parse_constraints(document).constraint_set.rules == expected
    assert parse_constraints([str(expected[0])]).constraint_set.rules == expected


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "Quote [price >> 1]",
            "unexpected '>'; expected '(', '-', CASE, FALSE, NULL, TRUE, a name, a number or a text",
        ),
        ("Quote [count(price) > 1]", "count reads several events, but this condition is on a single event"),
        ("Quote [prev(price) > 1]", "prev reads several events"),
        ("Quote [price > 1", "the text ends; expected "),
        ("Quote [price > 1] q", "unexpected 'q'; expected "),
        ("Quote [price > 1]+", "unexpected '+'; expected "),
        ("Quote []", "unexpected ']'; expected "),
    ],
)
def test_a_condition_that_cannot_be_read(name: str, advice: str) -> None:
    problem = problem_of([{"prior": ["A", "B"]}, {"prior": ["A", name]}])
    assert problem.startswith(
        f"entry 2: cannot read {json.dumps(name)} as an event type with a condition on its attributes: {advice}"
    )
    assert problem.endswith(f"an event type that only looks like one is written {{type: {json.dumps(name)}}}")


def test_the_line_is_named() -> None:
    assert problem_of("prior:\n- [A, B]\n- [A, 'B [x =]']\n").startswith("prior, entry 2, line 3: cannot read")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("end(A [x = 1])", "an end event is an event type without a condition, got "),
        ({"prior": ["`a`b` [x = 1]", "B"]}, "an event type with back quotes in its name has no condition, got "),
        ({"prior": [f"A [{'x' * 2_000}]", "B"]}, "an event type with its condition has at most 2000 characters"),
        ({"prior": [f"{'A' * 501} [x = 1]", "B"]}, "an event type has 1 to 500 characters"),
        ({"prior": ["A [x = '\ud800']", "B"]}, "an event type with its condition has at most 2000 characters of valid"),
        ("response(A [x=1], A [x = 1])", "response(A, B) takes different event types, got response(A [x = 1], "),
        ("prior(A [x = 1] y, B)", 'cannot read event types from "A [x = 1] y, B"'),
        ({"prior": [{"type": "A", "if": "x"}, "B"]}, 'an event type is a text, got {"type": "A", "if": "x"}'),
        ({"prior": [{"type": 3}, "B"]}, "an event type is a text, got 3"),
    ],
    ids=str,
)
def test_other_refusals(entry: object, problem: str) -> None:
    assert problem_of([entry]).startswith(f"entry 1: {problem}")


@pytest.mark.parametrize("first", [0, 1])
def test_one_name_is_not_both_a_type_and_a_condition(first: int) -> None:
    entries = [{"prior": ["A [x]", "B"]}, {"prior": [{"type": "A [x]"}, "B"]}]
    assert "rename the type" in problem_of([entries[first], entries[1 - first]])


@pytest.mark.parametrize(
    "document",
    [["prior(`Order [old]`, B)"], [{"prior": [{"type": "Order [old]"}, "B"]}], "- prior: [{type: 'Order [old]'}, B]"],
    ids=str,
)
def test_a_type_that_only_looks_like_a_condition(document: object) -> None:
    constraint_set = parse_constraints(document).constraint_set
    assert constraint_set == ConstraintSet((Prior("Order [old]", "B"),))
    assert to_document(constraint_set)["constraints"] == [{"prior": [{"type": "Order [old]"}, "B"]}]


@pytest.mark.parametrize("name", ["[x]", " [x]", "a]", "x > 1]", "`a`"])
def test_brackets_without_a_type_before_them_are_part_of_the_name(name: str) -> None:
    assert parse_constraints([{"prior": [name, "B"]}]).constraint_set.constraints == (Prior(name, "B"),)


TYPES = st.sampled_from(["A", "send quote", "a.b", "SEQ", "x[y", "A [v]"])
CONDITIONS = st.sampled_from(["v > 1", "v = 'a, ]'", "v IN (1, 2) OR w IS NULL", "NOT v < -1.5"])
NAMES = TYPES | st.builds("{} [{}]".format, st.sampled_from(["A", "`send quote`", "a.b", "`SEQ`"]), CONDITIONS)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4))
def test_symbols_go_to_the_canonical_form_and_back(pairs: list[tuple[str, str]]) -> None:
    symbols = {
        name: Symbol(parse_step(name)) for pair in pairs for name in pair if name.endswith("]") and name != "A [v]"
    }
    constraint_set = ConstraintSet(tuple(Prior(*pair) for pair in pairs), symbols=symbols)
    document = to_document(constraint_set)
    for form in (document, json.dumps(document), yaml.safe_dump(document)):
        again = parse_constraints(form).constraint_set
        assert again == constraint_set
        assert again.symbols == constraint_set.symbols
        assert to_document(again) == document

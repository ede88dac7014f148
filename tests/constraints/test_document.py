"""Uploaded lists of constraints: which entries are read, and the problems reported for the others."""

import json
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from constraints import (
    Clause,
    Constraint,
    ConstraintSet,
    Exclusive,
    InvalidConstraints,
    Part,
    Prior,
    Require,
    Rule,
    parse_constraints,
    to_document,
)
from tests.builders.constraints import constraint_sets

EXPECTED = ConstraintSet((Prior("A", "B"), Exclusive("L", "U"), Require("A", "K")), frozenset({"X", "Y"}))

SHAPES = {
    "entries in YAML": "- prior: [A, B]\n- exclusive: [L, U]\n- require: [A, K]\n- end: X\n- end: Y\n",
    "texts in YAML": "- prior(A, B)\n- exclusive(L, U)\n- 'require(A,K)'\n- end( X , Y )\n",
    "flow YAML": "[prior: [A, B], exclusive: [L, U], require: [A, K], end: [X, Y]]",
    "groups in YAML": "prior:\n  - [A, B]\nexclusive:\n  - [L, U]\nrequire: [[A, K]]\nend: [X, Y]\n",
    "groups and a list": "constraints:\n  - prior: [A, B]\n  - exclusive(L, U)\nrequire: [A, K]\nend: [X, Y]\n",
    "entries in JSON": '[{"prior":["A","B"]},{"exclusive":["L","U"]},{"require":["A","K"]},{"end":["X","Y"]}]',
    "groups in JSON": '{"prior":[["A","B"]],"exclusive":[["L","U"]],"require":[["A","K"]],"end":["X","Y"]}',
    "an empty group": '{"constraints":["prior(A, B)","exclusive(L, U)","require(A, K)","end(X, Y)"],"absence":[]}',
    "the body of a request": '{"constraints":["prior(A, B)","exclusive(L, U)",{"require":["A","K"]}],"end":["X","Y"]}',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_says_the_same(shape: str) -> None:
    parsed = parse_constraints(SHAPES[shape])
    assert parsed.constraint_set == EXPECTED
    assert parsed.notices == ()
    assert parse_constraints(SHAPES[shape].encode()) == parsed
    assert parse_constraints(yaml.safe_load(SHAPES[shape])) == parsed


@pytest.mark.parametrize(
    ("entry", "constraints"),
    [
        ("not succession(A, B)", [Prior("B", "A")]),
        ("Not Succession(A, A)", [Prior("A", "A")]),
        ("not co-existence(A, B)", [Exclusive("A", "B")]),
        ("NotCoExistence(A, B)", [Exclusive("A", "B")]),
        ("noncoexistence(A, B)", [Exclusive("A", "B")]),
        ("responded_existence(A, B)", [Require("A", "B")]),
        ("co-existence(A, B)", [Require("A", "B"), Require("B", "A")]),
        ("absence2(A)", [Prior("A", "A")]),
        ("at most one(A)", [Prior("A", "A")]),
        ("absence(A)", [Clause(frozenset("A"), None)]),
        ("existence(A)", [Clause(frozenset(), "A")]),
        ("exactly_one(A)", [Clause(frozenset(), "A"), Prior("A", "A")]),
        ("implication(A, B, K)", [Clause(frozenset("AB"), "K")]),
        ("implication(A, K)", [Require("A", "K")]),
        ("not together(A, B, C)", [Clause(frozenset("ABC"), None)]),
        ("not_together(A, B)", [Exclusive("A", "B")]),
        ("PRIOR(A, B)", [Prior("A", "B")]),
        ("prior(`A`, `x, (y)`)", [Prior("A", "x, (y)")]),
        ("prior(send quote, a-b.c)", [Prior("send quote", "a-b.c")]),
    ],
)
def test_other_names(entry: str, constraints: list[Constraint]) -> None:
    assert parse_constraints([entry]).constraint_set.constraints == tuple(constraints)


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("precedence(A, B)", (Require("B", "A"), Rule("precedence", ("A", "B")))),
        ({"Response": ["A", "B"]}, (Require("A", "B"), Rule("response", ("A", "B")))),
        ("exclusive choice(A, B)", (Exclusive("A", "B"), Rule("exclusive choice", ("A", "B")))),
        ("chain-succession(A, B)", (Require("A", "B"), Require("B", "A"), Rule("chain succession", ("A", "B")))),
        ("not chain succession(A, A)", (Rule("not chain succession", ("A", "A")),)),
        ("init(A)", (Clause(frozenset(), "A"), Rule("init", ("A",)))),
        ("ends with(A)", (Clause(frozenset(), "A"), Rule("last", ("A",)))),
    ],
)
def test_a_rule_comes_with_what_follows_from_it(entry: object, parts: tuple[Part, ...]) -> None:
    parsed = parse_constraints([entry, entry])
    assert parsed.constraint_set.parts == parts
    assert parsed.notices == ()


EXISTENCE = ConstraintSet((Clause(frozenset(), "A"),), rules=(Rule("existence", ("A",), 3),))


@pytest.mark.parametrize(
    "document",
    [
        ["existence(3, A)"],
        ["existence( 3 , `A`)"],
        ["Existence3(A)"],
        [{"existence": [3, "A"]}],
        {"existence": [3, "A"]},
        {"existence": [[3, "A"]]},
        "- existence(3, A)",
        "- existence: [3, A]",
        "existence: [3, A]",
        "existence: [[3, A]]",
        '{"constraints": [{"existence": [3, "A"]}]}',
    ],
    ids=str,
)
def test_a_number_stands_before_the_name(document: object) -> None:
    assert parse_constraints(document).constraint_set == EXISTENCE


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("existence(1, A)", (Clause(frozenset(), "A"),)),
        ("absence(1, A)", (Clause(frozenset("A"), None),)),
        ("absence(2, A)", (Prior("A", "A"),)),
        ("absence(3, A)", (Rule("absence", ("A",), 3),)),
        ("exactly(1, A)", (Clause(frozenset(), "A"), Prior("A", "A"))),
        ("exactly(2, A)", (Clause(frozenset(), "A"), Rule("exactly", ("A",), 2))),
        ("existence(3)", (Clause(frozenset(), "3"),)),
        ("existence(`3`)", (Clause(frozenset(), "3"),)),
        ({"existence": ["3"]}, (Clause(frozenset(), "3"),)),
        ("existence(2, 3)", (Clause(frozenset(), "3"), Rule("existence", ("3",), 2))),
        ("prior(1, 2)", (Prior("1", "2"),)),
    ],
    ids=str,
)
def test_what_numbers_mean(entry: object, parts: tuple[Part, ...]) -> None:
    assert parse_constraints([entry]).constraint_set.parts == parts


def test_groups_hold_numbers_and_names() -> None:
    parsed = parse_constraints("existence: [A, B]\nabsence: [[3, A], B]\n")
    names = [str(part) for part in parsed.constraint_set.parts]
    assert names == ["existence(A)", "existence(B)", "absence(B)", "absence(3, A)"]


def test_that_end_is_not_the_end_of_declare_is_said_where_it_may_be_meant() -> None:
    assert parse_constraints(["end(B)", "response(A, B)"]).notices == ()
    assert parse_constraints(["init(A)", "last(B)"]).notices == ()
    assert parse_constraints({"init": ["A"], "end": ["send it", "C"]}).notices == (
        (
            "end(`send it`) says that nothing comes after `send it`, not that every trace ends with it; "
            "DECLARE's End is last(`send it`)"
        ),
    )


def problems_of(document: object, **limits: int) -> list[str]:
    with pytest.raises(InvalidConstraints) as caught:
        parse_constraints(document, **limits)
    problems = [str(problem) for problem in caught.value.problems]
    assert caught.value.message == "; ".join(problems)
    assert json.dumps(caught.value.details)
    return problems


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"prior": ["A"]}, "prior(A, B) takes 2 event types, got prior(A)"),
        ({"prior": ["A", "B", "C"]}, "prior(A, B) takes 2 event types, got prior(A, B, C)"),
        ({"prior": "A, B"}, "prior(A, B) takes 2 event types, got prior(`A, B`)"),
        (
            {"existence": ["A", "B"]},
            "existence(2, A) takes 1 event type, after a number if one is meant, got existence(A, B)",
        ),
        (
            "absence(2, 3, A)",
            "absence(2, A) takes 1 event type, after a number if one is meant, got absence(2, `3`, A)",
        ),
        ("exactly(A, 2)", "exactly(2, A) takes 1 event type after a number, got exactly(A, `2`)"),
        ("exactly(A)", "exactly(2, A) takes a number before the event type, got exactly(A)"),
        ("existence(0, A)", "existence(2, A) takes a number from 1 to 100, got existence(0, A)"),
        ({"absence": [-1, "A"]}, "absence(2, A) takes a number from 1 to 100, got absence(-1, A)"),
        ("exactly999(A)", "exactly(2, A) takes a number from 1 to 100, got exactly(999, A)"),
        ({"exactly": [True, "A"]}, "an event type is a text, got true; put it in quotes"),
        ({"exactly": [10**5000, "A"]}, "an event type is a text, got a value of type int; put it in quotes"),
        ({"response": [2, "A", "B"]}, "an event type is a text, got 2; put it in quotes"),
        ({"end": []}, "end(A) takes at least 1 event type, got end()"),
        ({"implication": ["A"]}, "implication(A, B, C) takes at least 2 event types, got implication(A)"),
        ("prior()", "prior(A, B) takes 2 event types, got prior()"),
        (
            "exclusive(A, A)",
            "exclusive(A, B) takes different event types, got exclusive(A, A); for at most one A, write prior(A, A)",
        ),
        ({"prior": [True, "B"]}, "an event type is a text, got true; put it in quotes"),
        ({"prior": [None, "B"]}, "an event type is a text, got null; put it in quotes"),
        ({"prior": [["A"], "B"]}, 'an event type is a text, got ["A"]; put it in quotes'),
        ({"prior": ["", "B"]}, 'an event type has 1 to 500 characters of valid Unicode, got ""'),
        ({"prior": ["\ud800", "B"]}, 'an event type has 1 to 500 characters of valid Unicode, got "\\ud800"'),
        ("prior(A, B", 'write a constraint as "prior(A, B)", got "prior(A, B"'),
        ("prior A", 'write a constraint as "prior(A, B)", got "prior A"'),
        (
            "prior(A,, B)",
            'cannot read event types from ", B"; separate them by commas, and put unusual names in backticks',
        ),
        (
            "prior(A, f(x))",
            'cannot read event types from " f(x)"; separate them by commas, and put unusual names in backticks',
        ),
        ({"prior": 1, "end": 2}, 'an entry is {prior: [A, B]} or "prior(A, B)", got {"prior": 1, "end": 2}'),
        (["A", "B"], 'an entry is {prior: [A, B]} or "prior(A, B)", got ["A", "B"]'),
        (7, 'an entry is {prior: [A, B]} or "prior(A, B)", got 7'),
    ],
)
def test_an_entry_that_is_wrong(entry: object, message: str) -> None:
    assert problems_of(["prior(A, B)", entry]) == [f"entry 2: {message}"]


@pytest.mark.parametrize("kind", ["banana", "response3", "chain", "until"])
def test_other_kinds_are_refused_with_what_is_allowed(kind: str) -> None:
    (problem,) = problems_of([{kind: ["A", "B"]}])
    assert problem.startswith(
        f'entry 1: "{kind}" is not a kind of constraint that is supported; use one of prior(A, B)'
    )
    assert "not co-existence(A, B), choice(A, B)" in problem
    assert "existence(2, A)" in problem


@pytest.mark.parametrize("written", ["No", "3", "1.5", "2026-13-45", "!!int x", "1" * 5_000, "="])
def test_bare_yaml_values_are_no_event_types(written: str) -> None:
    (problem,) = problems_of(f"[prior: [A, {written}]]")
    shown = written.removeprefix("!!int ")
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    assert problem == f"entry 1, line 1: an event type is a text, got {shown}; put it in quotes"


@pytest.mark.parametrize(("document", "place"), [("{1: [A, B]}", '1, line 1: "1"'), ({1: ["A", "B"]}, "1: 1")])
def test_a_kind_must_be_a_text(document: object, place: str) -> None:
    (problem,) = problems_of(document)
    assert problem.startswith(f"{place} is not a kind of constraint")


def test_all_problems_are_named_with_entry_and_line() -> None:
    document = "constraints:\n  - prior: [A, B]\n  - prior: [A]\n\n  - banana(A)\nprior:\n  - [A, No]\nend: [3]\n"
    places = [problem.partition(": ")[0] for problem in problems_of(document)]
    assert places == [
        "constraints, entry 2, line 3",
        "constraints, entry 3, line 5",
        "prior, entry 1, line 7",
        "end, entry 1, line 8",
    ]


def test_json_lines_are_named_too() -> None:
    assert problems_of('[\n{"prior": ["A", "B"]},\n{"prior": ["A"]}\n]')[0].startswith("entry 2, line 3: ")


def test_lines_are_left_out_where_yaml_cannot_follow_json() -> None:
    assert problems_of(f'[{{"prior": ["A"]}}, {{"{"long" * 500}": 1}}]')[0].startswith("entry 1: ")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "the text is empty"),
        ("  \n", "the text is empty"),
        ("# nothing\n", "the text has 0 documents; one is read"),
        ("prior: []\n---\nend: []", "the text has 2 documents; one is read"),
        ("prior(A, B)", "a document is a list of entries or a mapping"),
        (None, "a document is a list of entries or a mapping"),
        (3, "a document is a list of entries or a mapping"),
        ("a: b: c", "line 1: this is neither JSON nor YAML: mapping values are not allowed in this context"),
        ('[{"prior": ["A", "B"]}', "line 1: this is neither JSON nor YAML: did not find expected ',' or ']'"),
        ("\x00", "this is neither JSON nor YAML: control characters are not allowed"),
        ("- !!python/object:os.system x", "line 1: the tag 'tag:yaml.org,2002:python/object:os.system' is"),
        ("? [A, B]\n: prior", "line 1: a key is a text, not a list or a mapping"),
        ("- &a [1]", "line 1: anchors and aliases are not allowed"),
        ("-\n- *a", "line 2: anchors and aliases are not allowed"),
        ('["prior(A, \\ud83d\\ude00)",\n "prior(\\ud800, B)"]', "line 2: \\ud800 is half a character"),
        (
            '- "prior(A, B)"\n- "prior(\\udfff, B)"',
            "line 2: this is neither JSON nor YAML: found invalid Unicode character",
        ),
        ('{"\\udfff": 1}', "line 1: \\udfff is half a character"),
        ("prior: []\nend: []\nprior: []", "line 3: the key 'prior' is given twice"),
        ('{"end": [],\n"end": []}', "line 2: the key 'end' is given twice"),
        ('{"end": [],\n\t"end": []}', "line 2: the key 'end' is given twice"),
        (f'{{"end": [], "a": {"[" * 150 + "]" * 150}, "end": []}}', "line 1: lists and mappings are nested more than"),
        ("[" * 5_000, "line 1: lists and mappings are nested more than 100 deep"),
        ("- " * 5_000, "line 1: lists and mappings are nested more than 100 deep"),
        ("[" * 400_000 + "]" * 400_000, "line 1: lists and mappings are nested more than 100 deep"),
        ("[" * 150 + "]" * 150, "line 1: lists and mappings are nested more than 100 deep"),
        ("- \ud800", "this is neither JSON nor YAML: surrogates not allowed"),
        (b"\xff\xfe\xff", "this is not UTF-8 text: byte 0 is 0xff"),
    ],
)
def test_a_document_that_is_none(document: object, message: str) -> None:
    (problem,) = problems_of(document)
    assert problem.startswith(message)


@pytest.mark.parametrize(
    "document",
    [
        "stream: orders\nprior: [[A, B]]\n",
        "constraints: ['prior(A, B)']\nstream: orders\n",
        '{"stream": "orders", "prior": [["A", "B"]]}',
        {"stream": "orders", "prior": [["A", "B"]]},
    ],
)
def test_a_document_may_name_its_stream(document: object) -> None:
    parsed = parse_constraints(document)
    assert (parsed.stream, parsed.constraint_set) == ("orders", ConstraintSet((Prior("A", "B"),)))


@pytest.mark.parametrize("document", ["prior: [[A, B]]", "[]", {"constraints": []}])
def test_a_document_need_not_name_its_stream(document: object) -> None:
    assert parse_constraints(document).stream is None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("prior: []\nstream: 7\n", "stream, line 2: the name of a stream is a text, got 7; put it in quotes"),
        (
            '{\n"stream": ["orders"]}',
            'stream, line 2: the name of a stream is a text, got ["orders"]; put it in quotes',
        ),
        ({"stream": None}, "stream: the name of a stream is a text, got null; put it in quotes"),
        (["stream: orders"], 'entry 1: write a constraint as "prior(A, B)", got "stream: orders"'),
        ({"constraints": [{"stream": "orders"}]}, 'constraints, entry 1: "stream" is not a kind of constraint'),
    ],
)
def test_a_stream_that_is_wrongly_named(document: object, problem: str) -> None:
    (found,) = problems_of(document)
    assert found.startswith(problem)


def test_a_named_stream_leaves_the_lines_of_the_others() -> None:
    places = [problem.partition(": ")[0] for problem in problems_of("stream: [a]\nprior:\n  - [A]\n")]
    assert places == ["stream, line 1", "prior, entry 1, line 3"]


def test_limits() -> None:
    assert problems_of("x" * 11, max_bytes=10) == ["the text has 11 bytes; at most 10 are read"]
    assert problems_of(b"x" * 11, max_bytes=10) == ["the text has 11 bytes; at most 10 are read"]
    entries = ["prior(A, B)"] * 3
    assert problems_of(entries, max_constraints=2) == ["entry 3: there are more than 2 entries; split the set"]
    assert len(parse_constraints(entries, max_constraints=3).constraint_set.constraints) == 1


def test_a_set_may_be_empty() -> None:
    assert parse_constraints("[]").constraint_set == ConstraintSet()
    assert parse_constraints({"stream": "orders", "constraints": []}).constraint_set == ConstraintSet()
    assert parse_constraints({"end": []}).constraint_set == ConstraintSet()


@pytest.mark.parametrize("document", ["{}", {}, {"stream": "orders"}, "stream: orders"])
def test_a_mapping_without_constraints_is_refused(document: object) -> None:
    (problem,) = problems_of(document)
    assert problem.removeprefix("line 1: ").startswith("list at least one constraint, or write constraints: []")


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump, lambda value: value])
@given(constraint_set=constraint_sets("ABCD"))
def test_round_trip(write: Callable[[object], object], constraint_set: ConstraintSet) -> None:
    document = to_document(constraint_set)
    assert parse_constraints(write(document)).constraint_set == constraint_set
    assert to_document(parse_constraints(document).constraint_set) == document


@given(st.text(min_size=1, max_size=6).filter(lambda name: name.strip() and name.isprintable()))
def test_names_in_lists_are_taken_as_they_are(name: str) -> None:
    constraint_set = ConstraintSet((Prior(name, "B"),), frozenset({name}))
    for write in (json.dumps, yaml.safe_dump):
        assert parse_constraints(write(to_document(constraint_set))).constraint_set == constraint_set


PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN_VALUES)
def test_whatever_comes_is_read_or_refused(document: object) -> None:
    for form in (document, {"settings": document, "prior": []}, json.dumps(document), yaml.safe_dump(document)):
        try:
            problems = parse_constraints(form).notices
        except InvalidConstraints as error:
            problems = tuple(map(str, error.problems))
        assert all(problems)

"""The settings of a document: how they are read, refused, reported and written."""

import json
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from constraints import ConstraintSet, InvalidConstraints, Prior, Settings, parse_constraints, to_document
from nfa import OnViolation, Prune

ALL = {
    "prune": "query",
    "on_violation": "fail_trace",
    "unknown_types": "deviate",
    "completion": "not_assumed",
    "types": ["X", "Order [old]"],
    "frequencies": {"A": 0.25, "B [v > 1]": 1, "`C [d]`": 0},
    "max_monitor_states": 100,
}
EXPECTED = Settings(
    prune=Prune.QUERY,
    on_violation=OnViolation.FAIL_TRACE,
    unknown_types="deviate",
    completion="not_assumed",
    types=frozenset({"X", "Order [old]"}),
    frequencies={"A": 0.25, "B [v > 1]": 1.0, "C [d]": 0.0},
    max_monitor_states=100,
)


def problems_of(document: object) -> list[str]:
    with pytest.raises(InvalidConstraints) as caught:
        parse_constraints(document)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump, lambda value: value])
def test_all_settings(write: Callable[[object], object]) -> None:
    document = {"settings": ALL, "prior": [["A", "B [v>1]"]]}
    constraint_set = parse_constraints(write(document)).constraint_set
    assert constraint_set.settings == EXPECTED
    assert to_document(constraint_set)["settings"] == {**ALL, "types": ["Order [old]", "X"]}


def test_what_is_not_said_is_the_default_and_is_not_written() -> None:
    constraint_set = parse_constraints({"settings": {}, "prior": [["A", "B"]]}).constraint_set
    assert constraint_set == ConstraintSet((Prior("A", "B"),))
    assert to_document(constraint_set) == {"constraints": [{"prior": ["A", "B"]}], "end": []}


@pytest.mark.parametrize("document", ["settings: {prune: off}\nend: []", {"settings": {"prune": False}, "end": []}])
def test_off_is_a_word_also_where_yaml_takes_it_for_a_truth_value(document: object) -> None:
    assert parse_constraints(document).constraint_set.settings.prune is Prune.OFF


def test_every_problem_is_named_with_its_place() -> None:
    document = """settings:
  prune: sometimes
  on_violation: yes
  banana: 1
  types: [X, 3]
  frequencies:
    A: 2
    'B [': 0.5
    'B [v>1]': 0.5
    'B [v > 1]': 0.5
  max_monitor_states: 0.5
prior: [[A]]
"""
    assert problems_of(document) == [
        'settings, prune, line 2: prune is one of state, query, shadow, off; got "sometimes"',
        "settings, on_violation, line 3: on_violation is one of report, fail_trace, ignore; got yes",
        (
            'settings, banana, line 4: "banana" is not a setting; use one of prune, on_violation, unknown_types, '
            "completion, types, frequencies, max_monitor_states, beyond_cap, reopen"
        ),
        "settings, types, entry 2, line 5: an event type is a text, got 3; put it in quotes",
        "settings, frequencies, A, line 7: a frequency is a number from 0 to 1; got 2",
        (
            'settings, frequencies, B [, line 8: cannot read "B [" as an event type with a condition on its '
            "attributes: the text ends; expected '(', '-', CASE, FALSE, NOT, NULL, TRUE, a name, a number or a text "
            'in single quotes; an event type that only looks like one is written {type: "B ["}'
        ),
        'settings, frequencies, B [v > 1], line 10: the frequency of "B [v > 1]" is given twice; give it once',
        "settings, max_monitor_states, line 11: max_monitor_states is a whole number from 1 to 1000000; got 0.5",
        "prior, entry 1, line 12: prior(A, B) takes 2 event types, got prior(A)",
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (None, "settings: settings are a mapping, such as {prune: state}; got null"),
        (["prune"], 'settings: settings are a mapping, such as {prune: state}; got ["prune"]'),
        ({"prune": True}, "settings, prune: prune is one of state, query, shadow, off; got true"),
        ({"prune": ["state"]}, 'settings, prune: prune is one of state, query, shadow, off; got ["state"]'),
        ({"completion": False}, "settings, completion: completion is one of assumed, not_assumed; got false"),
        ({"types": "A"}, 'settings, types: types is a list of at most 10000 event types, such as [A, B]; got "A"'),
        ({"frequencies": {"A": True}}, "settings, frequencies, A: a frequency is a number from 0 to 1; got true"),
        ({"frequencies": {"A": "x"}}, 'settings, frequencies, A: a frequency is a number from 0 to 1; got "x"'),
        (
            {"frequencies": {"A": float("nan")}},
            "settings, frequencies, A: a frequency is a number from 0 to 1; got NaN",
        ),
        ({"frequencies": {3: 0.5}}, "settings, frequencies, 3: an event type is a text, got 3; put it in quotes"),
        (
            {"max_monitor_states": 10**9},
            "settings, max_monitor_states: max_monitor_states is a whole number from 1 to 1000000; got 1000000000",
        ),
    ],
    ids=str,
)
def test_a_setting_that_is_wrong(settings: object, problem: str) -> None:
    assert problems_of({"settings": settings, "end": []}) == [problem]


def test_a_document_with_settings_alone_lists_no_constraint() -> None:
    (problem,) = problems_of({"settings": {}, "stream": "orders"})
    assert problem.startswith("list at least one constraint")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"on_violation": "ignore"}, ["matches in them may be lost"]),
        ({"on_violation": "fail_trace"}, ["later matches in that trace are not reported"]),
        ({"types": ["X"]}, ["types has no effect unless unknown_types is deviate"]),
        ({"types": ["X"], "unknown_types": "deviate"}, []),
        ({"prune": "shadow", "on_violation": "report"}, []),
    ],
    ids=str,
)
def test_what_settings_give_up_is_told(settings: dict[str, object], words: list[str]) -> None:
    notices = parse_constraints({"settings": settings, "end": []}).notices
    assert len(notices) == len(words)
    assert all(word in notice for word, notice in zip(words, notices, strict=True))


@given(
    st.builds(
        Settings,
        prune=st.sampled_from(Prune),
        on_violation=st.sampled_from(OnViolation),
        unknown_types=st.sampled_from(["ignore", "deviate"]),
        completion=st.sampled_from(["assumed", "not_assumed"]),
        types=st.frozensets(st.sampled_from(["X", "`y`", "Order [old]"])),
        frequencies=st.dictionaries(st.sampled_from(["A", "`y`", "``", "a [b", "`a` [b]"]), st.floats(0, 1)),
        max_monitor_states=st.integers(1, 1_000_000),
    )
)
def test_round_trip(settings: Settings) -> None:
    constraint_set = ConstraintSet(settings=settings)
    document = to_document(constraint_set)
    for form in (document, json.dumps(document), yaml.safe_dump(document)):
        assert parse_constraints(form).constraint_set == constraint_set

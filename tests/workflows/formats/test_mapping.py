"""Mapping files."""

import pytest

from workflows.errors import ModelRefused
from workflows.formats.mapping import event_type, read_mapping, unused_keys

REFUSED = [
    ("", "", "the text is empty"),
    ("- a", "line 1", "a mapping file lists names and event types"),
    ("a: [b]", "line 1", "a: an event type is a text, or null"),
    ("a: b\n\nc: 5", "line 3", 'c: an event type is a text; put quotes around it: "5"'),
    ("a: b\nc:", "line 2", "c: give its event type, or null for a task without event"),
    ("a: ''", "line 1", "a: the name is empty"),
    ("'': a", "line 1", "a task needs a name or an id"),
    ("a b: x\na  b: y", "line 2", "'a b' is given twice"),
    ("a: x\na: y", "line 2", "the key 'a' is given twice"),
    ('{"a": "\\ud800"}', "line 1", "is half a character"),
    ("a: &x b", "line 1", "anchors and aliases are not allowed"),
]


def test_names_and_ids_become_event_types() -> None:
    text = '"Ship  it": Shipped\nTask_7: "Pay ment "\n42: Answer\nskip: null\nstart: ~\n"No": "No"\n'
    assert read_mapping(text) == {
        "Ship it": "Shipped",
        "Task_7": "Pay ment",
        "42": "Answer",
        "skip": None,
        "start": None,
        "No": "No",
    }
    assert read_mapping('{"a": "b",\t"c": null}') == {"a": "b", "c": None}
    assert read_mapping("{}") == {}


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_what_is_wrong_is_said_with_its_line(text: str, place: str, message: str) -> None:
    with pytest.raises(ModelRefused) as caught:
        read_mapping(text)
    assert [(where, message in said) for where, said in caught.value.problems] == [(place, True)], caught.value


def test_all_problems_are_listed() -> None:
    with pytest.raises(ModelRefused) as caught:
        read_mapping("a: 5\nb: [c]\nd: e\nf: true")
    assert [place for place, _ in caught.value.problems] == ["line 1", "line 2", "line 4"]


def test_ids_win_over_names() -> None:
    mapping = {"T1": "by id", "Ship": "by name", "Pay": None}
    assert event_type(mapping, "T1", "Ship", "Ship") == "by id"
    assert event_type(mapping, "T2", "Ship", "Ship") == "by name"
    assert event_type(mapping, "T3", "Pay", "Pay") is None
    assert event_type(mapping, "T4", "", None) is None
    assert event_type(mapping, "T4", "Other", "Other") == "Other"
    assert [str(notice) for notice in unused_keys(mapping, ["T1", "Pay"])] == [
        "the mapping names 'Ship', which is not a task of this model"
    ]

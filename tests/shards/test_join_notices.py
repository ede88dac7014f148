"""Members of a join that can do nothing, and comparisons that are always null, are named."""

from dataclasses import replace
from typing import Any

import pytest

from shards.kinds.joins import JoinKind
from streams import StreamDeclaration

KIND = JoinKind()
STREAMS = {
    "orders": StreamDeclaration(name="orders"),
    "parcels": StreamDeclaration(name="parcels", keys={"order": "data.order"}),
    "alarms": replace(StreamDeclaration(name="alarms"), derived=True),
}
BASE: dict[str, Any] = {
    "name": "j",
    "inputs": [
        {"stream": "orders", "as": "o", "window": "1 h"},
        {"stream": "parcels", "as": "q", "window": "1 h", "key": "order"},
    ],
    "return": {"o": "id(o)"},
}


def notices(document: dict[str, Any], *, has_constraints: bool = False) -> list[str]:
    """The notices about members; the notice about the number of results has a test of its own."""
    definition = KIND.read(document, STREAMS.__getitem__)
    found = KIND.notices(definition, STREAMS.__getitem__, lambda stream: has_constraints)
    return [one for one in found if not one.startswith("Nothing bounds")]


def changed(number: int, **members: Any) -> dict[str, Any]:
    inputs = [{**one, **members} if place == number else one for place, one in enumerate(BASE["inputs"])]
    return {**BASE, "inputs": inputs}


@pytest.mark.parametrize(
    ("document", "notice"),
    [
        (changed(0, closed_by="workflow"), "'orders' follows no workflow and has no constraints"),
        (changed(1, key="data.other", closed_by="end"), "the stream 'parcels' does not declare its key 'data.other'"),
        (changed(0, retractions="2 h"), "the stream 'orders' takes posted events"),
        (changed(0, retractions="event"), "the stream 'orders' takes posted events"),
        (changed(0, stream="alarms", key="data.k", retractions="take"), "an attribute that retractions do not have"),
        (changed(1, key="data..k"), "the path 'data..k' has an empty name"),
        ({**BASE, "return": {"a": "o.id"}}, "the id of the event is id(o)"),
        ({**BASE, "return": {"a": "o.time"}}, "the time of the event is time(o)"),
        ({**BASE, "where": "q.time >= time(o)"}, "where: q.time reads the attribute 'time'"),
        ({**BASE, "where": "id(o) = 0"}, "where: id(o) is a text, and 0 a number: comparing them is always null"),
        ({**BASE, "return": {"a": "o..x"}}, "the path '.x' has an empty name"),
        ({**BASE, "emit": "on_close", "return": {"a": "first(o.type)"}}, "the type of the event is type(o)"),
    ],
)
def test_a_member_that_can_do_nothing_is_named(document: dict[str, Any], notice: str) -> None:
    if document.get("emit") == "on_close":
        document = {**document, "inputs": [{**one, "closed_by": "unique"} for one in document["inputs"]]}
    (found,) = notices(document)
    assert notice in found


@pytest.mark.parametrize(
    "document",
    [
        BASE,
        changed(1, closed_by="end"),
        changed(1, key="data.other", closed_by=["punctuation", "unique"]),
        changed(0, stream="alarms", retractions="2 h"),
        {**BASE, "return": {"a": "o.data.id", "b": "q.id2"}},
        {**BASE, "where": "time(q) >= time(o) AND q.data.time = 1"},
    ],
)
def test_members_that_do_something_are_not(document: dict[str, Any]) -> None:
    assert notices(document) == []


def test_constraints_finish_keys() -> None:
    document = changed(0, closed_by="workflow")
    assert notices(document, has_constraints=True) == []

"""Comparisons of an aggregate that are always null are named."""

import pytest

from shards.kinds.aggregates import AggregateKind
from streams import StreamDeclaration

KIND = AggregateKind()
VALUES = {"n": "count()", "users": "distinct(user)", "mean": "avg(v)", "top": "max(v)"}
BASE = {"name": "a", "of": "s", "by": ["k"], "values": VALUES, "window": "1 h"}


def notices(**members):
    definition = KIND.read({**BASE, **members}, lambda name: StreamDeclaration(name=name))
    return KIND.notices(definition, lambda name: StreamDeclaration(name=name), lambda stream: False)


@pytest.mark.parametrize(
    ("members", "notice"),
    [
        ({"having": "n >= '1'"}, "having: n is a number, and '1' a text: comparing them is always null; write 1"),
        ({"having": "users > 2 AND mean < '0.5'"}, "having: mean is a number, and '0.5' a text"),
        ({"having": "before(users, 1 h) = 'x'"}, "is a number, and 'x' a text"),
        ({"having": "all(n) IN ('1', '2')"}, "all(n)` is a number, and '1' a text"),
        (
            {"where": "type = 5"},
            "type(event) is a text, and 5 a number: comparing them is always null; write '5'",
        ),
        ({"where": "v > 3 AND key = 5"}, "where: event.key is a text, and 5 a number"),
        ({"values": {"n": "count_if(type = 5)"}}, "values, n: type(event) is a text, and 5 a number"),
    ],
)
def test_a_comparison_that_is_always_null_is_named(members, notice):
    (found,) = notices(**members)
    assert notice in found


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"having": "n >= 1 AND top > 'x' AND k = '1' AND before(top, 1 h) = 'y' AND all(n) > 3"},
        {"where": "type = 'A' AND key IN ('x') AND user = 5", "values": {"n": "count_if(v > 'x')"}},
    ],
)
def test_other_comparisons_are_not_named(members):
    assert notices(**members) == []

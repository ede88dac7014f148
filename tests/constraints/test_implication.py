"""Whether one condition implies another: never wrongly, and wherever comparisons with constants settle it."""

from random import Random

import pytest

from constraints.implication import Condition, implies
from house.examples import Draws
from nfa import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    parse_pattern,
)
from streams import Event
from tests.builders.constraints import SIGNS
from tests.references.patterns.values import takes

NUMBERS = [-1, 0, 0.5, 1, 1.5, 2, 3, 2**53 + 1, float(2**53), float("nan")]
VALUES: list[object] = [None, True, False, *NUMBERS, "", "a", "aa", "b", "c", {}]


def step(text: str) -> Atom:
    event = parse_pattern(f"PATTERN p EVENT {text}").event
    assert isinstance(event, Atom)
    return event


def is_implied(premise: str, conclusion: str) -> bool:
    return implies(Condition(step(premise)), Condition(step(conclusion)))


@pytest.mark.parametrize(
    ("premise", "conclusion"),
    [
        ("Q q [price > 1000]", "Q s"),
        ("Q q [price > 1000]", "Q s [price > 500]"),
        ("Q q [q.price > 1000]", "Q s [s.price >= 1000]"),
        ("Q q [1000 < price]", "Q s [price >= 1000]"),
        ("Q q [price = 7]", "Q s [price != 8]"),
        ("Q q [price = -7.0]", "Q s [price < -6]"),
        ("Q q [price > 1000]", "Q s [price IS NOT NULL]"),
        ("Q q [price > 1000]", "Q s [NOT (price <= 1000)]"),
        ("Q q [NOT (price <= 1000)]", "Q s [price > 1000]"),
        ("Q q [price IN (1, 2)]", "Q s [price IN (1, 2, 3)]"),
        ("Q q [price IN (1, 2)]", "Q s [price > 0 AND price < 3]"),
        ("Q q [price > 0 AND price < 3]", "Q s [price > 0]"),
        ("Q q [price > 5 OR price < 1]", "Q s [price != 3]"),
        ("Q q [kind = 'b']", "Q s [kind > 'a']"),
        ("Q q [kind NOT IN ('a', 'b')]", "Q s [kind != 'a']"),
        ("Q q [is_big]", "Q s [is_big = TRUE]"),
        ("Q q [a = 1 AND b = 2]", "Q s [b = 2 OR c = 3]"),
        ("Q q [name LIKE 'a%' AND price > 3]", "Q s [name LIKE 'a%']"),
        ("Q q [q.price * 2 > 3]", "Q s [price * 2 > 3]"),
        ("Q q [(a = 1 AND b > 3) OR (a = 2 AND b > 4)]", "Q s [b > 3 AND a IN (1, 2)]"),
        ("Q q", "Q s [price IS NULL OR price IS NOT NULL]"),
        ("Q q [price != 1]", "Q s [price < 1 OR price > 1]"),  # a text is neither equal to 1 nor not
        ("Q q [NOT (price IN (1, 'a'))]", "Q s [price > 1]"),  # never true, whatever the price
    ],
)
def test_certain(premise: str, conclusion: str) -> None:
    assert is_implied(premise, conclusion)


@pytest.mark.parametrize(
    ("premise", "conclusion"),
    [
        ("Q q", "R s"),
        ("Q q", "Q s [price > 0]"),
        ("Q|R q [price > 1]", "Q s [price > 1]"),
        ("_ q [price > 1]", "Q s [price > 1]"),
        ("Q q [price >= 1000]", "Q s [price > 1000]"),
        ("Q q [price > 500]", "Q s [price > 1000]"),
        ("Q q [price <= 'a']", "Q s [price <= 1]"),
        ("Q q [NOT (price > 5 AND kind = 'a')]", "Q s [price <= 5]"),
        ("Q q [name LIKE 'ab%']", "Q s [name LIKE 'a%']"),  # true, and not known
        ("Q q [price > 9007199254740992]", "Q s [price > 9007199254740992.0]"),  # false for 2**53 + 1
        ("Q q [price * 2 > 3]", "Q s [price > 1.5]"),
        ("Q q [price = 1 OR kind = 'a']", "Q s [price = 1]"),
    ],
)
def test_not_certain(premise: str, conclusion: str) -> None:
    assert not is_implied(premise, conclusion)


def test_what_depends_on_other_events_says_nothing() -> None:
    event = parse_pattern("PATTERN p EVENT SEQ(A a, Q q [price > a.price AND size > 3])").event
    assert not isinstance(event, Atom)
    second = next(part for part in event.parts if isinstance(part, Atom) and part.alias == "q")  # type: ignore[union-attr]
    assert implies(Condition(second), Condition(step("Q s [size > 2]")))
    assert not implies(Condition(second), Condition(step("Q s [price > 0]")))
    assert not implies(Condition(second), Condition(second))


def random_condition(random: Random, depth: int) -> Expression:
    """Over the attributes ``x`` and ``y``."""
    attribute = Attribute((random.choice("xxy"),), random.choice([None, "q"]))
    if depth and random.random() < 0.6:
        parts = tuple(random_condition(random, depth - 1) for _ in range(2))
        joined: list[Expression] = [Both(parts), Either(parts), Not(parts[0])]
        return random.choice(joined)
    constants = [Literal(random.choice([0, 1, 2, 1.0, 0.5, "a", "b", 2**53, True, None])) for _ in range(2)]
    constant: Expression = constants[0]
    if isinstance(constants[0].value, int | float) and random.random() < 0.2:
        constant = Negative(constants[0])
    sign = random.choice(SIGNS)
    choices: list[Expression] = [
        Comparison(sign, attribute, constant),
        Comparison(sign, constant, attribute),
        InList(attribute, tuple(constants)),
        IsNull(attribute),
        Like(attribute, "a%"),
        attribute,
    ]
    return random.choices(choices, [5, 1, 2, 1, 1, 1])[0]


def test_never_wrong(draws: Draws) -> None:
    random = Random(5)
    data = [{"x": x, "y": y} for x in VALUES for y in (None, 0, 1, "a")]
    events = [Event(id="1", type="Q", key="k", time_us=0, data=one) for one in data]
    implied = 0
    for _ in (cases := draws(4_000)):
        premise = Atom(("Q",), "q", random_condition(random, 2))
        conclusion = Atom(("Q",), "q", random_condition(random, random.choice([0, 1, 2])))
        if implies(Condition(premise), Condition(conclusion)):
            implied += 1
            assert all(takes(conclusion, event) for event in events if takes(premise, event)), (premise, conclusion)
    assert implied > 0.075 * len(cases)


def test_complete_for_comparisons_of_one_attribute(draws: Draws) -> None:
    """With whole constants in reach of the values tried, what holds for these values is implied."""
    random = Random(6)
    events = [
        Event(id="1", type="Q", key="k", time_us=0, data={"x": value})
        for value in (None, True, False, "a", "b", *(number / 2 for number in range(-4, 10)))
    ]

    def one() -> Expression:
        return Comparison(random.choice(SIGNS), Attribute(("x",)), Literal(random.randrange(4)))

    for _ in draws(2_000):
        parts = tuple(one() for _ in range(random.choice([2, 3])))
        premise = Atom(("Q",), "q", Both(parts) if random.random() < 0.5 else Either(parts))
        conclusion = Atom(("Q",), "q", Not(one()) if random.random() < 0.5 else one())
        holds = all(takes(conclusion, event) for event in events if takes(premise, event))
        assert implies(Condition(premise), Condition(conclusion)) == holds, (premise, conclusion)


def test_conditions_with_very_many_constants_follow_from_themselves_only() -> None:
    many = ", ".join(map(str, range(300)))
    alternatives = " OR ".join(f"price = {number}" for number in range(300))
    assert is_implied(f"Q q [price IN ({many}) AND kind = 'a']", f"Q s [price IN ({many})]")
    assert is_implied(f"Q q [{alternatives}]", f"Q s [{alternatives}]")
    assert not is_implied("Q q [price = 7]", f"Q s [price IN ({many})]")
    assert not is_implied(f"Q q [price IN ({many})]", "Q s [price >= 0]")

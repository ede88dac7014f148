"""Strategies and a harness for tests of the matcher: random patterns, random streams, any split into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from nfa.errors import PatternRefused
from nfa.language.description import describe_pattern
from nfa.language.parsing import parse_pattern
from nfa.matcher import Matcher
from nfa.results.batch import Ending, Match, match_order
from nfa.syntax import (
    ANY_TYPE,
    After,
    AfterRule,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
    ComparisonOperator,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    Gap,
    InList,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Pattern,
    Repeat,
    Selection,
    can_be_empty,
)
from nfa.syntax import Sequence as Ordered
from streams import Event, EventBatch

_T = TypeVar("_T")

TYPES = ("A", "B", "C", "D")

FEATURES = frozenset(
    (
        "or and optional kleene bounded next strict gap_limit not_between not_leading not_trailing until greedy span "
        "within cross aggregates where after limit timeouts types any_type returns"
    ).split()
)

_AFTER_RULES: tuple[AfterRule, ...] = (
    "once_per_key",
    "skip_to_next",
    "skip_past_last",
    "skip_to_first",
    "skip_to_last",
)
_SELECTIONS: tuple[Selection, ...] = ("all", "next", "strict")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([-0.5, 0.0, 1.0, 2.5]),
    st.sampled_from(["", "a", "b"]),
)
attributes = st.sampled_from([Attribute(("v",)), Attribute(("w",)), Attribute(("n", "x"))])
literals = scalars.map(Literal)
signs: st.SearchStrategy[ComparisonOperator] = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def sequence(*parts: Node) -> Ordered:
    """A sequence of positive parts without gaps of their own."""
    return Ordered(tuple(Item(of=part) for part in parts))


def values(depth: int = 1) -> st.SearchStrategy[Expression]:
    """Random expressions on one event, except comparisons."""
    leaves: st.SearchStrategy[Expression] = st.one_of(attributes, literals)
    if depth == 0:
        return leaves
    inner = values(depth - 1)
    return st.one_of(
        leaves,
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/"]), inner, inner),
        st.builds(Negative, attributes),
        st.builds(lambda some, last: Call("coalesce", (*some, last)), st.lists(inner, max_size=1), attributes),
    )


def conditions(depth: int = 2) -> st.SearchStrategy[Expression]:
    """Random step conditions on one event."""
    leaves = st.one_of(
        st.builds(Comparison, signs, values(), values()),
        st.builds(Comparison, signs, attributes, literals),
        st.builds(IsNull, attributes),
        st.builds(InList, attributes, st.lists(literals, min_size=1, max_size=3).map(tuple)),
        st.builds(Like, attributes, st.sampled_from(["a%", "%", "_", "b", ""])),
        attributes,
    )
    if depth == 0:
        return leaves
    inner = conditions(depth - 1)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(leaves, st.builds(Not, inner), st.builds(Both, several), st.builds(Either, several))


@st.composite
def nodes(draw: st.DrawFn, *, types: Sequence[str] = TYPES, max_atoms: int = 5, with_conditions: bool = True) -> Node:
    """A random composite event of SEQ, AND and OR with 1 to ``max_atoms`` atoms with distinct aliases."""
    budget = draw(st.integers(1, max_atoms))
    condition = st.one_of(st.none(), st.none(), conditions(1)) if with_conditions else st.none()
    numbers = iter(range(max_atoms))

    def build(size: int) -> Node:
        if size == 1:
            return Atom((draw(st.sampled_from(types)),), f"a{next(numbers)}", draw(condition))
        parts = [build(part) for part in draw(_sizes(size))]
        composite: Callable[..., Node] = draw(st.sampled_from([sequence, _conjunction, _disjunction]))
        return composite(*parts)

    return build(budget)


@st.composite
def patterns(
    draw: st.DrawFn,
    *,
    features: Iterable[str] = FEATURES,
    types: Sequence[str] = TYPES[:3],
    max_atoms: int = 4,
    name: str = "p",
) -> Pattern:
    """A random pattern of the whole language that the front end accepts, with 1 to ``max_atoms`` positive atoms.

    Constructs in ``features`` may occur; SEQ and conditions on one event may always occur. A pattern can use all of
    them or just a few.
    """
    allowed = sorted(features)
    assert FEATURES.issuperset(allowed), f"unknown features in {allowed}"
    some = st.sets(st.sampled_from(allowed), max_size=6) if allowed else st.just(set[str]())
    builder = _Builder(draw, frozenset(draw(st.one_of(st.just(set(allowed)), some, some))), types)
    draft = builder.pattern(name, draw(st.sampled_from([*range(1, max_atoms + 1), *range(2, max_atoms + 1)])))
    try:
        return parse_pattern(describe_pattern(draft))
    except PatternRefused as refusal:
        if refusal.reason in ("syntax", "unknown-alias", "duplicate-alias"):
            raise
        reject()


@dataclass(frozen=True, slots=True)
class _View:
    """The aliases that a condition may read (groups through aggregates), and whether the edges of a part are gaps."""

    single: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    is_begin_open: bool = True
    is_end_open: bool = True
    most: int | None = 1  # iterations of the repetition around; bounds its contents, to keep the reference feasible
    loop_size: int = 0  # atoms of the repetition's body

    def plus(self, other: _View) -> _View:
        return replace(self, single=self.single + other.single, groups=self.groups + other.groups)


@dataclass(slots=True)
class _Builder:
    """Draws patterns that are valid by construction, except for rare cases that the front end refuses."""

    draw: st.DrawFn
    features: frozenset[str]
    types: Sequence[str]
    count: int = field(default=0)

    def has(self, feature: str, chance: int = 3) -> bool:
        """Whether to use a feature, with a chance of one in ``chance``."""
        return feature in self.features and self.one_in(chance)

    def one_in(self, chance: int) -> bool:
        return self.draw(st.integers(1, chance)) == chance

    def pick(self, several: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(several))

    def pattern(self, name: str, size: int) -> Pattern:
        event, known = self.node(size, _View(), is_top=True)
        within_us = self.duration(14) if self.has("within", 2) or self.has("timeouts", 2) else None
        aliases = known.single + known.groups
        rule = self.pick(_AFTER_RULES)
        alias = self.pick(aliases) if rule in ("skip_to_first", "skip_to_last") else None
        return Pattern(
            name=name,
            event=event,
            where=self.finished_condition(known) if self.has("where") else None,
            within_us=within_us,
            select=self.pick([select for select in _SELECTIONS if select == "all" or select in self.features]),
            after=After(rule, alias) if self.has("after") else After(),
            limit=self.draw(st.integers(1, 3)) if self.has("limit") else None,
            timeouts=within_us is not None and self.has("timeouts", 2),
            returns=(Column(self.value(known), "c0"), Column(self.value(known), "c1")) if self.has("returns") else (),
        )

    def duration(self, most: int = 5) -> int:
        return self.draw(st.integers(1, most))

    def gap(self) -> Gap | None:
        mode = self.pick(["any", *sorted(self.features & {"next", "strict"})]) if self.one_in(2) else None
        within_us = self.duration() if self.has("gap_limit", 4) else None
        if not self.features & {"next", "strict"}:
            mode = None
        return None if mode is None and within_us is None else Gap(mode, within_us)  # type: ignore[arg-type]

    def node(self, size: int, view: _View, *, is_top: bool = False) -> tuple[Node, _View]:
        """A part with ``size`` atoms, and the aliases in it that later conditions may read."""
        is_repeated = self.one_in(3)
        bounds = self.bounds(view, size) if is_repeated else None
        inner = view if bounds is None or bounds[1] == 1 else replace(view, most=bounds[1], loop_size=size)
        node, known = self.atom(view) if size == 1 else self.composite(size, inner, is_top=is_top)
        if bounds is None or can_be_empty(node):
            return node, known
        least, most = bounds
        until, _ = self.atom(view, is_positive=False) if self.has("until") else (None, None)
        repeat = Repeat(
            of=node,
            min=least,
            max=most,
            each=self.gap() if self.one_in(2) else None,
            until=until,
            greedy=isinstance(node, Atom) and view.is_end_open and self.has("greedy", 2),
        )
        return repeat, known if most == 1 else _View(groups=known.single + known.groups)

    def bounds(self, view: _View, size: int) -> tuple[int, int | None] | None:
        kinds: list[tuple[int, int | None]] = []
        if "optional" in self.features:
            kinds += [(0, 1)]
        if "bounded" in self.features:
            kinds += [(2, 2), (1, 2), (0, 2), (2, 3)] if view.most == 1 else [(2, 2)]
        if "kleene" in self.features and (view.most == 1 or (size == 1 and view.most is not None)):
            kinds += [(1, None), (0, None), (1, None), (2, None)]
        return self.pick(kinds) if kinds else None

    def composite(self, size: int, view: _View, *, is_top: bool) -> tuple[Node, _View]:
        within_us = self.duration() if not is_top and self.has("span", 4) else None
        if within_us is not None:
            view = replace(view, is_begin_open=False, is_end_open=False)
        sizes = self.draw(_sizes(size))
        too_many = {"or"} if view.loop_size > 2 else set()  # choices in each iteration
        kind = self.pick(["seq", "seq", *sorted((self.features & {"and", "or"}) - too_many)])
        if kind == "seq":
            return self.sequence(sizes, view, within_us)
        if kind == "and":
            view = replace(view, is_begin_open=False, is_end_open=False)
        built = [self.node(part, view) for part in sizes]
        known = _View()
        for _, part in built:
            known = known.plus(part)
        make = Conjunction if kind == "and" else Disjunction
        return make(tuple(part for part, _ in built), within_us), known

    def sequence(self, sizes: Sequence[int], view: _View, within_us: int | None) -> tuple[Node, _View]:
        is_anchored = self.one_in(2)  # the last step always occurs: before it all edges are gaps
        seen, known = view, _View()
        items: list[Item] = []
        for number, size in enumerate(sizes):
            is_last = number == len(sizes) - 1
            is_open = view.is_end_open or (is_anchored and not is_last and sizes[-1] == 1)
            is_plain = is_last and is_anchored and size == 1
            node, found = self.atom(seen) if is_plain else self.node(size, replace(seen, is_end_open=is_open))
            items.append(Item(of=node, gap=self.gap() if number and self.one_in(2) else None))
            seen, known = seen.plus(found), known.plus(found)
            seen = replace(seen, is_begin_open=seen.is_begin_open or not can_be_empty(node))
        return Ordered(tuple(self.with_negations(items, view)), within_us), known

    def with_negations(self, items: list[Item], view: _View) -> list[Item]:
        is_needed = [item.of is not None and not can_be_empty(item.of) for item in items]
        found = []
        for place in range(len(items) + 1):
            has_before, has_after = any(is_needed[:place]), any(is_needed[place:])
            feature = "not_between" if has_before and has_after else "not_trailing" if has_before else "not_leading"
            is_allowed = (has_before or view.is_begin_open) and (has_after or view.is_end_open)
            if is_allowed and {feature, "not_between" if has_after else "not_trailing"} & self.features >= {feature}:
                number = sum(self.one_in(5) for _ in range(2))
                found += [self.negation(view, is_first=place == 0, has_after=has_after) for _ in range(number)]
            found += items[place : place + 1]
        return found

    def negation(self, view: _View, *, is_first: bool, has_after: bool) -> Item:
        atom, _ = self.atom(view, is_positive=False)
        within_us = self.duration() if not is_first and self.has("gap_limit") else None
        is_strict = not is_first and has_after and self.has("strict", 4)
        gap = Gap("strict" if is_strict else None, within_us) if is_strict or within_us is not None else None
        return Item(negated=atom, gap=gap)

    def atom(self, view: _View, *, is_positive: bool = True) -> tuple[Atom, _View]:
        alias = f"{'a' if is_positive else 'n'}{self.count}"
        self.count += 1
        names: tuple[str, ...] = (self.pick(self.types),)
        if self.has("types", 5) and len(self.types) > 1:
            names = tuple(self.types[:2])
        if self.has("any_type", 6):
            names = (ANY_TYPE,)
        condition = self.step_condition(alias, view, is_positive=is_positive) if self.one_in(5) else None
        return Atom(names, alias, condition), _View(single=(alias,))

    def step_condition(self, alias: str, view: _View, *, is_positive: bool) -> Expression:
        if self.has("cross", 2) and view.single:
            other = self.pick(view.single)
            if self.one_in(6):
                return Comparison(self.draw(signs), _key(alias), _key(other))
            return self.compared(Attribute(("v",), other))
        if self.has("aggregates", 2):
            if is_positive and self.one_in(3):
                previous = Call("prev", (Attribute(("v",)),))
                return self.compared(Call("coalesce", (previous, Literal(self.draw(st.integers(0, 2))))))
            owner = self.pick([alias, *view.groups, *view.single])
            return Comparison(self.draw(signs), self.aggregate(owner), Literal(self.draw(st.integers(0, 5))))
        if self.one_in(8):
            return Comparison(self.draw(signs), _key(alias), Literal(self.pick(["k", "l"])))
        return self.draw(conditions(0)) if self.one_in(2) else self.compared(Literal(self.draw(st.integers(0, 3))))

    def compared(self, right: Expression) -> Expression:
        return Comparison(self.draw(signs), Attribute(("v",)), right)

    def aggregate(self, alias: str) -> Expression:
        name = self.pick(["count", "sum", "min", "max", "avg", "first", "last"])
        bare = name == "count" and self.one_in(2)
        return Call(name, (Attribute(() if bare else ("v",), alias),))

    def value(self, known: _View) -> Expression:
        if known.single and self.one_in(2):
            alias = self.pick(known.single)
            return _key(alias) if self.one_in(6) else Attribute(("v",), alias)
        return self.aggregate(self.pick(known.single + known.groups))

    def finished_condition(self, known: _View) -> Expression:
        right = self.value(known) if self.one_in(2) else Literal(self.draw(st.integers(0, 3)))
        return Comparison(self.draw(signs), self.value(known), right)


def _key(alias: str) -> Call:
    return Call("key", (Attribute((), alias),))


def _conjunction(*parts: Node) -> Node:
    return Conjunction(parts)


def _disjunction(*parts: Node) -> Node:
    return Disjunction(parts)


def _sizes(size: int) -> st.SearchStrategy[list[int]]:
    """Ways to write ``size`` as a sum of two or more."""
    cuts = st.sets(st.integers(1, size - 1), min_size=1, max_size=size - 1).map(sorted)
    return cuts.map(lambda places: [end - start for start, end in pairwise([0, *places, size])])


@st.composite
def traces(draw: st.DrawFn, *, types: Sequence[str] = TYPES[:3], max_size: int = 8, key: str = "k") -> list[Event]:
    """Random events of one trace in log order, with ties, gaps and nulls; small values make conditions true often."""
    value = st.sampled_from([0, 1, 2, 3, 1, 2, None, 1.5, "a"])
    row = st.tuples(st.sampled_from(types), st.sampled_from([0, 1, 1, 2]), value)
    size = min(draw(st.integers(0, 3 * max_size)), max_size)
    rows = draw(st.lists(row, min_size=size, max_size=size))
    events, now = [], 0
    for number, (event_type, gap, v) in enumerate(rows):
        now += gap
        payload = {} if v is None else {"v": v}
        events.append(Event(id=f"e{number}", type=event_type, time_us=now, key=key, data=payload))
    return events


@st.composite
def event_lists(
    draw: st.DrawFn, *, types: Sequence[str] = TYPES, max_size: int = 10, keys: Sequence[str] = ("k", "l")
) -> list[Event]:
    """Random events in log order, with ties, gaps and nulls."""
    rows = draw(
        st.lists(st.tuples(st.sampled_from(types), st.sampled_from(keys), st.integers(0, 2), data()), max_size=max_size)
    )
    events, now = [], 0
    for number, (event_type, key, gap, attributes_) in enumerate(rows):
        now += gap
        events.append(Event(id=f"e{number}", type=event_type, time_us=now, key=key, data=attributes_))
    return events


def data() -> st.SearchStrategy[dict[str, Any]]:
    """Random attributes that the random conditions read."""
    nested = st.fixed_dictionaries({}, optional={"x": scalars})
    return st.fixed_dictionaries({}, optional={"v": scalars, "w": scalars, "n": st.one_of(nested, scalars)})


def splits(size: int) -> st.SearchStrategy[list[int]]:
    """Ascending places at which to cut a list of ``size`` elements."""
    return st.sets(st.integers(0, size), max_size=4).map(sorted)


def batches(events: Sequence[Event], cuts: Iterable[int]) -> list[EventBatch]:
    """The events as batches, cut at the given places."""
    borders = [0, *cuts, len(events)]
    return [EventBatch.from_events(events[start:end]) for start, end in pairwise(borders)]


def run(matcher: Matcher, parts: Iterable[EventBatch]) -> tuple[list[Match], list[Ending]]:
    """All matches (sorted) and all early terminations (in order) of some batches."""
    matches: list[Match] = []
    endings: list[Ending] = []
    for part in parts:
        output = matcher.process(part)
        matches += output.matches()
        endings += output.endings()
    return sorted(matches, key=match_order), endings

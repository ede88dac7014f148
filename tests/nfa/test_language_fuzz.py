"""The whole language at random: both forms read back the same, and no input does worse than being refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from hypothesis import given, reject, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from nfa.errors import PatternRefused
from nfa.language.description import describe_pattern
from nfa.language.json_form import pattern_to_json
from nfa.language.json_reading import pattern_from_json
from nfa.language.kinds import check_kinds
from nfa.language.parsing import parse_pattern, parse_patterns
from nfa.language.scope import all_atoms_of
from nfa.syntax import (
    After,
    AfterRule,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
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
    Sequence,
    atoms_of,
)
from tests.builders.patterns import sequence

CODES = frozenset(
    """syntax duration duplicate-clause duplicate-alias unknown-alias unknown-function not-yet-bound group-alias prev
    bare-alias aggregate never-true not-operand not-placement gap-placement needs-quantifier quantifier nullable-repeat
    greedy-group greedy-placement no-positive-step needs-within too-large json""".split()
)
names = st.one_of(
    st.sampled_from(
        ["v", "w", "next", "NOT", "in", "as", "true", "within", "odd name", "a.b", "x|y", "é", "-- c", "'"]
    ),
    st.text(min_size=1, max_size=4).filter(lambda name: "`" not in name and name != "_"),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
literals = st.builds(Literal, scalars)
durations = st.one_of(st.integers(1, 10**7), st.sampled_from([1_000_000, 90_000_000, 86_400_000_000, 2**62]))
gaps = st.builds(Gap, st.sampled_from(["any", "next", "strict"]), st.none() | durations) | st.builds(
    Gap, st.none(), durations
)
paths = st.lists(names, min_size=1, max_size=3).map(tuple)


def fitting(expression: Expression) -> Expression:
    """The expression, unless the language refuses its operands: a time beside a text, a number as a condition."""
    try:
        check_kinds(expression)
    except PatternRefused:
        reject()
    return expression


@dataclass
class Grower:
    """Draws one pattern; steps are numbered, so that aliases are distinct and match no attribute's name."""

    draw: st.DrawFn
    steps: int = 0
    aliases: list[str] = field(default_factory=list)

    def fresh(self) -> str:
        self.steps += 1
        return f"step {self.steps}" if self.steps % 3 == 0 else f"s{self.steps}"

    def atom(self, alias: str, of: tuple[str, ...], *, allow_prev: bool = False) -> Atom:
        types = (
            ("_",) if self.draw(st.integers(0, 5)) == 0 else tuple(self.draw(st.lists(names, min_size=1, max_size=2)))
        )
        condition = self.expression(1, (None, alias, *of)) if self.draw(st.booleans()) else None
        if condition is not None and allow_prev and self.draw(st.booleans()):
            is_first = IsNull(Call("prev", (self.attribute((None, alias)),)))
            condition = fitting(Either((is_first, condition)))
        return Atom(types, alias, condition)

    def attribute(self, of: tuple[str | None, ...]) -> Attribute:
        alias = self.draw(st.sampled_from(of))
        path = self.draw(paths)
        return Attribute(("v", *path[1:]) if alias is None else path, alias)

    def expression(self, depth: int, of: tuple[str | None, ...]) -> Expression:
        kind = self.draw(st.integers(0, 3 if depth == 0 else 14))
        if kind <= 1:
            return self.draw(literals)
        if kind == 2:
            return self.attribute(of)
        if kind == 3:
            return self.call(of)
        inner = [self.expression(depth - 1, of) for _ in range(self.draw(st.integers(2, 3)))]
        left, right = inner[0], inner[1]
        values = tuple(self.draw(st.lists(literals, min_size=1, max_size=3)))
        built: list[Expression] = [
            Comparison(self.draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), left, right),
            Arithmetic(self.draw(st.sampled_from(["+", "-", "*", "/"])), left, right),
            Arithmetic(self.draw(st.sampled_from(["+", "-", "*", "/"])), left, right),
            Both(tuple(inner)),
            Either(tuple(inner)),
            Not(left),
            Negative(left),
            IsNull(left),
            InList(left, values),
            Like(left, self.draw(st.text(max_size=4))),
            Call("coalesce", tuple(inner)),
        ]
        return fitting(built[kind - 4])

    def call(self, of: tuple[str | None, ...]) -> Call:
        owners = [alias for alias in of if alias is not None]
        event = Attribute((), self.draw(st.sampled_from(owners)))
        if self.draw(st.booleans()):
            return Call(self.draw(st.sampled_from(["count", "time", "type", "id", "key"])), (event,))
        argument: Expression = self.attribute(tuple(owners))
        if self.draw(st.booleans()):
            argument = Arithmetic("*", argument, Literal(2))
        return Call(self.draw(st.sampled_from(["sum", "min", "max", "avg", "first", "last", "count"])), (argument,))

    def node(self, depth: int, *, is_top: bool = False) -> Node:
        kind = 0 if depth == 0 else self.draw(st.integers(0, 4))
        alias = self.fresh()
        if kind <= 1:
            return self.repeated(self.atom(alias, (), allow_prev=True), can_be_greedy=is_top)
        if kind == 2:
            parts = tuple(self.node(depth - 1) for _ in range(self.draw(st.integers(1, 3))))
            span = self.span(is_top)
            is_and = self.draw(st.booleans())
            composite: Node = Conjunction(parts, span) if is_and else Disjunction(parts, span)
        else:
            composite = self.sequence(depth, is_top)
        has_empty = any(isinstance(part, Repeat) and part.min == 0 for part in nodes_of(composite))
        return composite if has_empty else self.repeated(composite, can_be_greedy=False)

    def repeated(self, node: Node, *, can_be_greedy: bool) -> Node:
        if self.draw(st.integers(0, 2)):
            return node
        least = self.draw(st.integers(0, 3))
        most = self.draw(st.sampled_from([None, max(least, 1), least + 2]))
        until = self.atom(self.fresh(), ()) if self.draw(st.booleans()) else None
        is_greedy = can_be_greedy and self.draw(st.booleans())
        each = self.draw(st.none() | gaps)
        return Repeat(of=node, min=least, max=most, each=each, until=until, greedy=is_greedy)

    def sequence(self, depth: int, is_top: bool) -> Sequence:
        before = self.atom(self.fresh(), ())
        items = [Item(of=before)]
        for _ in range(self.draw(st.integers(0, 2))):
            if self.draw(st.booleans()):
                negated = self.atom(self.fresh(), (before.alias,))
                gap = self.draw(st.none() | st.builds(Gap, st.sampled_from([None, "strict"]), durations))
                items.append(Item(negated=negated, gap=gap))
            items.append(Item(of=self.node(depth - 1), gap=self.draw(st.none() | gaps)))
        last = self.atom(self.fresh(), (before.alias,))
        return Sequence((*items, Item(of=last)), self.span(is_top))

    def span(self, is_top: bool) -> int | None:
        return None if is_top else self.draw(st.none() | durations)


def nodes_of(node: Node) -> list[Node]:
    parts = (node.of,) if isinstance(node, Repeat) else () if isinstance(node, Atom) else node.parts
    return [node, *(inner for part in parts for inner in nodes_of(part))]


def groups_of(node: Node) -> set[str]:
    repeats = [part for part in nodes_of(node) if isinstance(part, Repeat) and part.max != 1]
    return {atom.alias for repeat in repeats for atom in atoms_of(repeat)}


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    grower = Grower(draw)
    event = grower.node(2, is_top=True)
    if isinstance(event, Repeat) and not isinstance(event.of, Atom | Repeat):
        event = sequence(event)
    everywhere = [atom.alias for atom in atoms_of(event)]
    single = tuple(alias for alias in everywhere if alias not in groups_of(event))
    expressions = [grower.expression(2, single) for _ in range(draw(st.integers(0, 3)))] if single else []
    within_us = draw(st.none() | durations)
    rule: AfterRule = draw(
        st.sampled_from(["none", "once_per_key", "skip_to_next", "skip_past_last", "skip_to_first", "skip_to_last"])
    )
    alias = draw(st.sampled_from(everywhere)) if rule in ("skip_to_first", "skip_to_last") else None
    return Pattern(
        name=draw(names),
        event=event,
        keys=tuple(draw(st.lists(paths, max_size=2))),
        where=expressions[0] if expressions else None,
        within_us=within_us,
        select=draw(st.sampled_from(["all", "next", "strict"])),
        after=After(rule, alias),
        limit=draw(st.none() | st.integers(1, 10**9)),
        timeouts=within_us is not None and draw(st.booleans()),
        returns=tuple(Column(expression, f"column {n}") for n, expression in enumerate(expressions[1:])),
    )


@cache
def schema() -> Draft202012Validator:
    document = json.loads(files("nfa.language").joinpath("pattern.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


@settings(max_examples=150, deadline=None)
@given(patterns())
def test_text_and_json_read_back_the_same(pattern: Pattern) -> None:
    text = describe_pattern(pattern)
    assert parse_pattern(text) == pattern
    document = pattern_to_json(pattern)
    assert schema().is_valid(document)
    read = pattern_from_json(json.loads(json.dumps(document)))
    assert read == pattern
    assert read.text == text
    assert json.dumps(pattern_to_json(parse_pattern(read.text))) == json.dumps(document)


WORDS = """SEQ( AND( OR( ) , [ ] A a B b a.v b.v v NOT ANY NEXT STRICT WITHIN EACH UNTIL GREEDY + * ? { } 1 2 3.5 s min
    | _ = < != IS NULL IN LIKE 'x' AND OR ( count(b) sum( prev( time(a) coalesce( TRUE WHERE SELECT ALL MATCHES SKIP
    TO LAST LIMIT EMIT TIMEOUTS RETURN AS PATTERN p EVENT - / ` ' -- . ; 1e999""".split()


def outcome(text: str) -> str:
    try:
        parsed = parse_patterns(text)
    except PatternRefused as error:
        return error.reason if error.position.line >= 1 <= error.position.column else "no position"
    for pattern in parsed:
        assert parse_pattern(describe_pattern(pattern)) == pattern
    return "read"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_no_words_crash_the_parser(text: str) -> None:
    assert outcome("PATTERN p EVENT " + text) in CODES | {"read"}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="PATERNVOSQD WHI()[],.`'ab1=<>-+*?{}|_\n", max_size=80))
def test_no_characters_crash_the_parser(text: str) -> None:
    assert outcome("PATTERN p EVENT " + text) in CODES | {"read"}


@settings(max_examples=100, deadline=None)
@given(patterns(), st.data())
def test_no_change_of_a_text_crashes_the_parser(pattern: Pattern, data: st.DataObject) -> None:
    text = describe_pattern(pattern)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 10, len(text))))
    changed = text[:start] + data.draw(st.sampled_from(["", *WORDS])) + text[end:]
    assert outcome(changed) in CODES | {"read"}


values = st.recursive(
    st.one_of(scalars, st.just(10**400), st.just(float("inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def read(document: object) -> str:
    try:
        pattern = pattern_from_json(document)
    except PatternRefused as error:
        return error.reason
    assert pattern_from_json(pattern_to_json(pattern)) == pattern
    return "read"


@settings(max_examples=100, deadline=None)
@given(values)
def test_no_json_crashes_the_reader(document: object) -> None:
    assert read(document) == "json"


def changed_somewhere(document: object, data: st.DataObject, depth: int = 0) -> object:
    """The document with one value, key or entry replaced, put in or taken away."""
    if isinstance(document, dict) and document and data.draw(st.integers(0, 8)) > 0:
        key = data.draw(st.sampled_from(sorted(document)))
        rest = {name: value for name, value in document.items() if name != key}
        if data.draw(st.integers(0, 9)) == 0:
            return rest if data.draw(st.booleans()) else {**document, data.draw(st.sampled_from(KEYS)): document[key]}
        return {**rest, key: changed_somewhere(document[key], data, depth + 1)}
    if isinstance(document, list) and document and data.draw(st.integers(0, 8)) > 0:
        place = data.draw(st.integers(0, len(document) - 1))
        return [*document[:place], changed_somewhere(document[place], data, depth + 1), *document[place + 1 :]]
    return data.draw(
        st.sampled_from([None, True, 0, -1, 2.5, "v", "_", "", "`", "atom", "seq", "prev", [], {}, 10**30])
    )


KEYS = [
    "of",
    "not",
    "gap",
    "if",
    "alias",
    "within_us",
    "each",
    "until",
    "greedy",
    "min",
    "max",
    "op",
    "lit",
    "attr",
    "zz",
]


@settings(max_examples=150, deadline=None)
@given(patterns(), st.data())
def test_no_change_of_a_document_crashes_the_reader(pattern: Pattern, data: st.DataObject) -> None:
    document = changed_somewhere(pattern_to_json(pattern), data)
    found = read(document)
    assert found in CODES | {"read"}
    if found == "read":
        assert schema().is_valid(document)


def test_depth_of_documents_is_bounded() -> None:
    node: dict[str, object] = {"op": "atom", "types": ["A"]}
    for _ in range(5_000):
        node = {"op": "seq", "items": [{"of": node}]}
    assert read({"name": "p", "event": node}) == "too-large"


@settings(max_examples=50, deadline=None)
@given(patterns())
def test_all_atoms_are_found_once(pattern: Pattern) -> None:
    positive = [atom for atom, is_positive in all_atoms_of(pattern.event) if is_positive]
    assert positive == list(atoms_of(pattern.event))

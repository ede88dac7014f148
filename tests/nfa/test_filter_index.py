"""The filter index finds the steps that require an event's constants: the same ones as testing each step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nfa import Match, Matcher, match_order, parse_pattern
from nfa.automata.pattern_automaton import build_automaton
from nfa.conditions import listening
from nfa.conditions.filter_index import NO_CELL, FilterIndex
from nfa.conditions.filters import filters_of
from nfa.conditions.predicates import BatchColumns, PredicateTable
from nfa.lanes.layout import Layout, lay_out
from nfa.registered import registered
from nfa.syntax import Atom
from streams import Event, EventBatch
from tests.builders.patterns import batches, splits
from tests.references.patterns.outcome import reference_matches

EDGE = 2**53
NUMBERS = [0, 1, 2, -1, EDGE - 1, EDGE, EDGE + 1, 2**62, 0.0, -0.0, 1.0, 1.5, -1.5, 2.5, float(EDGE), 1e300]
TEXTS = ["", "a", "b", "1", "é"]
VALUES = [None, True, False, *NUMBERS, *TEXTS, [1], {"x": 1}]
CONSTANTS = [repr(number) for number in NUMBERS if number != 1e300] + [f"'{text}'" for text in TEXTS]
SIGNS = ["=", "<", "<=", ">", ">="]


@pytest.fixture(autouse=True)
def every_constant_is_indexed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(listening, "LEAST_CONSTANTS", 1)
    return iter(())


@st.composite
def conditions_on_v(draw: st.DrawFn) -> str:
    """A condition with filters, on either side, in lists, with more beside them."""
    constant = st.sampled_from(CONSTANTS)
    shape = draw(
        st.sampled_from(["v {0} {1}", "{1} {0} v", "v IN ({1}, {2})", "v {0} {1} AND w > 0", "w = {3} AND v {0} {1}"])
    )
    return shape.format(draw(st.sampled_from(SIGNS)), draw(constant), draw(constant), draw(st.integers(0, 2)))


def event(number: int, value: object, *, type_name: str = "A", w: object = None, key: str = "k") -> Event:
    return Event(id=f"e{number}", type=type_name, time_us=number, key=key, data={"v": value, "w": w})


def atom_of(condition: str) -> Atom:
    (atom,) = build_automaton(parse_pattern(f"PATTERN p EVENT A a [{condition}]")).atoms
    return atom


def layout_of(*texts: str) -> Layout:
    patterns = [registered(f"PATTERN p{number} EVENT {text}", 1) for number, text in enumerate(texts)]
    return lay_out(patterns, (), frozenset(), is_log_ordered=True)


def met_by(index: FilterIndex, cells: list[int], batch: EventBatch) -> NDArray[np.bool_]:
    """(cells, rows): whether what stands in a cell meets an event."""
    begin, end = index.ranges(np.array(cells, np.int32))
    places = index.place(batch, np.zeros(len(batch), np.int32), BatchColumns(batch))
    rank = np.arange(len(cells))[:, None]
    found = np.zeros((len(cells), len(batch)), np.bool_)
    for row in places:
        found |= (begin[row] <= rank) & (rank < end[row])
    return found


@settings(max_examples=300)
@given(st.lists(conditions_on_v(), min_size=1, max_size=6), st.lists(st.sampled_from(VALUES), min_size=1, max_size=12))
def test_an_event_meets_what_its_condition_would_let_it_meet(conditions: list[str], values: list[object]) -> None:
    atoms = [atom_of(condition) for condition in conditions]
    batch = EventBatch.from_events([event(number, value) for number, value in enumerate(values)])
    for atom in atoms:
        for dimension, one in filters_of(atom).items():
            others = [filters_of(other).get(dimension) for other in atoms]
            index = FilterIndex((0, dimension, other.constants) for other in others if other is not None)
            cells = sorted(index.cell(0, dimension, constant) for constant in one.constants)
            table = PredicateTable.of([atom, one.rest])
            holds = met_by(index, cells, batch).any(axis=0) & table.evaluate(batch)[table.row_of(one.rest)]
            assert holds.tolist() == table.evaluate(batch)[table.row_of(atom)].tolist()


@pytest.mark.parametrize("column", [pa.array(["a", "x", None, "1"]), pa.array([1, 2, None, EDGE + 1]), pa.array([1.0])])
def test_decoded_columns_have_the_cells_of_the_payload(column: pa.Array) -> None:
    index = FilterIndex(
        (0, dimension, one.constants)
        for text in ("v IN ('a', '1', 1, 2)", "v >= 2")
        for dimension, one in filters_of(atom_of(text)).items()
    )
    plain = EventBatch.from_events([event(number, value) for number, value in enumerate(column.to_pylist())])
    decoded = EventBatch(plain.columns, {("v",): column})
    codes = np.zeros(len(column), np.int32)
    expected = index.place(plain, codes, BatchColumns(plain))
    assert expected.any()
    assert index.place(decoded, codes, BatchColumns(decoded)).tolist() == expected.tolist()


def shape(found: list[Match]) -> list[tuple[object, ...]]:
    return [
        (match.pattern, match.key, sorted(match.bindings.items()), match.start_us, match.end_us, match.detected_us)
        for match in sorted(found, key=match_order)
    ]


TEMPLATES = [
    "A a [{}]",
    "SEQ(A a [{}], B b)",
    "SEQ(A a [{}], A b [{}])",
    "SEQ(A a [{}], B b [{}], A c)",
    "SEQ(A a [{}], NOT B [{}], A c [{}])",
    "SEQ(A a [{}], B b [w = a.w])",
    "SEQ(A a [{}], NEXT A b [v > a.v OR w = 1], NOT C [{}])",
    "SEQ(A|B a [{}], A|C+ b [{}])",
    "AND(_ a [{}], B b [{}])",
    "SEQ(NOT A [{}], B b [{}], STRICT A c [{}])",
]
TAILS = ["", "WITHIN 4 us", "WITHIN 4 us LIMIT 2", "SELECT SKIP PAST LAST", "WITHIN 3 us EMIT TIMEOUTS"]


@settings(max_examples=300)
@given(st.data())
def test_patterns_with_constants_find_what_the_reference_finds(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=5))
    texts = [
        f"PATTERN p{number} EVENT {shape.format(*[data.draw(conditions_on_v()) for _ in range(3)])}"
        f" {data.draw(st.sampled_from(TAILS))}"
        for number, shape in enumerate(shapes)
    ]
    value, types = st.sampled_from([0, 1, 1, 2, 1.5, "a", "a", None]), st.sampled_from("AABBC")
    rows = data.draw(st.lists(st.tuples(value, types, st.integers(0, 2), st.sampled_from("kl")), max_size=9))
    events = [event(number, v, type_name=name, w=w, key=key) for number, (v, name, w, key) in enumerate(rows)]
    matcher = Matcher()
    patterns = [matcher.add_pattern(text).pattern for text in texts]
    found = []
    for batch in batches(events, data.draw(splits(len(events)))):
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
        found += matcher.process(batch).matches()
    found += matcher.finish().matches()
    assert shape(found) == shape(reference_matches(patterns, events))


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a [v > 1], A b [v > 0])",
        "SEQ(A a [v < 1], A b [v <= 2], A c [v < 3])",
        "SEQ(A a [v = 1], A b [v IN (1, 2)])",
        "SEQ(A a [v = 1], A b [v = 2 AND w = a.w])",
        "SEQ(A a [v >= 1], NOT A n [v > 1 AND w = a.w], A b [v >= 0 AND w = a.w])",
        "SEQ(A a [v = 1], A+ b [v IN (0, 2) AND w = a.w], B c)",
    ],
)
def test_steps_of_one_type_may_have_different_constants(text: str) -> None:
    rows = [("A", v) for v in (1, 0, 2, 1, 1.5, 0, 2, "a", None)]
    events = [event(number, v, type_name=name, w=1) for number, (name, v) in enumerate([*rows, ("B", 0)])]
    matcher = Matcher()
    pattern = matcher.add_pattern(f"PATTERN p EVENT {text}").pattern
    found = [*matcher.process(EventBatch.from_events(events)).matches(), *matcher.finish().matches()]
    assert shape(found) == shape(reference_matches([pattern], events))
    assert found


def test_nothing_of_a_constant_is_tested_event_by_event() -> None:
    layout = layout_of(
        *(f"SEQ(A a [c = 'c{n}'], B b [c = 'c{n}' AND v > 1])" for n in range(50)),
        *(f"SEQ(A a [c = 'c{n}'], NOT C [c = 'c{n}'], B b [v > a.v AND c = 'c{n}'])" for n in range(50)),
    )
    conditions = [condition for _, condition in layout.predicates.rows]
    assert len(conditions) == 1, "the one that is left is v > 1"
    assert all(step.cell != NO_CELL for steps in layout.transitions for step in steps)
    assert all(
        layout.listening.cells_of_all(n, layout.codes[name]) != [NO_CELL] for n in range(50, 100) for name in "ABC"
    )


def test_an_event_meets_one_of_many_patterns() -> None:
    layout = layout_of(*(f"A a [c = 'c{n}' AND v > {n}]" for n in range(100)))
    cells = np.array(sorted(step.cell for steps in layout.transitions for step in steps), np.int32)
    begin, end = layout.listening.index.ranges(cells)
    assert (end - begin).tolist() == [0] + [1] * 100


def test_what_lacks_a_filter_of_its_type_listens_to_every_event() -> None:
    layout = layout_of("SEQ(A a [c = 'x'], A b)", "A a [c = 'x' OR v = 1]", "SEQ(A a [c = 'x'], STRICT B b)")
    assert {step.cell for steps in layout.transitions[:2] for step in steps} == {NO_CELL}
    assert layout.listening.cells_of_all(2, layout.codes["A"]) == [NO_CELL]


def test_few_constants_are_tested_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "LEAST_CONSTANTS", 3)
    assert layout_of("A a [v = 1]", "A a [v = 2]", "A a [v = 2]").listening.index.slots == 0
    assert layout_of("A a [v = 1]", "A a [v = 2]", "A a [v IN (3, 4)]").listening.index.slots == 1

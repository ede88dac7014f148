"""Compiled conditions agree with their meaning on any run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from nfa.conditions.bytecode import ColumnTable, ConditionCompiler, ConditionScope, event_columns, new_stack
from nfa.conditions.likeness import like_test
from nfa.conditions.texts import TextPool
from nfa.conditions.values import BOOLEAN, FLOAT, INTEGER, NULL, TEXT
from nfa.kernels import conditions as kernel
from nfa.kernels.conditions import NIL, Bindings, evaluate_condition
from nfa.syntax import (
    AGGREGATES,
    OF_EVENT,
    Arithmetic,
    Attribute,
    Both,
    Call,
    Comparison,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
)
from streams import Event, EventBatch
from streams.kernels.borrowing import borrowed
from tests.references.patterns.values import _like, value_in_match

ATOMS = {"o": (2, 63), "b": (0, 3), "c": (1,)}  # of the alias of the current event, and of two others; d has none
REPETITIONS = {"b": 0, "c": 63}
BEGINS = (0, 1 << 0, 1 << 63, 1 << 0 | 1 << 63)

scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63, 2**63 - 1]),
    st.sampled_from([-0.5, 0.0, 1.0, 2.5, 1e308, -1e308, float(2**53)]),
    st.sampled_from(["", "a", "ab", "b", "ä", "äb", "\U0001f600", "a\nb", "%"]),
)
literals = scalars.map(Literal)
patterns = st.text("ab%_\\ä", max_size=4)
events_ = st.fixed_dictionaries(
    {}, optional={"v": scalars, "w": scalars, "n": st.one_of(st.fixed_dictionaries({"x": scalars}), scalars)}
)


@dataclass(frozen=True)
class Run:
    """A run: bound (event, atom, step) in order, the event to bind next or None, and its ``step_begins``."""

    events: list[Event]
    bound: list[tuple[int, int, int]]
    at_hand: int | None
    own_begins: int


@st.composite
def runs(draw, *, at_hand=True):
    data = draw(st.lists(events_, min_size=1, max_size=7))
    kinds = draw(st.lists(st.sampled_from("ABC"), min_size=len(data), max_size=len(data)))
    events = [
        Event(id=f"e{number}", type=kind, time_us=10 * number, key="k", data=item)
        for number, (kind, item) in enumerate(zip(kinds, data, strict=True))
    ]
    last = len(events) - 1 if at_hand else len(events)
    atoms = st.sampled_from([atom for numbers in ATOMS.values() for atom in numbers])
    bound = [(row, draw(atoms), draw(st.integers(0, 3))) for row in range(last) if draw(st.integers(0, 4))]
    return Run(events, bound, last if at_hand else None, draw(st.sampled_from(BEGINS)) if at_hand else 0)


def attributes(alias):
    path = st.sampled_from([("v",), ("w",), ("n", "x"), ("absent",)])
    return st.one_of(
        path.map(lambda names: Attribute(names, alias)),
        st.sampled_from(OF_EVENT).map(lambda name: Call(name, (Attribute((), alias),))),
    )


@st.composite
def trees(draw, leaves, depth):
    """Expressions of up to that depth over some leaves; mostly of all of it."""
    if depth == 0 or not draw(st.integers(0, 5)):
        return draw(st.one_of(leaves, leaves, leaves, literals))
    make = draw(st.sampled_from(NODES))
    return make(draw, lambda: draw(trees(leaves, depth - 1)))


def several(draw, below):
    return tuple(below() for _ in range(draw(st.integers(2, 3))))


NODES = (
    lambda draw, below: Comparison(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), below(), below()),
    lambda draw, below: Comparison(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), below(), below()),
    lambda draw, below: Arithmetic(draw(st.sampled_from("+-*/")), below(), below()),
    lambda draw, below: Arithmetic(draw(st.sampled_from("+-*/")), below(), below()),
    lambda draw, below: Negative(below()),
    lambda draw, below: Not(below()),
    lambda draw, below: Both(several(draw, below)),
    lambda draw, below: Either(several(draw, below)),
    lambda draw, below: IsNull(below()),
    lambda draw, below: Like(below(), draw(patterns)),
    lambda draw, below: InList(below(), tuple(draw(st.lists(literals, min_size=1, max_size=3)))),
    lambda draw, below: Call("coalesce", several(draw, below)),
)


def aggregates(alias):
    plain = attributes(alias)
    argument = st.one_of(plain, plain, st.builds(Arithmetic, st.sampled_from("+-*/"), plain, trees(plain, 1)))
    return st.one_of(
        st.builds(lambda name, item: Call(name, (item,)), st.sampled_from(AGGREGATES), argument),
        st.builds(lambda name, item: Call(name, (item,)), st.sampled_from(["min", "max"]), plain),
        st.just(Call("count", (Attribute((), alias),))),
    )


others = st.one_of(*(attributes(alias) for alias in "bcd"), *(aggregates(alias) for alias in "bcd"))
own = st.one_of(
    attributes(None),
    attributes("o"),
    aggregates(None),
    aggregates("o"),
    trees(attributes("o"), 1).map(lambda argument: Call("prev", (argument,))),
)


class Program:
    """Some expressions compiled together with the columns of some events."""

    def __init__(self, expressions, scope, events):
        self.columns, self.texts = ColumnTable(), TextPool(texts=1, size_bytes=1)
        self.compiler = ConditionCompiler(self.columns, self.texts)
        self.conditions = [self.compiler.compile_condition(expression, scope) for expression in expressions]
        batch = EventBatch.from_events(events)
        self.kinds, self.values = event_columns(batch, np.arange(len(events)), self.columns, self.texts)

    def result(self, run, index=0):
        """The truth value that the kernel returns, and the decoded value on its stack."""
        truth, stack = self._evaluated(run, index)
        return truth, self._decoded(stack)

    def work(self, run):
        """What the condition has read."""
        return int(self._evaluated(run, 0)[1].values[kernel.WORK])

    def _evaluated(self, run, index):
        rows = np.array(run.bound, np.int32).reshape(-1, 3)
        bindings = Bindings(
            node_parent=np.arange(-1, len(rows) - 1, dtype=np.int32),
            node_event=np.ascontiguousarray(rows[:, 0]),
            node_atom=np.ascontiguousarray(rows[:, 1]),
            node_step=np.ascontiguousarray(rows[:, 2]),
            step_begins=np.array(BEGINS, np.uint64),
            event_kinds=self.kinds,
            event_values=self.values,
            text_offsets=self.texts.offsets,
            text_bytes=self.texts.data,
        )
        condition = self.conditions[index]
        stack = new_stack(condition.depth, len(rows))
        at_hand = NIL if run.at_hand is None else run.at_hand
        program = self.compiler.code, condition.start, condition.end
        truth = evaluate(*program, bindings, stack, len(rows) - 1, at_hand, np.uint64(run.own_begins))
        return truth, stack

    def _decoded(self, stack):
        word = int(stack.values[0])
        readings: dict[int, object] = {NULL: None, BOOLEAN: bool(word), INTEGER: word, FLOAT: float(stack.floats[0])}
        kind = int(stack.kinds[0])
        return self.texts.text(word) if kind == TEXT else readings[kind]


@njit
def evaluate(code, start, end, bindings, stack, head, at_hand, own_begins):
    return evaluate_condition(code, start, end, borrowed(bindings), borrowed(stack), head, at_hand, own_begins)


def in_iteration(run: Run, alias: str) -> list[Event]:
    """The event that a plain reference to another alias means, or none."""
    bit = 1 << REPETITIONS[alias] if alias in REPETITIONS else 0
    if run.own_begins & bit:
        return []
    for row, atom, step in reversed(run.bound):
        if atom in ATOMS.get(alias, ()):
            return [run.events[row]]
        if BEGINS[step] & bit:
            break
    return []


def all_bound(run: Run, alias: str) -> list[Event]:
    return [run.events[row] for row, atom, _ in run.bound if atom in ATOMS.get(alias, ())]


def named(expression, alias):
    """With the own alias where none is written."""
    if isinstance(expression, Attribute):
        return replace(expression, of=expression.of or alias)
    return mapped(expression, lambda below: named(below, alias))


def mapped(expression, change):
    match expression:
        case Comparison() | Arithmetic():
            return replace(expression, left=change(expression.left), right=change(expression.right))
        case IsNull() | Not() | Negative() | Like() | InList():
            return replace(expression, operand=change(expression.operand))
        case Both() | Either():
            return replace(expression, operands=tuple(map(change, expression.operands)))
        case Call():
            return replace(expression, arguments=tuple(map(change, expression.arguments)))
        case _:
            return expression


def resolved(expression, run: Run):
    """The same without references: each replaced by what it means in the run."""
    hand = [] if run.at_hand is None else [run.events[run.at_hand]]
    every = {alias: all_bound(run, alias) for alias in "obcd"}
    match expression:
        case Call(name="prev"):
            argument, bindings = named(expression.arguments[0], "o"), {"o": every["o"][-1:]}
            return Literal(value_in_match(argument, bindings) if every["o"] else None)
        case Call() if expression.name in AGGREGATES:
            return Literal(value_in_match(named(expression, "o"), every | {"o": every["o"] + hand}))
        case Attribute() | Call(name="time" | "type" | "id" | "key"):
            bindings = {alias: in_iteration(run, alias) for alias in "bcd"} | {"o": hand}
            return Literal(value_in_match(named(expression, "o"), bindings))
        case _:
            return mapped(expression, lambda below: resolved(below, run))


def scope_of(own_alias: str | None, *, with_iterations: bool = True) -> ConditionScope:
    masks = {alias: sum(1 << atom for atom in atoms) for alias, atoms in ATOMS.items()}
    return ConditionScope(own=own_alias, atoms=masks, repetitions=REPETITIONS if with_iterations else {})


def agree(expression: Expression, run: Run, scope: ConditionScope) -> None:
    truth, value = Program([expression], scope, run.events).result(run)
    expected = value_in_match(resolved(expression, run), {})
    assert (type(value), value) == (type(expected), expected)
    assert truth == (int(expected) if isinstance(expected, bool) else kernel.UNKNOWN)


@settings(max_examples=400, deadline=None)
@given(trees(st.one_of(own, others), 3), runs())
def test_step_conditions_mean_the_same(expression, run):
    agree(expression, run, scope_of("o"))


@settings(max_examples=200, deadline=None)
@given(trees(others, 2), runs(at_hand=False))
def test_where_means_the_same_and_every_match_reads_its_newest_events(expression, run):
    compiled = Program([expression], scope_of(None, with_iterations=False), run.events).result(run)[1]
    bindings = {alias: all_bound(run, alias) for alias in "bcd"}
    expected = value_in_match(expression, bindings)
    assert (type(compiled), compiled) == (type(expected), expected)


V, B_V = Attribute(("v",)), Attribute(("v",), "b")

alike = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-2, 3), st.sampled_from([0.5, 1.0, 2.5, 1e308])), max_size=5),
    st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "ab", "b", "ä"])), max_size=5),
    st.lists(scalars, max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(AGGREGATES), alike, scalars, st.booleans())
def test_aggregates_mean_the_same(name, values, at_hand, is_own):
    run = simple_run(values, at_hand, atom=2 if is_own else 0)
    agree(Call(name, (V if is_own else B_V,)), run, scope_of("o"))


@settings(max_examples=300, deadline=None)
@given(st.text("abä\U0001f600\n", max_size=8), st.text("ab%%_\\ä\U0001f600", max_size=6))
def test_like_means_the_same(text, pattern):
    agree(Like(V, pattern), simple_run([], text), scope_of("o"))


@settings(max_examples=200, deadline=None)
@given(st.text("ab", max_size=40), st.text("aaabb%_", max_size=12))
def test_like_of_texts_that_repeat_themselves_means_the_same(text, pattern):
    agree(Like(V, pattern), simple_run([], text), scope_of("o"))
    assert like_test(pattern)(text) is (_like(text, pattern) is True)


@pytest.mark.parametrize("pattern", ["%a%a%a%b", "%aaab%", "a%aab", "%" + "a" * 50 + "b%", "%a%" * 20 + "b", "%ab_%"])
def test_the_steps_of_like_are_linear_in_the_text(pattern):
    def steps(size: int) -> int:
        program = Program([Like(V, pattern)], scope_of("o"), simple_run([], "a" * size).events)
        return int(program.work(simple_run([], "a" * size)))

    assert steps(4_000) <= 2 * 4_000 + len(pattern)


VALUES: list[Any] = [None, False, True, -1, 0, 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]
VALUES += [
    -0.5,
    0.0,
    1.0,
    1e308,
    -1e308,
    5e-324,
    float(2**53),
    "",
    "a",
    "aa",
    "ab",
    "b",
    "z",
    "ä",
    "\uffff",
    "\U0001f600",
]


@pytest.mark.parametrize(
    "operation", ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "AND", "OR", "IN", "coalesce"]
)
def test_every_pair_of_values_under_every_operator(operation):
    pairs = [(Literal(left), Literal(right)) for left in VALUES for right in VALUES]
    expressions = [of_pair(operation, left, right) for left, right in pairs]
    run = simple_run([], None)
    program = Program(expressions, scope_of("o"), run.events)
    found = [program.result(run, index)[1] for index in range(len(pairs))]
    expected = [value_in_match(expression, {}) for expression in expressions]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in expected]


def of_pair(operation, left, right):
    if operation in ("AND", "OR"):
        return (Both if operation == "AND" else Either)((left, right))
    if operation == "IN":
        return InList(left, (Literal("x"), right))
    if operation == "coalesce":
        return Call("coalesce", (left, right))
    return (Arithmetic if operation in "+-*/" else Comparison)(operation, left, right)


def simple_run(values: list[Any], at_hand: Any, atom: int = 0) -> Run:
    events = [Event(id=f"e{n}", type="A", time_us=n, key="k", data={"v": v}) for n, v in enumerate([*values, at_hand])]
    return Run(events, [(row, atom, 0) for row in range(len(values))], len(values), 0)


OWN_CASES: list[tuple[Expression, list[Any], Any, Any]] = [
    (Call("sum", (V,)), [1, 2], 4, 7.0),
    (Call("sum", (V,)), [0.1, 0.2], 0.3, 0.1 + 0.2 + 0.3),
    (Call("sum", (V,)), [1, "x"], 4, None),
    (Call("sum", (V,)), [1e308], 1e308, None),
    (Call("count", (Attribute((), "o"),)), [1, None], None, 3),
    (Call("count", (V,)), [1, None], None, 1),
    (Call("first", (V,)), [None, 2], 3, None),
    (Call("first", (V,)), [], 3, 3),
    (Call("last", (V,)), [1, 2], 3, 3),
    (Call("min", (V,)), [2, 2.0], 3, 2),
    (Call("max", (V,)), [2, 2.0], 1, 2),
    (Call("max", (V,)), [2.0, 2], 1, 2.0),
    (Call("max", (V,)), ["b", "ä"], "a", "ä"),
    (Call("max", (V,)), [1, "a"], 2, None),
    (Call("prev", (V,)), [1, 2], 3, 2),
    (Call("prev", (V,)), [], 3, None),
]


@pytest.mark.parametrize(("expression", "values", "at_hand", "result"), OWN_CASES)
def test_functions_of_the_own_alias(expression, values, at_hand, result):
    run = simple_run(values, at_hand, atom=2)
    value = Program([expression], scope_of("o"), run.events).result(run)[1]
    assert (type(value), value) == (type(result), result)


@pytest.mark.parametrize(("name", "result"), [("count", 1), ("last", 3), ("sum", 3.0), ("prev", None)])
def test_a_step_of_not_and_until_has_its_own_event_only(name, result):
    run = simple_run([1, 2], 3)
    scope = ConditionScope(own="n", atoms={"b": 1})
    assert Program([Call(name, (Attribute(("v",), "n"),))], scope, run.events).result(run)[1] == result


@pytest.mark.parametrize(
    ("steps", "own_begins", "result"),
    [
        ((0, 0, 0), 0, 7),  # b, then two others of the same iteration
        ((1, 0, 0), 0, 7),  # b itself begins it
        ((1, 1, 0), 0, None),  # a new iteration since
        ((1, 2, 0), 0, 7),  # of another repetition
        ((1, 0, 0), 1, None),  # the current event begins one
    ],
)
def test_a_plain_reference_stays_in_its_iteration(steps, own_begins, result):
    events = [Event(id=f"e{n}", type="A", time_us=n, key="k", data={"v": 7 - n}) for n in range(4)]
    bound = [(row, atom, step) for row, (atom, step) in enumerate(zip((0, 1, 1), steps, strict=True))]
    run = Run(events, bound, 3, own_begins)
    assert Program([B_V], scope_of("o"), events).result(run)[1] == result


def test_programs_share_columns_and_stand_one_after_another():
    run = simple_run([1, 2], 3)
    expressions = [Comparison(">", V, B_V), Call("sum", (B_V,)), Like(Call("type", (Attribute(()),)), "A")]
    program = Program(expressions, scope_of("o"), run.events)
    assert program.columns.leaves == (("v",), "#type")
    assert [program.result(run, index)[1] for index in range(3)] == [True, 3.0, True]
    assert program.compiler.depth == max(condition.depth for condition in program.conditions)


def test_a_compaction_of_texts_keeps_programs_right():
    run = simple_run(["x"], "b")
    program = Program([InList(V, (Literal("a"), Literal("b")))], scope_of("o"), run.events)
    program.texts.intern("unused")
    used = np.union1d(program.compiler.literal_texts, program.values[program.kinds == TEXT])
    renumbering = program.texts.compact(used[used != program.texts.intern("x")])
    program.compiler.renumber_texts(renumbering)
    program.values[1] = program.texts.intern("b")
    assert program.result(run)[1] is True
    with pytest.raises(ValueError, match="dropped"):
        program.compiler.renumber_texts(np.full(9, -1))


@pytest.mark.parametrize(
    ("expression", "scope"),
    [
        (Call("sum", (Arithmetic("+", B_V, Attribute(("v",), "c")),)), scope_of("o")),
        (Call("sum", (Call("max", (B_V,)),)), scope_of("o")),
        (Call("prev", (B_V,)), scope_of("o")),
        (Call("prev", (V,)), scope_of(None)),
        (Call("sum", (V,)), scope_of(None)),
        (Call("median", (V,)), scope_of("o")),
        (B_V, ConditionScope(own="o", atoms={"b": 1 << 64})),
    ],
)
def test_what_the_checks_refuse_is_a_bug_here(expression, scope):
    with pytest.raises(ValueError, match=r".+"):
        ConditionCompiler(ColumnTable(), TextPool()).compile_condition(expression, scope)


def test_kinds_are_the_same_in_kernel_and_columns():
    names = ("NULL", "BOOLEAN", "INTEGER", "FLOAT", "TEXT")
    assert [getattr(kernel, name) for name in names] == [NULL, BOOLEAN, INTEGER, FLOAT, TEXT]


def test_each_kernel_has_one_signature():
    run = simple_run([1, 2], 3)
    assert Program([Call("sum", (B_V,))], scope_of("o"), run.events).result(run)[1] == 3.0
    compiled = [item for item in vars(kernel).values() if hasattr(item, "signatures")]
    assert [item.py_func.__name__ for item in compiled if len(item.signatures) > 1] == []

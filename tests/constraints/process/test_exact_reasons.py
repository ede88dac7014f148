"""Reports of exact mode: endings, absences, deviations, patterns that cannot match, unsatisfiable sets."""

from __future__ import annotations

from random import Random

import pytest

from constraints import (
    Clause,
    Constraint,
    ConstraintSet,
    ContradictoryConstraints,
    End,
    Exclusive,
    Monitor,
    Part,
    Prior,
    Require,
    Rule,
    Settings,
    UnsatisfiablePattern,
    analyse,
    check_query,
    check_set,
    choose,
    explain_deviation,
    explain_ending,
    failing_conditions,
    forecast,
    redundant_atoms,
    remainder_of,
    within_cap,
)
from constraints.exact.outlook import ExactOutlook
from nfa import OTHER, MonitorState
from tests.builders.constraints import Tree, query_of, random_query, random_set
from tests.builders.exact import followed, of_words, random_automaton
from tests.builders.monitors import event

TWO_WAYS = of_words("RLIF RUIF RUIIF")  # a local or a remote stock, one invoice or two


def bare(parts: list[Part] | None = None, words: str = "RLIF RUIF RUIIF") -> ConstraintSet:
    """A workflow of which nothing but the automaton and the end events are known."""
    known = followed(of_words(words), parts or [])
    process = known.process
    assert process is not None
    gone = process.derived
    return known.of_parts(part for part in known.parts if part not in gone)


def walk(known: ConstraintSet, word: str) -> list[MonitorState]:
    """The monitor's states along a word that conforms."""
    monitor = Monitor(known)
    states = [monitor.start]
    for name in word:
        after = monitor.step(states[-1], event(name))
        assert after is not None, (word, name)
        states.append(after)
    return states


# pattern, prefix, bound atoms, own parts, form, own parts cited, atoms, sentence
ENDINGS: list[tuple[Tree, str, set[int], list[Part], str, list[Part], list[str], str]] = [
    (
        ("SEQ", "R", "U"),
        "RL",
        {0},
        [],
        "workflow",
        [],
        ["U"],
        "L ends it: the workflow order allows no U after L; next can come I",
    ),
    (
        ("SEQ", "R", ("AND", "I", "I i2")),
        "RL",
        {0},
        [],
        "workflow",
        [],
        ["I", "i2"],
        "L ends it: the workflow order allows not all of I and I i2 after L; next can come I",
    ),
    (
        ("SEQ", "I a", "I b"),
        "RUII",
        {0},
        [],
        "workflow",
        [],
        ["b"],
        "I ends it: the workflow order allows no other I b after I; next can come F",
    ),
    (
        ("SEQ", "R", "NOT I", "F"),
        "RU",
        {0},
        [],
        "workflow",
        [],
        ["F"],
        "U ends it: the workflow order allows no F with NOT I after U; next can come I",
    ),
    (
        ("SEQ", "R", "U"),
        "RL",
        {0},
        [Exclusive("L", "U")],
        "p2",
        [Exclusive("L", "U")],
        ["U"],
        "L ends it: exclusive(L, U) means that U can no longer come",
    ),
    (
        ("SEQ", "R", "X"),
        "RL",
        {0},
        [Prior("X", "I"), Require("X", "Y"), Prior("I", "Y"), Exclusive("Y", "F")],
        "workflow",
        [Require("X", "Y"), Exclusive("Y", "F")],
        ["X"],
        "L ends it: the workflow order with require(X, Y) and exclusive(F, Y) allows no X after L; next can come I",
    ),
    (
        ("SEQ", "R", "X"),
        "RLIF",
        {0},
        [End("F")],
        "end",
        [End("F")],
        ["X"],
        "F ends it: the trace is over, and X has not come",
    ),
]


@pytest.mark.parametrize(("tree", "prefix", "bound", "own", "form", "cited", "atoms", "text"), ENDINGS)
def test_ending(
    tree: Tree,
    prefix: str,
    bound: set[int],
    own: list[Part],
    form: str,
    cited: list[Part],
    atoms: list[str],
    text: str,
) -> None:
    known, query = bare(own), query_of(tree)
    *_, before, after = walk(known, prefix)
    state = next(one for one in query.states if one.bound == bound)
    assert not Monitor(known).live(after, query)[query.states.index(state)]
    found = explain_ending(known, query, state, before, after, event(prefix[-1]))
    assert (found.form, list(found.constraints), [atom.alias for atom in found.atoms]) == (form, cited, atoms)
    assert found.text == text
    assert found.allowed == (tuple(text.partition("next can come ")[2]) if form == "workflow" else ())


def test_an_ending_that_is_none_is_refused() -> None:
    known, query = bare(), query_of(("SEQ", "R", "U"))
    before, after = walk(known, "R")
    with pytest.raises(ValueError, match="did not end"):
        explain_ending(known, query, query.states[1], before, after, event("R"))


# own parts, trace, kind, own parts cited, what could have come, sentence
DEVIATIONS: list[tuple[list[Part], str, str, list[Part], str, str]] = [
    ([], "RLU", "workflow", [], "I", "U came where the workflow order does not allow it; next can come I"),
    ([], "L", "workflow", [], "R", "L came where the workflow order does not allow it; next can come R"),
    (
        [Require("R", "L")],
        "RI",
        "workflow",
        [],
        "L",
        "I came where the workflow order does not allow it; next can come L",
    ),
    ([End("F")], "RLIFX", "after_end", [End("F")], "", "X came after F, with which the trace was over"),
    (
        [Require("R", "L")],
        "RU",
        "workflow",
        [Require("R", "L")],
        "L",
        "U came, and no trace of the workflow order that begins like this keeps require(R, L)",
    ),
    ([Prior("L", "X")], "RXL", "order", [Prior("L", "X")], "", "L came after X, against prior(L, X)"),
    (
        [Prior("R", "X")],
        "X",
        "workflow",
        [Prior("R", "X")],
        "R",
        "X came, and no trace of the workflow order that begins like this keeps prior(R, X)",
    ),
    (
        [Rule("absence", ("I",), 2)],
        "RUII",
        "rule",
        [Rule("absence", ("I",), 2)],
        "",
        "I came, and absence(2, I) cannot be kept any more",
    ),
]


@pytest.mark.parametrize(("own", "trace", "kind", "cited", "allowed", "text"), DEVIATIONS)
def test_deviation(own: list[Part], trace: str, kind: str, cited: list[Part], allowed: str, text: str) -> None:
    known = bare(own)
    before = walk(known, trace[:-1])[-1]
    assert Monitor(known).step(before, event(trace[-1])) is None
    found = explain_deviation(known, before, event(trace[-1]))
    assert (found.kind, list(found.constraints), found.allowed, found.text) == (kind, cited, tuple(allowed), text)


def test_deviation_of_a_complete_trace_and_none() -> None:
    known = bare(words="AB BA")
    before = walk(known, "AB")[-1]
    found = explain_deviation(known, before, event("A"))
    assert found.text == "A came, and the trace was over by the workflow order"
    assert found.key == "after_end"
    with pytest.raises(ValueError, match="no deviation"):
        explain_deviation(known, before, event(OTHER))


def test_deviation_where_what_was_written_by_hand_lets_nothing_more_come() -> None:
    known = bare([Exclusive("A", "B")], words="A AB C")
    found = explain_deviation(known, walk(known, "A")[-1], event("C"))
    assert found.allowed == ()
    assert found.text == "C came where the workflow order does not allow it; nothing more comes in it"


def test_long_lists_of_what_can_come_are_cut_short() -> None:
    known = bare(words=" ".join(f"X{name}" for name in "ABCDEFGHIJ"))
    found = explain_deviation(known, walk(known, "X")[-1], event("X"))
    assert found.text.endswith("next can come A, B, C, D, E, F, G, H and 2 more")
    assert len(found.allowed) == 10


# pattern, own parts, atoms and constraints in conflict, sentence
STATIC: list[tuple[Tree, list[Part], list[str], list[Part], str]] = [
    (("SEQ", "R", "L", "U"), [], ["L", "U"], [], "no trace of the workflow order has L and U as the pattern requires"),
    (("SEQ", "I", "U"), [], ["I", "U"], [], "no trace of the workflow order has I and U as the pattern requires"),
    (
        ("AND", "Q1", "L"),
        [Require("Q1", "U")],
        ["Q1", "L"],
        [Require("Q1", "U")],
        "no trace of the workflow order that keeps require(Q1, U) has Q1 and L as the pattern requires",
    ),
    (
        ("SEQ", "R", "NOT I", "F"),
        [],
        ["R", "F"],
        [],
        "no trace of the workflow order has R and F as the pattern requires without I where the pattern forbids it",
    ),
    (("AND", "X", "L"), [Exclusive("X", "L")], ["X", "L"], [Exclusive("L", "X")], "X and L clash with exclusive(L, X)"),
]


@pytest.mark.parametrize(("tree", "own", "atoms", "cited", "text"), STATIC)
def test_patterns_that_can_never_match(
    tree: Tree, own: list[Part], atoms: list[str], cited: list[Part], text: str
) -> None:
    check = check_query(query_of(tree), bare(own))
    (dead,) = check.dead
    assert ([atom.alias for atom in dead.atoms], list(dead.constraints), dead.text) == (atoms, cited, text)
    assert not check.is_satisfiable
    assert check.asks_for_violation == bool(dead.forbidden)
    with pytest.raises(UnsatisfiablePattern, match="the pattern can never match"):
        check.require_satisfiable()


def test_only_the_alternative_that_cannot_match_is_dead() -> None:
    check = check_query(query_of(("SEQ", "U", ("OR", "L", "I"))), bare())
    assert [dead.term for dead in check.dead] == [0]
    assert check.is_satisfiable


def test_patterns_that_can_never_match_are_those_dead_from_the_start() -> None:
    random, dead = Random(21), 0
    for _ in range(60):
        known = followed(random_automaton(random, "ABC", 5), random_set(random, "ABC", 1).parts)
        outlook = ExactOutlook.of(known)
        assert outlook is not None
        if not outlook.is_consistent(outlook.start):
            continue
        query = random_query(random, "ABC", 3)
        found = {term.term for term in check_query(query, known).dead}
        starts = [one for one in query.states if not one.bound]
        assert found == {
            one.term for one in starts if not outlook.can_complete(outlook.start, remainder_of(query, one))
        }
        dead += len(found)
    assert dead > 10


def test_what_no_trace_of_the_workflow_keeps_is_refused_with_what_was_written_by_hand() -> None:
    own: list[Part] = [Prior("X", "Y"), Require("R", "U"), Require("I", "L")]
    with pytest.raises(ContradictoryConstraints) as caught:
        check_set(followed(TWO_WAYS, own))
    assert str(caught.value) == (
        "no trace of the workflow order can keep require(R, U) and require(I, L) together; leave out any one of them"
    )
    assert caught.value.details["constraints"] == ["require(R, U)", "require(I, L)"]
    with pytest.raises(ContradictoryConstraints, match=r"^no trace of the workflow order can keep existence\(2, R\)$"):
        check_set(followed(TWO_WAYS, [Rule("existence", ("R",), 2)]))
    alone: list[Constraint] = [Clause(frozenset(), "X"), Clause(frozenset("X"), None)]
    with pytest.raises(ContradictoryConstraints, match=r"^no trace can keep existence\(X\) and absence\(X\) together"):
        check_set(followed(TWO_WAYS, alone))


def test_warnings_are_about_what_was_written_by_hand() -> None:
    assert check_set(followed(TWO_WAYS)) == ()
    (warning,) = check_set(followed(TWO_WAYS, [Require("X", "L"), Require("X", "U")]))
    assert warning.types == ("X",)
    cycles = [warning for warning in check_set(followed(TWO_WAYS, [Prior("X", "R"), Prior("F", "X")])) if warning.types]
    assert cycles


def test_everything_static_goes_on_by_the_constraints() -> None:
    known, query = followed(TWO_WAYS, [Prior("X", "I"), Rule("response", ("R", "Y"))]), query_of(("SEQ", "R", "X", "U"))
    tables = known.in_tables
    conditions = failing_conditions(query, known)
    assert conditions == failing_conditions(query, tables)
    assert {condition.event_type for condition in conditions} >= {"L", "I"}
    assert forecast(query, known, conditions) == forecast(query, tables, conditions)
    assert redundant_atoms(query, known) == redundant_atoms(query, tables)
    found = analyse(known, [query])
    assert found == analyse(tables, [query])
    assert set(found.idle.parts) <= set(known.own.parts)
    assert analyse(followed(TWO_WAYS), [query]).idle.parts == ()


def test_the_choice_says_whose_states_they_are() -> None:
    known = followed(TWO_WAYS, [Prior("X", "Y")], Settings(beyond_cap="leave_out", max_monitor_states=10))
    choice = choose(known, [query_of("U")])
    assert choice.text.startswith("the monitor's states are those of the workflow order: at most 11 of 10")
    assert within_cap(known, [query_of("U")]) == (known, ())
    assert choice.reduced(known) == known

"""Mining finds exactly the constraints of the definitions; its useful constraints imply all others."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Clause, ConstraintSet, End, Exclusive, Prior, Require, Rule, find_clash, parse_constraints
from tests.builders.workflows import MOST_ROUNDS, process_trees
from tests.references.discovery import is_broken, mine_slowly
from tests.references.workflows import enumerate_language
from workflows import InvalidWorkflow, sample_trace
from workflows.discovery.counting import count_plain
from workflows.discovery.log import EncodedLog
from workflows.discovery.mined import LogSummary, MinedConstraint, MiningSettings
from workflows.discovery.mining import mine
from workflows.discovery.violations import count_violations

LOGS = st.lists(st.lists(st.sampled_from("ABCD"), max_size=6).map(tuple), max_size=25)
SETTINGS = st.builds(
    MiningSettings,
    min_support=st.sampled_from([None, 1, 2, 0.3]),
    min_confidence=st.sampled_from([1.0, 0.9, 0.6, 0.25]),
    min_expected=st.sampled_from([0.0, 0.5, 2.0]),
    has_rules=st.booleans(),
)


def key(mined: MinedConstraint) -> tuple[str, ...]:
    return mined.part.kind, *mined.part.names


@given(LOGS, SETTINGS)
@settings(max_examples=150, deadline=None)
def test_everything_is_found_and_counted_by_definition(log, asked) -> None:
    found = mine(log, asked)
    assert {key(mined): (mined.support, mined.violations) for mined in found.all} == mine_slowly(log, asked)
    assert found.log.traces == len(log)
    assert found.log.events == sum(map(len, log))


@given(LOGS, SETTINGS)
@settings(max_examples=60, deadline=None)
def test_what_is_useful_says_everything(log, asked) -> None:
    found = mine(log, asked)
    useful = {*map(key, found.useful), *map(key, found.withdrawn)}
    assert useful <= set(map(key, found.all))
    for word in (word for length in range(5) for word in product("ABCD"[: 3 + (length < 4)], repeat=length)):
        if not any(is_broken(kind, word, *names) for kind, *names in useful):
            assert not [mined.part for mined in found.all if is_broken(mined.part.kind, word, *mined.part.names)]


@given(LOGS, SETTINGS)
@settings(max_examples=60, deadline=None)
def test_the_order_of_traces_and_pieces_does_not_matter(log, asked) -> None:
    found = mine(log, asked)
    assert mine(log[::-1], asked) == found
    encoded = EncodedLog.of(log)
    blocks = list(encoded.blocks(max_cells=6))
    assert sum(len(block) for block in blocks) == len(encoded)
    assert sum(block.events for block in blocks) == encoded.events
    pieces = [count_plain(block)["prior"].broken for block in blocks]
    whole = count_plain(encoded)["prior"].broken
    assert np.array_equal(np.sum([*pieces, np.zeros_like(whole)], axis=0), whole)


@given(LOGS, SETTINGS)
@settings(max_examples=60, deadline=None)
def test_a_mined_document_is_a_set_that_can_be_kept(log, asked) -> None:
    found = mine(log, asked)
    document = found.to_document()
    assert document["settings"] == {"on_violation": "report"}
    parsed = parse_constraints(document).constraint_set
    assert {mined.part for mined in found.useful} <= set(parsed.parts)
    assert find_clash(parsed) is None
    counted = count_violations(parsed, log)
    assert all(counted[mined.part] == mined.violations for mined in found.useful)
    told = {entry["constraint"]: entry["violations"] for entry in document["mined"]["constraints"]}
    assert told == {str(part): count for part, count in counted.items()}
    everything = parse_constraints(found.to_document(is_complete=True)).constraint_set
    assert {mined.part for mined in found.all} <= set(everything.parts)


PARTS = st.one_of(
    st.builds(Prior, st.sampled_from("AB"), st.sampled_from("AB")),
    st.builds(End, st.sampled_from("AB")),
    st.sampled_from([Exclusive("A", "B"), Require("A", "B"), Require("B", "A"), Clause(frozenset(), "A")]),
    st.sampled_from(["response", "precedence", "alternate response", "alternate precedence", "chain response"]).map(
        lambda kind: Rule(kind, ("A", "B"))
    ),
    st.sampled_from(["init", "last"]).map(lambda kind: Rule(kind, ("B",))),
)


@given(LOGS, st.lists(PARTS, max_size=8))
@settings(max_examples=100, deadline=None)
def test_violations_are_counted_by_definition(log, parts) -> None:
    counted = count_violations(ConstraintSet.of(parts), log)
    assert counted == {
        part: sum(is_broken(part.kind, trace, *part.names) for trace in log) for part in dict.fromkeys(parts)
    }


def test_longer_clauses_and_symbols() -> None:
    document = [
        {"not_together": ["A", "B", "C"]},
        {"implication": ["A", "B", "D"]},
        {"absence": ["E"]},
        {"existence": [2, "A"]},
        {"prior": ["A [x > 1]", "B"]},
    ]
    parsed = parse_constraints(document).constraint_set
    log = [("A", "B", "C"), ("A", "B", "D"), ("A", "A", "E"), ()]
    counted = {str(part): count for part, count in count_violations(parsed, log).items()}
    assert counted == {
        "not_together(A, B, C)": 1,
        "implication(A, B, D)": 1,
        "absence(E)": 1,
        "existence(A)": 1,
        "existence(2, A)": 3,
        "prior(A [x > 1], B)": None,
    }


@given(process_trees(300), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_what_a_model_keeps_is_found_in_its_traces(tree, seed) -> None:
    rng = Random(seed)
    log = [tuple(activity.name for activity in sample_trace(tree, rng)) for _ in range(60)]
    asked = MiningSettings(min_support=5, min_expected=0, has_rules=True)
    found = {key(mined): mined.confidence for mined in mine(log, asked).all}
    language = enumerate_language(tree, MOST_ROUNDS)
    for kind, names in product(("prior", "require", "response", "exclusive"), product("ABCD", repeat=2)):
        holds = not any(is_broken(kind, word, *names) for word in language)
        tested = [trace for trace in log if set(names) <= set(trace)]
        if holds and len(tested) >= 5 and (kind == "prior" or names[0] != names[1]):
            assert found[(kind, *names)] == 1.0


def test_rare_types_exclude_nothing_by_chance() -> None:
    log = [("A", "B")] * 96 + [("A", "C")] * 2 + [("A", "D")] * 2
    assert Exclusive("C", "D") not in {mined.part for mined in mine(log, MiningSettings(min_support=1)).all}
    assert Exclusive("B", "C") not in {mined.part for mined in mine(log, MiningSettings(min_support=1)).all}
    free = mine(log, MiningSettings(min_support=1, min_expected=0))
    assert Exclusive("C", "D") in {mined.part for mined in free.all}


def test_a_frequent_type_is_not_said_to_be_avoided_by_those_that_always_come_with_it() -> None:
    log = [("A",)] * 990 + [("A", "B")] * 10
    found = mine(log, MiningSettings(min_confidence=0.9, min_expected=0))
    assert Exclusive("A", "B") not in {mined.part for mined in found.all}


def test_violations_lower_the_confidence() -> None:
    log = [("A", "B")] * 19 + [("B", "A")]
    (mined,) = (one for one in mine(log, MiningSettings(min_confidence=0.95)).all if one.part == Prior("A", "B"))
    assert (mined.support, mined.violations, mined.confidence) == (20, 1, 0.95)
    assert Prior("A", "B") not in {one.part for one in mine(log).all}


def test_only_what_does_not_follow_is_useful() -> None:
    log = [("A", "B", "C", "X"), ("A", "B", "C", "Y"), ("A", "B", "X"), ("A", "C", "B", "Y")] * 10
    useful = [str(mined.part) for mined in mine(log).useful]
    assert useful == [
        "prior(A, A)",
        "prior(A, B)",
        "prior(A, C)",
        "prior(B, B)",
        "prior(C, C)",
        "require(Y, C)",
        "existence(A)",
        "existence(B)",
        "end(X)",
        "end(Y)",
    ]
    rules = {mined.part.kind for mined in mine(log, MiningSettings(has_rules=True)).useful}
    assert "init" in rules
    assert "response" not in rules


def test_contradictory_findings_are_withdrawn() -> None:
    log = [("A", "B", "C")] * 3 + [("A", "B")] * 40 + [("B", "C")] * 40 + [("A", "C")] * 40
    asked = MiningSettings(min_confidence=0.6, min_expected=0)
    found = mine(log, asked)
    assert find_clash(ConstraintSet.of(mined.part for mined in found.all)) is None or found.withdrawn
    assert find_clash(ConstraintSet.of(mined.part for mined in found.useful)) is None


def test_the_document_says_where_it_comes_from() -> None:
    log = LogSummary(name="past", first_us=0, last_us=1_000_000)
    document = mine([("A", "B")] * 20, MiningSettings(min_support=0.5), log).to_document()
    mined = document["mined"]
    assert (mined["log"], mined["traces"], mined["events"], mined["min_support"]) == ("past", 20, 40, 10)
    assert (mined["from"], mined["until"]) == ("1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:01.000000Z")
    assert {"constraint": "end(B)", "support": 20, "confidence": 1.0, "violations": 0} in mined["constraints"]


@pytest.mark.parametrize(
    "wrong", [{"min_support": 0}, {"min_confidence": 0}, {"min_confidence": 1.5}, {"min_expected": -1}]
)
def test_thresholds_are_checked(wrong) -> None:
    with pytest.raises(InvalidWorkflow, match=next(iter(wrong))):
        MiningSettings(**wrong)


def test_an_empty_log_shows_nothing() -> None:
    assert mine([]).all == ()
    assert mine([(), ()], MiningSettings(has_rules=True, min_support=1)).all == ()

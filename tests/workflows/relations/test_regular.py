"""Extraction from automata, against trees, enumerated languages, and a search over what words can show."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraints import Clause, ProcessAutomaton
from tests.builders.workflows import process_trees
from tests.references.workflows import Word, enumerate_language, extraction_of_words
from workflows import ProcessTree
from workflows.relations import regular
from workflows.relations.compositional import extraction_of_tree
from workflows.relations.extraction import Extraction, Method
from workflows.relations.regular import extraction_of_automaton


def automaton_of_words(words: frozenset[Word]) -> ProcessAutomaton:
    """A tree of beginnings: not minimal, but an automaton of just these words."""
    beginnings = sorted(
        {word[:length] for word in words for length in range(len(word) + 1)}, key=lambda one: (len(one), one)
    )
    places = {word: place for place, word in enumerate(beginnings)}
    moves: list[dict[str, int]] = [{} for _ in beginnings]
    for word, place in places.items():
        if word:
            moves[places[word[:-1]]][word[-1]] = place
    return ProcessAutomaton.of({name for word in words for name in word}, moves, [places[word] for word in words])


@st.composite
def automata(draw: st.DrawFn) -> ProcessAutomaton:
    """Up to 5 states over up to 4 letters, all of them on a way from the start to an end."""
    states, letters = draw(st.integers(1, 5)), "ABCD"[: draw(st.integers(1, 4))]
    targets = st.integers(0, states - 1)
    moves = [draw(st.dictionaries(st.sampled_from(letters), targets, max_size=3)) for _ in range(states)]
    accepting = draw(st.sets(targets, min_size=1))
    useful = _useful(moves, accepting)
    if 0 not in useful:
        return ProcessAutomaton.of(letters, [{}], [0])
    places = {state: place for place, state in enumerate(sorted(useful))}
    return ProcessAutomaton.of(
        letters,
        [{name: places[after] for name, after in moves[state].items() if after in places} for state in sorted(useful)],
        [places[state] for state in accepting & useful],
    )


def _useful(moves: list[dict[str, int]], accepting: set[int]) -> set[int]:
    after = [reached(moves, state) for state in range(len(moves))]
    return {state for state in after[0] if after[state] & accepting}


def reached(moves: list[dict[str, int]], state: int) -> set[int]:
    """The states that a walk from one of them can come to."""
    found, waiting = {state}, [state]
    while waiting:
        new = set(moves[waiting.pop()].values()) - found
        found |= new
        waiting.extend(new)
    return found


def words_that_show_all(automaton: ProcessAutomaton) -> frozenset[Word]:
    """Complete traces that together show every combination of types, and of ordered pairs of types, in the language.

    A search over states with the types met so far and their ordered pairs: finite, whatever the language.
    """
    start: tuple[int, frozenset[str], frozenset[tuple[str, str]]] = (0, frozenset(), frozenset())
    words: dict[tuple[int, frozenset[str], frozenset[tuple[str, str]]], Word] = {start: ()}
    waiting = [start]
    while waiting:
        situation = waiting.pop(0)
        state, seen, pairs = situation
        for name in automaton.allowed(state):
            after = automaton.step(state, name)
            assert after is not None
            new = (after, seen | {name}, pairs | frozenset(product(seen, name)))
            if new not in words:
                words[new] = (*words[situation], name)
                waiting.append(new)
    return frozenset(word for (state, _, _), word in words.items() if automaton.accepting[state])


@given(automata())
def test_all_and_only_what_holds_is_extracted(automaton: ProcessAutomaton) -> None:
    expected = extraction_of_words(words_that_show_all(automaton), Method.AUTOMATON)
    assert extraction_of_automaton(automaton) == expected


@given(process_trees(300, most_rounds=4, has_repeated_names=True))
def test_trees_and_automata_of_their_words_agree(tree: ProcessTree) -> None:
    """With open loops cut, what holds does not change."""
    found = extraction_of_automaton(automaton_of_words(enumerate_language(tree, 4)))
    assert found.to_document() == {**extraction_of_tree(tree).to_document(), "method": "automaton"}


def test_letters_that_no_word_has_are_no_events() -> None:
    found = extraction_of_automaton(ProcessAutomaton.of("ABZ", [{"A": 1}, {"B": 0}], [1]))
    assert found.events == ("A", "B")
    assert found.horn == (Clause(frozenset(), "A"),)


def test_the_empty_language_but_for_the_empty_word_has_nothing_to_say() -> None:
    assert extraction_of_automaton(ProcessAutomaton.of((), [{}], [0])).to_document() == {
        "prior": [],
        "exclusive": [],
        "require": [],
        "horn": [],
        "end": [],
        "events": [],
        "method": "automaton",
        "warnings": [],
    }


def line(count: int) -> ProcessAutomaton:
    """One trace of many types."""
    names = [f"task {place:03}" for place in range(count)]
    return ProcessAutomaton.of(names, [{name: place + 1} for place, name in enumerate(names)] + [{}], [count])


def test_more_types_than_a_word_has_bits() -> None:
    found = extraction_of_automaton(line(70))
    assert len(found.prior) == 70 * 71 // 2
    assert len(found.require) == 70 * 69
    assert found.end == ("task 069",)


def test_without_room_three_types_are_not_looked_at_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = [{"A": 1, "B": 2}, {"B": 3, "C": 3}, {"C": 3}, {}]
    automaton = ProcessAutomaton.of("ABC", moves, [3])

    def without_warning(found: Extraction) -> tuple[object, ...]:
        return found.prior, found.exclusive, found.require, found.end

    full = extraction_of_automaton(automaton)
    assert Clause(frozenset("ABC"), None) in full.horn
    monkeypatch.setattr(regular, "MAX_WORDS", 10)
    pairs = extraction_of_automaton(automaton)
    assert "4 states and 3 event types" in pairs.warnings[0]
    assert without_warning(pairs) == without_warning(full)
    assert pairs.horn == ()

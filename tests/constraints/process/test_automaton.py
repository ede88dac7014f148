"""The automaton of a process as a value, and what can be reached in it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from constraints import NOWHERE, ProcessAutomaton
from tests.builders.exact import ends_of, minimised, of_words, random_automaton


def test_steps_and_words() -> None:
    automaton = of_words("ABC AC")
    assert automaton.letters == ("A", "B", "C")
    assert len(automaton) == 4
    assert automaton.allowed(1) == ("B", "C")
    assert automaton.step(1, "C") == 3
    assert automaton.step(0, "B") is None
    assert automaton.step(0, "X") is None
    assert [automaton.accepts(word) for word in ("ABC", "AC", "A", "", "ABB", "XAC")] == [True, True] + [False] * 4
    assert (automaton.code("C"), automaton.code("X")) == (2, None)
    assert ends_of(automaton) == {"C"}


def test_equal_where_language_and_alphabet_are() -> None:
    one, other = of_words("AC BC"), minimised("ABC", [{"A": 2, "B": 1}, {"C": 3}, {"C": 3}, {}, {"A": 4}], {3})
    assert one == other
    assert hash(one) == hash(other)
    assert one != of_words("AC BD")
    assert one != "AC BC"
    assert not one.table.flags.writeable


@pytest.mark.parametrize(
    ("letters", "table", "message"),
    [
        (("B", "A"), [[NOWHERE, NOWHERE]], "sorted, each once"),
        (("A",), [[1]], "leads to states 0 to 0"),
        (("A",), [[0, 0]], "do not fit a table"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(letters: tuple[str, ...], table: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProcessAutomaton(letters, np.array(table, np.int32), np.ones(1, np.bool_))


def test_reaching_is_what_steps_say() -> None:
    random = Random(2)
    for _ in range(100):
        automaton = random_automaton(random, "ABC", 8)
        wanted = np.array([random.random() < 0.3 for _ in range(len(automaton))])
        letters = np.array([random.random() < 0.7 for _ in automaton.letters])
        expected = set(np.flatnonzero(wanted).tolist())
        usable = np.flatnonzero(letters).tolist()
        following = [{row[code] for code in usable} for row in automaton.table.tolist()]
        while more := {place for place, row in enumerate(following) if place not in expected and row & expected}:
            expected |= more
        found = automaton.distances(wanted, letters) >= 0
        assert set(np.flatnonzero(found).tolist()) == expected

"""Builds the automaton of a workflow net from its markings."""

from __future__ import annotations

import numpy as np

from constraints import ProcessAutomaton
from workflows.language.moves import SILENT, Moves
from workflows.language.subsets import deterministic
from workflows.limits import CompileLimits
from workflows.nets.markings import Markings
from workflows.nets.soundness import check_completion


def automaton_of(markings: Markings, limits: CompileLimits) -> ProcessAutomaton:
    """Return the minimal automaton of the language of a net, given the markings of the net."""
    check_completion(markings)
    return deterministic(_moves_of(markings), limits.max_states)


def _moves_of(markings: Markings) -> Moves:
    """Return the graph of a net's markings as a nondeterministic automaton. Silent steps become silent moves.

    Only markings from which a trace can complete become states.
    """
    letters = tuple(sorted(markings.net.labels))
    codes = {letter: code for code, letter in enumerate(letters)}
    labels = np.array(
        [SILENT if each.label is None else codes[each.label] for each in markings.net.transitions], np.int64
    )
    keeps = markings.completes[markings.sources] & markings.completes[markings.targets]
    numbers = np.cumsum(markings.completes) - 1
    return Moves(
        letters=letters,
        sources=numbers[markings.sources[keeps]],
        labels=labels[markings.transitions[keeps]],
        targets=numbers[markings.targets[keeps]],
        initial=np.zeros(1, np.int64),
        accepting=markings.is_final[markings.completes],
    )

"""Compilation of guards' bit rules to arrays for the bit kernel.

A guard supplies masks: Python integers with one bit for each name of the guard. This module converts the masks of
several guards to arrays of words, for all columns of a lane (constraint-aware CEP, section 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.automata.guard_view import GuardView, Remaining, term_bit
from nfa.automata.query import PatternState
from nfa.guards.protocol import BitGoal, BitGuard, Question
from nfa.kernels.bit_tables import N_SETS, NIL, WORD_BITS, BitProgram
from nfa.kernels.shared.tables import EVERY_TERM

Words: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BitColumn:
    """The rule that computes a column of the guard's tables: the terms that can still complete, as bits.

    A column is a state of an automaton or a trailing NOT. The bits of ``base`` are always set. Each pair (goal, bits)
    in ``choices`` sets its bits while the goal is alive. Goals are numbered in the order of the questions that guards
    are asked.
    """

    base: int = 0
    choices: tuple[tuple[int, int], ...] = ()


def bit_columns(view: GuardView, first: int) -> list[BitColumn]:
    """Return for each state of a pattern's automaton the rule that says when the state is alive.

    The bits are those of ``GuardView.live_terms``. ``first`` is the number of the pattern's first goal. The exact
    rule may need several partitions of names. The returned rule tests the first, so it may keep more states alive.
    """
    places = {state: place for place, state in enumerate(view.query.states, first)}
    if view.remaining:
        ways = [_ways(remaining) for remaining in view.remaining]
        return [
            BitColumn(base=0 if alternatives else 1, choices=tuple((places[state], 1) for state in alternatives))
            for alternatives in ways
        ]
    return [
        BitColumn(
            base=int(np.bitwise_or.reduce([0, *map(term_bit, free)])),
            choices=tuple((places[state], term_bit(state.term)) for state in states),
        )
        for states, free in zip(view.pattern_states, view.free_terms, strict=True)
    ]


def bit_layout(
    views: Sequence[GuardView | None], state_range: NDArray[np.int32], negation_range: NDArray[np.int32]
) -> tuple[list[Question], list[BitColumn]]:
    """Return the questions to ask guards, and the rules of all columns in the layout of ``GuardLayout``.

    A question is the query of a pattern, or the step of a trailing NOT. If a pattern has no view, its columns have all
    bits set.
    """
    questions: list[Question] = []
    columns = [BitColumn(base=EVERY_TERM)] * int(negation_range[-1])
    count = 0
    for number, view in enumerate(views):
        if view is None:
            continue
        columns[state_range[number] : state_range[number + 1]] = bit_columns(view, count)
        questions.append(view.query)
        count += len(view.query.states)
        for place, step in enumerate(view.negations, int(negation_range[number])):
            ways = 1 if step.is_any_type else len(set(step.types))
            columns[place] = BitColumn(choices=tuple((count + way, EVERY_TERM) for way in range(ways)))
            questions.append(step)
            count += ways
    return questions, columns


def _ways(remaining: Remaining) -> list[PatternState]:
    """Return pattern states, at least one of which must be able to complete.

    If the list is empty, no pattern state is tested, and the node counts as able to complete.
    """
    if remaining.state is not None:
        return [remaining.state]
    if not remaining.choices:
        return []
    ways = [_ways(choice) for choice in remaining.choices[0]]
    return [state for alternatives in ways for state in alternatives] if all(ways) else []


def bit_program(
    guards: Sequence[BitGuard],
    questions: Sequence[Question],
    columns: Sequence[BitColumn],
    *,
    is_pruning: Sequence[bool] | None = None,
) -> BitProgram:
    """Compile the bit rules of several guards to arrays for the kernel.

    All guards get the same ``questions`` (see ``bit_layout``). If a guard does not prune, its columns have all bits.
    """
    prunes = is_pruning or [True] * len(guards)
    rules = [guard.rules for guard in guards]
    words = max([1, *(-(-len(rule_set.requires) // WORD_BITS) for rule_set in rules)])
    goals: dict[tuple[int, BitGoal], int] = {}
    choices: list[tuple[int, int]] = []
    ends = []
    for number, guard in enumerate(guards):
        guard_goals = [goal for question in questions if prunes[number] for goal in guard.goals(question)]
        for column in columns:
            listed = column.choices if prunes[number] else ()
            choices += [(goals.setdefault((number, guard_goals[place]), len(goals)), bits) for place, bits in listed]
            ends.append(len(choices))
    distinct_goals = [goal for _, goal in goals]
    clauses = [clause for rule_set in rules for clause in rule_set.clauses]
    base = np.array([column.base for column in columns], np.uint32)
    return BitProgram(
        start=_packed([mask for rule_set in rules for mask in rule_set.start], words).reshape(
            len(rules), N_SETS, words
        ),
        name_from=_ranges(len(rule_set.requires) for rule_set in rules),
        requires=_packed([mask for rule_set in rules for mask in rule_set.requires], words),
        excludes=_packed([mask for rule_set in rules for mask in rule_set.excludes], words),
        blocks=_packed([mask for rule_set in rules for mask in rule_set.blocks], words),
        clause_from=_ranges(len(rule_set.clauses) for rule_set in rules),
        body=_packed([body for body, _ in clauses], words),
        head=np.array([NIL if head is None else head for _, head in clauses], np.int32),
        broken_from=_ranges(len(rule_set.broken) for rule_set in rules),
        broken=_packed([mask for rule_set in rules for mask in rule_set.broken], words),
        base=np.array(
            [base if prunes[number] else np.full_like(base, EVERY_TERM) for number in range(len(rules))], np.uint32
        ).reshape(len(rules), len(columns)),
        choice_from=np.array([0, *ends], np.int32),
        choice_goal=np.array([goal for goal, _ in choices], np.int32),
        choice_bits=np.array([bits for _, bits in choices], np.uint32),
        needs=_packed([goal.needs for goal in distinct_goals], words),
        implies=_packed([goal.implies for goal in distinct_goals], words),
        conflict_from=_ranges(len(goal.conflicts) for goal in distinct_goals),
        conflicts=_packed([mask for goal in distinct_goals for mask in goal.conflicts], words),
    )


@cache
def no_program() -> BitProgram:
    """Return an empty bit program, for a matcher whose guards have no bit tables."""
    return bit_program([], [], [])


def as_words(mask: int, words: int) -> Words:
    """Convert a bit mask to uint64 words, lowest word first."""
    return np.frombuffer(mask.to_bytes(words * WORD_BITS // 8, "little"), np.uint64).copy()


def as_mask(words: Words) -> int:
    """Convert uint64 words, lowest word first, to a bit mask."""
    return int.from_bytes(words.tobytes(), "little")


def _packed(masks: Sequence[int], words: int) -> Words:
    size = words * WORD_BITS // 8
    content = b"".join(mask.to_bytes(size, "little") for mask in masks)
    return np.frombuffer(content, np.uint64).reshape(len(masks), words).copy()


def _ranges(sizes: Iterable[int]) -> NDArray[np.int32]:
    return np.array([0, *accumulate(sizes)], np.int32)

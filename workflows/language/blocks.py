"""Operations on languages. Each language is given by its minimal automaton, which may have at most ``most`` states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from constraints import NOWHERE, Numbers, ProcessAutomaton, overlapping
from workflows.errors import AutomatonTooLarge
from workflows.language.minimal import canonical
from workflows.language.moves import SILENT, Moves, moves_of, side_by_side
from workflows.language.subsets import deterministic

NOTHING = ProcessAutomaton.of((), [{}], [0])


def one_event(name: str) -> ProcessAutomaton:
    """Return the language of a single word that consists of one event."""
    return ProcessAutomaton.of((name,), [{name: 1}, {}], [1])


def one_after_another(parts: Sequence[ProcessAutomaton], most: int) -> ProcessAutomaton:
    """Return the language of a sequence: words that consist of one word of each part, in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    _check_length(sum(map(_shortest_length, parts)), most)
    union, begins = side_by_side(parts)
    is_last = np.arange(len(union)) >= begins[-1]
    ends = np.flatnonzero(union.accepting & ~is_last)
    after = begins[np.searchsorted(begins, ends, side="right")]
    return deterministic(replace(_with_silent(union, ends, after), accepting=union.accepting & is_last), most)


def one_of(branches: Sequence[ProcessAutomaton], most: int) -> ProcessAutomaton:
    """Return the language of an exclusive choice: the union of the languages of all branches."""
    if len(branches) == 1:
        return branches[0]
    union, begins = side_by_side(branches)
    return deterministic(replace(union, initial=begins), most)


def again_and_again(body: ProcessAutomaton, redo: ProcessAutomaton, most: int) -> ProcessAutomaton:
    """Return the language of a loop: a ``body`` word, then any number of pairs of a ``redo`` and a ``body`` word."""
    union, (first, second) = side_by_side((body, redo))
    is_body = np.arange(len(union)) < second
    ends = np.flatnonzero(union.accepting)
    looped = _with_silent(union, ends, np.where(is_body[ends], second, first))
    return deterministic(replace(looped, accepting=union.accepting & is_body), most)


def repetition(body: ProcessAutomaton, redo: ProcessAutomaton, count: int, most: int) -> ProcessAutomaton:
    """Return the language of ``count`` words of ``body`` in a row, with a word of ``redo`` between each two."""
    _check_length(count * _shortest_length(body) + (count - 1) * _shortest_length(redo), most)
    automaton, power = body, one_after_another((redo, body), most)
    rounds = count - 1
    while rounds:
        if rounds & 1:
            automaton = one_after_another((automaton, power), most)
        rounds >>= 1
        if rounds:
            power = one_after_another((power, power), most)
    return automaton


def interleaved(branches: Sequence[ProcessAutomaton], most: int) -> ProcessAutomaton:
    """Return the language of a parallel block: one word of each branch, interleaved in any way.

    The product of branches without common letters is already minimal, so its size is known in advance. Branches with
    common letters are combined and determinised one after the other.
    """
    letters = {place: branch.letters for place, branch in enumerate(branches)}
    groups = [_mixed([branches[place] for place in group], most) for group in overlapping(letters)]
    states = prod(map(len, groups))
    if states > most:
        raise AutomatonTooLarge(
            f"parallel branches of {', '.join(str(len(group)) for group in groups)} states have {states} together, "
            f"at most {most} are explored",
            states=min(states, 1 << 53),
            max_states=most,
        )
    automaton = groups[0]
    for group in sorted(groups[1:], key=len):
        automaton = _product(automaton, group)
    return automaton


def any_of(branches: Sequence[ProcessAutomaton], most: int) -> ProcessAutomaton:
    """Return the language of an inclusive choice: words of one or more branches, interleaved in any way.

    The branches are made optional and interleaved. Then the empty word is removed unless a branch contains it.
    """
    if len(branches) == 1:
        return branches[0]
    automaton = interleaved([one_of((branch, NOTHING), most) for branch in branches], most)
    return automaton if any(branch.accepting[0] for branch in branches) else _not_empty(automaton, most)


def many_at_once(body: ProcessAutomaton, most: int) -> ProcessAutomaton:
    """Return the language of concurrent instances: one or more words of ``body``, interleaved in any way.

    If interleaving one more word adds nothing, the language is the sequential repetition of ``body``. This holds for
    words of at most one event, for a single letter, and for all sequences over some letters. In all other cases a
    finite automaton would have to count the events of each instance, so ``AutomatonTooLarge`` is raised.
    """
    repeated = again_and_again(body, NOTHING, most)
    if len(body.letters) <= 1 or _has_short_words(body):
        return repeated
    if _mixes_freely(body, repeated) and one_of((_mixed((repeated, body), most), repeated), most) == repeated:
        return repeated
    raise AutomatonTooLarge(
        f"instances that run at once, each of several events ({', '.join(body.letters)}), have no finite automaton: "
        "their number is not bounded"
    )


def _has_short_words(body: ProcessAutomaton) -> bool:
    after = body.table[0][body.table[0] != NOWHERE]
    return 0 not in after and bool((body.table[after] == NOWHERE).all())


def _mixes_freely(body: ProcessAutomaton, repeated: ProcessAutomaton) -> bool:
    """Check whether ``repeated`` may contain every interleaving of two ``body`` words. False means that it does not.

    ``repeated`` is the sequential repetition of ``body``. Only one shortest word for each first letter is tested: the
    word alternates step by step with a copy of itself.
    """
    for letter in body.allowed(0):
        state = body.step(0, letter)
        assert state is not None
        word = (letter, *_shortest(body, state))
        if not repeated.accepts(tuple(each for each in word for _ in range(2))):
            return False
    return True


def _check_length(events: int, most: int) -> None:
    """Raise ``AutomatonTooLarge`` if a shortest word of ``events`` events needs more than ``most`` states."""
    if events >= most:
        raise AutomatonTooLarge(
            f"every trace has {events} events or more, and there are more states than that; "
            f"at most {most} are explored",
            states=min(events, 1 << 53),
            max_states=most,
        )


def _shortest_length(automaton: ProcessAutomaton) -> int:
    return int(moves_of(automaton).forward().distances(np.zeros(1, np.int64))[automaton.accepting].min())


def _shortest(automaton: ProcessAutomaton, state: int) -> tuple[str, ...]:
    words: dict[int, tuple[str, ...]] = {state: ()}
    for each, word in (queue := list(words.items())):
        if automaton.accepting[each]:
            return word
        for letter in automaton.allowed(each):
            after = automaton.step(each, letter)
            if after is not None and after not in words:
                words[after] = (*word, letter)
                queue.append((after, words[after]))
    raise AssertionError("every state leads to the end")


def _with_silent(moves: Moves, sources: Numbers, targets: Numbers) -> Moves:
    return replace(
        moves,
        sources=np.concatenate([moves.sources, sources]),
        labels=np.concatenate([moves.labels, np.full(len(sources), SILENT, np.int64)]),
        targets=np.concatenate([moves.targets, targets]),
    )


def _not_empty(automaton: ProcessAutomaton, most: int) -> ProcessAutomaton:
    moves = moves_of(automaton)
    begin = moves.sources == 0
    fresh = len(moves)
    return deterministic(
        replace(
            moves,
            sources=np.concatenate([moves.sources, np.full(int(begin.sum()), fresh)]),
            labels=np.concatenate([moves.labels, moves.labels[begin]]),
            targets=np.concatenate([moves.targets, moves.targets[begin]]),
            initial=np.array([fresh]),
            accepting=np.append(moves.accepting, False),
        ),
        most,
    )


def _mixed(branches: Sequence[ProcessAutomaton], most: int) -> ProcessAutomaton:
    automaton, *others = sorted(branches, key=len)
    for branch in others:
        if len(automaton) * len(branch) > 4 * most:
            raise AutomatonTooLarge(
                f"parallel branches that share events have {len(automaton)} and {len(branch)} states, so "
                f"{len(automaton) * len(branch)} together; at most {4 * most} are explored",
                states=len(automaton) * len(branch),
                max_states=most,
            )
        first, second = moves_of(automaton), moves_of(branch)
        union, _ = side_by_side((automaton, branch))  # maps the letters of both to common letters
        codes = union.labels
        width = len(branch)
        rows, columns = np.arange(len(automaton)), np.arange(width)
        first_size, second_size = len(first.sources), len(second.sources)
        moves = Moves(
            letters=union.letters,
            sources=np.concatenate(
                [
                    (first.sources[:, None] * width + columns).ravel(),
                    (rows[:, None] * width + second.sources).ravel(),
                ]
            ),
            labels=np.concatenate(
                [
                    np.repeat(codes[:first_size], width),
                    np.tile(codes[first_size : first_size + second_size], len(automaton)),
                ]
            ),
            targets=np.concatenate(
                [
                    (first.targets[:, None] * width + columns).ravel(),
                    (rows[:, None] * width + second.targets).ravel(),
                ]
            ),
            initial=np.zeros(1, np.int64),
            accepting=np.outer(automaton.accepting, branch.accepting).ravel(),
        )
        automaton = deterministic(moves, most)
    return automaton


def _product(first: ProcessAutomaton, second: ProcessAutomaton) -> ProcessAutomaton:
    """Return the automaton that interleaves two automata without common letters. Its states are pairs of states."""
    letters = tuple(sorted(first.letters + second.letters))
    codes = {letter: code for code, letter in enumerate(letters)}
    height, width = len(first), len(second)
    table = np.full((height, width, len(letters)), NOWHERE, np.int64)
    rows, columns = np.arange(height)[:, None, None], np.arange(width)[None, :, None]
    first_targets, second_targets = first.table.astype(np.int64)[:, None, :], second.table.astype(np.int64)[None, :, :]
    table[:, :, [codes[letter] for letter in first.letters]] = np.where(
        first_targets == NOWHERE, NOWHERE, first_targets * width + columns
    )
    table[:, :, [codes[letter] for letter in second.letters]] = np.where(
        second_targets == NOWHERE, NOWHERE, rows * width + second_targets
    )
    accepting = np.outer(first.accepting, second.accepting).ravel()
    return canonical(letters, table.reshape(height * width, len(letters)), accepting, 0)

"""The executable meaning of process trees: their traces, enumerated."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

from workflows.tree import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent

Word: TypeAlias = tuple[str, ...]


def enumerate_language(tree: ProcessTree, most_rounds: int) -> frozenset[Word]:
    """All traces as words of activity names; open loops run 1 to ``most_rounds`` rounds."""
    match tree:
        case Activity(name):
            return frozenset({(name,)})
        case Silent():
            return frozenset({()})
        case Sequence(parts):
            return _concatenate([enumerate_language(part, most_rounds) for part in parts])
        case ExclusiveChoice(branches):
            return frozenset().union(*(enumerate_language(branch, most_rounds) for branch in branches))
        case Parallel(branches):
            words: frozenset[Word] = frozenset({()})
            for branch in branches:
                pairs = product(words, enumerate_language(branch, most_rounds))
                words = frozenset().union(*(_shuffle(first, second) for first, second in pairs))
            return words
        case Loop():
            body, redo = enumerate_language(tree.body, most_rounds), enumerate_language(tree.redo, most_rounds)
            rounds = range(1, most_rounds + 1) if tree.repetitions is None else (tree.repetitions,)
            return frozenset().union(*(_concatenate([body, *([redo, body] * (count - 1))]) for count in rounds))


def _concatenate(languages: list[frozenset[Word]]) -> frozenset[Word]:
    return frozenset(sum(words, ()) for words in product(*languages))


def _shuffle(first: Word, second: Word) -> frozenset[Word]:
    """Every interleaving of two words."""
    if not first or not second:
        return frozenset({first + second})
    return frozenset(
        {first[:1] + rest for rest in _shuffle(first[1:], second)}
        | {second[:1] + rest for rest in _shuffle(first, second[1:])}
    )

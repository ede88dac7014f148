"""The executable meaning of process trees: their traces as words, and the constraints on all of some words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product
from typing import TypeAlias

from constraints import Clause
from workflows.relations.extraction import Extraction, Method
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
)

Word: TypeAlias = tuple[str, ...]

_EMPTY: frozenset[Word] = frozenset({()})


def enumerate_language(tree: ProcessTree, most_rounds: int) -> frozenset[Word]:
    """All traces as words of activity names; open loops and instances run 1 to ``most_rounds`` times."""
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
            return _interleaved([enumerate_language(branch, most_rounds) for branch in branches])
        case InclusiveChoice(branches):
            languages = [enumerate_language(branch, most_rounds) for branch in branches]
            chosen = (chosen for size in range(1, len(languages) + 1) for chosen in combinations(languages, size))
            return frozenset().union(*map(_interleaved, chosen))
        case Instances():
            body = enumerate_language(tree.body, most_rounds)
            return frozenset().union(*(_interleaved([body] * count) for count in range(1, most_rounds + 1)))
        case Loop():
            body, redo = enumerate_language(tree.body, most_rounds), enumerate_language(tree.redo, most_rounds)
            rounds = range(1, most_rounds + 1) if tree.repetitions is None else (tree.repetitions,)
            return frozenset().union(*(_concatenate([body, *([redo, body] * (count - 1))]) for count in rounds))


def words_of_tree(tree: ProcessTree, max_length: int) -> frozenset[Word]:
    """All traces of at most ``max_length`` events, with any number of rounds."""
    match tree:
        case Activity(name):
            return frozenset({(name,)}) if max_length else frozenset()
        case Silent():
            return _EMPTY
        case Sequence(parts):
            return _concatenate([words_of_tree(part, max_length) for part in parts], max_length)
        case ExclusiveChoice(branches):
            return frozenset().union(*(words_of_tree(branch, max_length) for branch in branches))
        case Parallel(branches):
            return _interleaved([words_of_tree(branch, max_length) for branch in branches], max_length)
        case InclusiveChoice(branches):
            languages = [words_of_tree(branch, max_length) for branch in branches]
            with_none = _interleaved([language | _EMPTY for language in languages], max_length)
            return with_none if any(() in language for language in languages) else with_none - _EMPTY
        case Instances():
            body = words_of_tree(tree.body, max_length)
            return _repeated(body, lambda words: _interleaved([words, body], max_length))
        case Loop():
            body = words_of_tree(tree.body, max_length)
            again = _concatenate([words_of_tree(tree.redo, max_length), body], max_length)
            if tree.repetitions is not None:
                return _concatenate([body, *([again] * (tree.repetitions - 1))], max_length)
            return _repeated(body, lambda words: _concatenate([words, again], max_length))


def _repeated(words: frozenset[Word], one_more: Callable[[frozenset[Word]], frozenset[Word]]) -> frozenset[Word]:
    while (longer := words | one_more(words)) != words:
        words = longer
    return words


def extraction_of_words(words: Iterable[Word], method: Method = Method.COMPOSITIONAL) -> Extraction:
    """The constraints that hold on all of some traces, by definition, presented as a result of ``method``."""
    language = frozenset(words)
    shown = {frozenset(word) for word in language}
    events = sorted(frozenset().union(*shown))
    pairs = list(product(events, events))
    return Extraction(
        events=tuple(events),
        prior=tuple(
            (one, other) for one, other in pairs if not any(is_followed(word, other, one) for word in language)
        ),
        exclusive=tuple(pair for pair in combinations(events, 2) if _never(shown, pair)),
        require=tuple((one, other) for one, other in pairs if one != other and _always(shown, (one,), other)),
        horn=tuple(sorted(_clauses(shown, events), key=lambda clause: (sorted(clause.body), clause.head or ""))),
        end=tuple(name for name in events if all(name not in word[:-1] for word in language)),
        method=method,
    )


def is_followed(word: Word, first: str, second: str) -> bool:
    """Whether some ``first`` of a word comes before some ``second``."""
    return first in word and second in word[word.index(first) + 1 :]


def _clauses(shown: set[frozenset[str]], events: list[str]) -> Iterator[Clause]:
    """Clauses with an empty body or over three types, that do not follow from a shorter clause."""
    for name in events:
        if _always(shown, (), name):
            yield Clause(frozenset(), name)
    for group in combinations(events, 3):
        if _never(shown, group) and not any(_never(shown, pair) for pair in combinations(group, 2)):
            yield Clause(frozenset(group), None)
        for head in group:
            body = tuple(name for name in group if name != head)
            if _always(shown, body, head) and not (
                _never(shown, body) or any(_always(shown, less, head) for less in ((), body[:1], body[1:]))
            ):
                yield Clause(frozenset(body), head)


def _never(shown: set[frozenset[str]], names: Word) -> bool:
    return not any(types.issuperset(names) for types in shown)


def _always(shown: set[frozenset[str]], body: Word, head: str) -> bool:
    return all(head in types for types in shown if types.issuperset(body))


def _interleaved(languages: Iterable[frozenset[Word]], max_length: int | None = None) -> frozenset[Word]:
    words = _EMPTY
    for language in languages:
        words = frozenset().union(*(_shuffle(*pair) for pair in _short(words, language, max_length)))
    return words


def _concatenate(languages: Iterable[frozenset[Word]], max_length: int | None = None) -> frozenset[Word]:
    words = _EMPTY
    for language in languages:
        words = frozenset(first + second for first, second in _short(words, language, max_length))
    return words


def _short(words: frozenset[Word], others: frozenset[Word], max_length: int | None) -> Iterator[tuple[Word, Word]]:
    """The pairs of a word of each set that have at most ``max_length`` events together; None: all pairs."""
    pairs = product(words, others)
    return (pair for pair in pairs if max_length is None or len(pair[0]) + len(pair[1]) <= max_length)


def _shuffle(first: Word, second: Word) -> frozenset[Word]:
    if not first or not second:
        return frozenset({first + second})
    return frozenset(
        {first[:1] + rest for rest in _shuffle(first[1:], second)}
        | {second[:1] + rest for rest in _shuffle(first, second[1:])}
    )

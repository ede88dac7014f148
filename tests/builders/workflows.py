"""Helpers for tests: random process trees with small languages, and a check of extractions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import comb
from random import Random

from hypothesis import strategies as st

from constraints import ConstraintSet, Part
from tests.references.workflows import Word
from workflows.discovery.violations import count_violations
from workflows.relations.extraction import Extraction
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

MOST_ROUNDS = 3

_NAMES = "ABCD"
_KINDS = ("sequence", "choice", "parallel", "inclusive", "loop", "instances")


def process_trees(
    most_words: int = 2_000, *, most_rounds: int = MOST_ROUNDS, has_repeated_names: bool = False
) -> st.SearchStrategy[ProcessTree]:
    """Trees of up to 4 uniquely named activities, or up to 5 of 4 names, with silent parts and loops.

    With open loops cut at ``most_rounds`` rounds, their languages have at most ``most_words`` words.
    """
    return _trees(has_repeated_names).filter(lambda tree: bound_language(tree, most_rounds)[0] <= most_words)


def bound_language(tree: ProcessTree, most_rounds: int = MOST_ROUNDS) -> tuple[int, int]:
    """Upper bounds of the number of words of the language, and of the length of its longest word."""
    match tree:
        case Activity():
            return 1, 1
        case Silent():
            return 1, 0
        case ExclusiveChoice(branches):
            bounds = [bound_language(branch, most_rounds) for branch in branches]
            return sum(words for words, _ in bounds), max(length for _, length in bounds)
        case Sequence(parts) | Parallel(parts):
            words, length = 1, 0
            for more_words, more_length in (bound_language(part, most_rounds) for part in parts):
                ways = comb(length + more_length, length) if isinstance(tree, Parallel) else 1
                words, length = words * more_words * ways, length + more_length
            return words, length
        case InclusiveChoice(branches):
            words, length = bound_language(Parallel(branches), most_rounds)
            return words * 2 ** len(branches), length
        case Instances():
            return bound_language(Parallel((tree.body,) * most_rounds), most_rounds)
        case Loop():
            body_words, body_length = bound_language(tree.body, most_rounds)
            redo_words, redo_length = bound_language(tree.redo, most_rounds)
            most = tree.repetitions or most_rounds
            least = tree.repetitions or 1
            words = sum(body_words**count * redo_words ** (count - 1) for count in range(least, most + 1))
            return words, body_length * most + redo_length * (most - 1)


def is_bounded(tree: ProcessTree) -> bool:
    """Whether a tree has no unbounded repetition, so that enumeration gives its whole language."""
    match tree:
        case Sequence(parts) | ExclusiveChoice(parts) | Parallel(parts) | InclusiveChoice(parts):
            return all(map(is_bounded, parts))
        case Instances():
            return False
        case Loop():
            return tree.repetitions is not None and is_bounded(tree.body) and is_bounded(tree.redo)
        case Activity() | Silent():
            return True


@st.composite
def _trees(draw: st.DrawFn, has_repeated_names: bool) -> ProcessTree:
    if has_repeated_names:
        names = draw(st.text(_NAMES, min_size=1, max_size=len(_NAMES) + 1))
    else:
        names = "".join(draw(st.permutations(_NAMES[: draw(st.integers(1, len(_NAMES)))])))
    return _grow(draw, names, depth=3)


def _grow(draw: st.DrawFn, names: str, depth: int) -> ProcessTree:
    """A tree over exactly these names; only ``depth`` levels may have silent parts, so that growth ends."""
    if not names:
        return Silent()
    if len(names) == 1 and (depth <= 0 or draw(st.booleans())):
        return Activity(names)
    least, most = (0, len(names)) if depth > 0 else (1, len(names) - 1)
    place = draw(st.integers(least, most))
    first, second = _grow(draw, names[:place], depth - 1), _grow(draw, names[place:], depth - 1)
    match draw(st.sampled_from(_KINDS)):
        case "choice":
            return ExclusiveChoice((first, second))
        case "parallel":
            return Parallel((first, second))
        case "inclusive":
            return InclusiveChoice((first, second))
        case "instances" if not names[place:]:
            return Instances(body=first)
        case "loop":
            fixed = st.integers(2 if names[place:] else 1, MOST_ROUNDS)
            return Loop(body=first, redo=second, repetitions=draw(st.none() | fixed))
        case _:
            return Sequence((first, second))


def random_tree(rng: Random, names: tuple[str, ...], depth: int = 4) -> ProcessTree:
    """A tree over some names, each in one place, of the size of real models; for simulation, not for enumeration."""
    if len(names) == 1:
        return Activity(names[0])
    if not depth:
        return Sequence(tuple(map(Activity, names)))
    cuts = sorted(rng.sample(range(1, len(names)), min(len(names) - 1, rng.randint(1, 3))))
    parts = tuple(random_tree(rng, names[first:last], depth - 1) for first, last in pairwise([0, *cuts, len(names)]))
    match rng.choice((*_KINDS, "sequence", "choice", "optional")):
        case "choice":
            return ExclusiveChoice(parts)
        case "optional":
            return ExclusiveChoice((Sequence(parts), Silent()))
        case "parallel":
            return Parallel(parts)
        case "inclusive":
            return InclusiveChoice(parts)
        case "instances":
            return Sequence((Instances(body=parts[0], again=0.2), *parts[1:]))
        case "loop":
            return Loop(body=parts[0], redo=Sequence(parts[1:]), repetitions=rng.choice((None, None, 2, 3)), again=0.3)
        case _:
            return Sequence(parts)


def broken_parts(extraction: Extraction, words: Iterable[Word]) -> list[Part]:
    """The extracted constraints that do not hold on all of some complete traces."""
    parts = ConstraintSet(constraints=extraction.constraints, end_events=frozenset(extraction.end))
    return [part for part, count in count_violations(parts, words).items() if count]

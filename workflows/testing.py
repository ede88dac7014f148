"""Builders for tests: random process trees whose language is small enough to enumerate."""

from __future__ import annotations

from math import comb

from hypothesis import strategies as st

from workflows.tree import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent

MOST_ROUNDS = 3

_NAMES = "ABCD"
_KINDS = ("sequence", "choice", "parallel", "loop")


def process_trees(most_words: int = 2_000) -> st.SearchStrategy[ProcessTree]:
    """Trees of up to 4 uniquely named activities, with silent parts and loops.

    With open loops cut at ``MOST_ROUNDS`` rounds, their languages have at most ``most_words`` words.
    """
    return _trees().filter(lambda tree: bound_language(tree)[0] <= most_words)


def bound_language(tree: ProcessTree) -> tuple[int, int]:
    """At least as many words as the language has, and as many activities as its longest word."""
    match tree:
        case Activity():
            return 1, 1
        case Silent():
            return 1, 0
        case ExclusiveChoice(branches):
            bounds = [bound_language(branch) for branch in branches]
            return sum(words for words, _ in bounds), max(length for _, length in bounds)
        case Sequence(parts) | Parallel(parts):
            words, length = 1, 0
            for more_words, more_length in map(bound_language, parts):
                ways = comb(length + more_length, length) if isinstance(tree, Parallel) else 1
                words, length = words * more_words * ways, length + more_length
            return words, length
        case Loop():
            body_words, body_length = bound_language(tree.body)
            redo_words, redo_length = bound_language(tree.redo)
            most = tree.repetitions or MOST_ROUNDS
            least = tree.repetitions or 1
            words = sum(body_words**count * redo_words ** (count - 1) for count in range(least, most + 1))
            return words, body_length * most + redo_length * (most - 1)


@st.composite
def _trees(draw: st.DrawFn) -> ProcessTree:
    names = "".join(draw(st.permutations(_NAMES[: draw(st.integers(1, len(_NAMES)))])))
    return _grow(draw, names, depth=3)


def _grow(draw: st.DrawFn, names: str, depth: int) -> ProcessTree:
    """A tree over exactly these names; ``depth`` levels may hold silent parts, so that growth ends."""
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
        case "loop":
            fixed = st.integers(2 if names[place:] else 1, MOST_ROUNDS)
            return Loop(body=first, redo=second, repetitions=draw(st.none() | fixed))
        case _:
            return Sequence((first, second))

"""The iterations of a repetition that a guard reasons about.

A guard's work grows with the third power of the number of steps that it knows. For a pattern with many steps (with
repetitions written out) a guard only knows the last iteration of each repetition, which a match must also have. No
partial match that could complete is terminated; some are terminated later than possible.
"""

from __future__ import annotations

from nfa.syntax import Atom, Node, Repeat

MAX_REASONED = 100  # steps, with repetitions written out


def count_steps(node: Node) -> int:
    """Number of required steps of a part, with repetitions written out; the steps of alternatives are added up."""
    match node:
        case Atom():
            return 1
        case Repeat():
            return node.min * count_steps(node.of)
        case _:
            return sum(count_steps(part) for part in node.parts)


def is_coarse(event: Node) -> bool:
    """Whether a guard only knows the last iteration of each repetition in a part."""
    return count_steps(event) > MAX_REASONED


def reasoned(node: Repeat, *, coarse: bool) -> range:
    """The numbers, from 0, of the iterations that a guard knows: the required ones, or the last if ``coarse``."""
    return range(max(node.min - 1, 0) if coarse else 0, node.min)

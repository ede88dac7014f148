"""The iterations of a repetition that a guard reasons about.

A guard's work grows with the third power of the number of steps that it reasons about. For a pattern with many steps
(with repetitions written out) a guard only considers the last iteration of each repetition, which every match must
have. So no partial match that could complete is terminated, but some are terminated later than possible.
"""

from __future__ import annotations

from nfa.syntax import Atom, Node, Repeat

MAX_REASONED = 100  # number of steps, with repetitions written out


def count_steps(node: Node) -> int:
    """Return the number of required steps of a part, with repetitions written out and all alternatives added up."""
    match node:
        case Atom():
            return 1
        case Repeat():
            return node.min * count_steps(node.of)
        case _:
            return sum(count_steps(part) for part in node.parts)


def is_coarse(event: Node) -> bool:
    """Return whether a guard only considers the last required iteration of each repetition in a pattern."""
    return count_steps(event) > MAX_REASONED


def reasoned(node: Repeat, *, coarse: bool) -> range:
    """Return the numbers, from 0, of the required iterations that a guard considers.

    These are all required iterations, or only the last if ``coarse``.
    """
    return range(max(node.min - 1, 0) if coarse else 0, node.min)

"""The choice of the iterations of a repetition about which a guard reasons.

A guard's work grows with the third power of the number of steps about which it reasons. Therefore, in a pattern with
many required steps, a guard considers only the last required iteration of each repetition. No partial match that could
complete is then terminated, but some partial matches are terminated later than possible.
"""

from __future__ import annotations

from nfa.syntax import Atom, Node, Repeat

MAX_REASONED = 100  # number of steps, with repetitions written out


def count_steps(node: Node) -> int:
    """Return the number of required steps in a part of a pattern.

    A step in a repetition counts once for each required iteration. The steps of all alternatives of an OR count.
    """
    match node:
        case Atom():
            return 1
        case Repeat():
            return node.min * count_steps(node.of)
        case _:
            return sum(count_steps(part) for part in node.parts)


def is_coarse(event: Node) -> bool:
    """Return whether a pattern has too many steps for a guard to consider all iterations of its repetitions."""
    return count_steps(event) > MAX_REASONED


def reasoned(node: Repeat, *, coarse: bool) -> range:
    """Return the range of iterations that guards consider in a repetition, counted from 0.

    The range has all required iterations. If ``coarse``, it has only the last required iteration.
    """
    return range(max(node.min - 1, 0) if coarse else 0, node.min)

"""Workflow nets: places that hold tokens, and transitions that move them, some of which are events.

A plain place/transition net with duplicate labels and silent transitions (W. M. P. van der Aalst, The application of
Petri nets to workflow management, 1998), with two additions that drawn processes need: a transition may empty places
(reset arcs), and may have to wait until places are empty (inhibitor arcs).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Places: TypeAlias = tuple[int, ...]  # places by index, sorted; repeated for several tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A transition, silent without a label; ``element`` is the model's element in words.

    It is enabled when every place of ``inputs`` has its tokens and every place of ``waits`` has none. Firing takes the
    inputs, then empties ``resets``, then adds ``outputs``.
    """

    inputs: Places
    outputs: Places
    label: str | None = None
    resets: Places = ()
    waits: Places = ()
    element: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowNet:
    """A net with its initial marking, its final markings, and its places in words.

    A trace is complete with exactly the tokens of a final marking and no others. ``((),)`` means that no token is left.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    initial: Places
    finals: tuple[Places, ...]

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(transition.label for transition in self.transitions if transition.label is not None)

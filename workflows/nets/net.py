"""Workflow nets: places that hold tokens, and transitions that move tokens. A transition with a label is an event.

The nets are place/transition nets in which several transitions may have the same label, and silent ones have none (W.
M. P. van der Aalst, The application of Petri nets to workflow management, 1998). Drawn processes need two additions: a
transition may empty places (reset arcs), and it may wait until places are empty (inhibitor arcs).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Places: TypeAlias = tuple[int, ...]  # sorted indices of places; a place with several tokens is repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A transition of a net. It emits the event ``label``, or is silent if ``label`` is None.

    A transition is enabled when each place of ``inputs`` has its tokens and each place of ``waits`` is empty. Firing
    takes the inputs, then empties ``resets``, then adds ``outputs``. ``element`` describes the model's element in
    words.
    """

    inputs: Places
    outputs: Places
    label: str | None = None
    resets: Places = ()
    waits: Places = ()
    element: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowNet:
    """A net with its initial marking, its final markings, and a description of each place in words.

    A trace is complete when the tokens are exactly those of a final marking. The final markings ``((),)`` mean that no
    token may be left.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    initial: Places
    finals: tuple[Places, ...]

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(transition.label for transition in self.transitions if transition.label is not None)

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
    """A transition.

    It is enabled when every place of ``inputs`` has its tokens and every place of ``waits`` has none. Firing takes the
    inputs, then empties ``resets``, then adds ``outputs``.

    Attributes:
        inputs: Tokens taken.
        outputs: Tokens added.
        label: Event type; None: silent.
        resets: Places emptied.
        waits: Places that must be empty.
        element: The element of the model in words, for messages.
    """

    inputs: Places
    outputs: Places
    label: str | None = None
    resets: Places = ()
    waits: Places = ()
    element: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowNet:
    """A net with its initial marking and its final markings.

    Attributes:
        places: What each place is, in words, for messages.
        transitions: In the order of the model.
        initial: The marking in which a trace begins.
        finals: The markings in which a trace is complete: exactly these tokens and no others. ``((),)`` means that no
            token is left.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    initial: Places
    finals: tuple[Places, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The event types of all transitions."""
        return frozenset(transition.label for transition in self.transitions if transition.label is not None)

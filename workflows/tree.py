"""Process trees: block-structured workflows as immutable values.

A tree denotes a set of traces, which are sequences of activities. Probabilities affect the simulation only, so a branch
of probability 0 still belongs to the language. ``origin`` describes the model's element from which a node was read,
such as ``exclusive gateway 'In stock?' (G_1)``. It is ignored in comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from workflows.attributes import Attribute
from workflows.durations import Duration
from workflows.errors import InvalidWorkflow


@dataclass(frozen=True, slots=True)
class Activity:
    """A step of a process that emits an event of type ``name``, with its attributes. A leaf of the tree.

    ``duration`` is used in simulations. It is the time from the moment when the activity can begin to its event, or
    None if unknown.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    origin: str = field(default="", compare=False)
    duration: Duration | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidWorkflow("an activity needs a name")
        names = [name for attribute in self.attributes for name in attribute.names]
        if len(set(names)) < len(names):
            raise InvalidWorkflow(f"activity {self.name}: two attributes share a name among {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class Silent:
    """A leaf of the tree: a step of a process without an event."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A block whose parts occur one after the other."""

    parts: tuple[ProcessTree, ...]
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_parts("a sequence", self.parts)


@dataclass(frozen=True, slots=True)
class ExclusiveChoice:
    """A block of which exactly one branch occurs.

    ``probabilities`` sum to 1, or are empty if all branches are equally probable.
    """

    branches: tuple[ProcessTree, ...]
    probabilities: tuple[float, ...] = ()
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_choice("a choice", self, " and sum to 1", _sums_to_1)


@dataclass(frozen=True, slots=True)
class Parallel:
    """A block whose branches all occur, interleaved in any way."""

    branches: tuple[ProcessTree, ...]
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_parts("a parallel block", self.branches)


@dataclass(frozen=True, slots=True)
class InclusiveChoice:
    """A block of which one or more branches occur, interleaved in any way.

    ``probabilities`` has the probability of each branch; if empty, each has 1/2. Branches are drawn independently, and
    the draw is repeated until at least one branch is drawn.
    """

    branches: tuple[ProcessTree, ...]
    probabilities: tuple[float, ...] = ()
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_choice("an inclusive choice", self, ", not all 0", any)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A trace of ``body``, then any number of times a trace of ``redo`` and another trace of ``body``.

    If the model fixes how often ``body`` occurs, ``repetitions`` is this number. Otherwise ``again`` is the probability
    of one more round after each round.
    """

    body: ProcessTree
    redo: ProcessTree = Silent()
    repetitions: int | None = None
    again: float = 0.5
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.repetitions is not None and self.repetitions < 1:
            raise InvalidWorkflow(f"a loop does its body at least once, got {self.repetitions} repetitions")
        if self.repetitions == 1 and any(iterate_activities(self.redo)):
            raise InvalidWorkflow("a loop of one repetition never reaches its redo part; remove that")
        if not 0.0 <= self.again < 1.0:
            raise InvalidWorkflow(f"the probability of another round is at least 0 and below 1, got {self.again}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """One or more concurrent traces of ``body``, interleaved in any way, as in a parallel multi-instance block.

    ``again`` is the probability of one more instance after each instance.
    """

    body: ProcessTree
    again: float = 0.5
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.again < 1.0:
            raise InvalidWorkflow(f"the probability of another instance is at least 0 and below 1, got {self.again}")


ProcessTree: TypeAlias = Activity | Silent | Sequence | ExclusiveChoice | Parallel | InclusiveChoice | Loop | Instances


def parts_of(node: ProcessTree) -> tuple[ProcessTree, ...]:
    """Return the direct parts of a node from left to right. A loop has its body, then its redo part."""
    match node:
        case Sequence(parts) | ExclusiveChoice(parts) | Parallel(parts) | InclusiveChoice(parts):
            return parts
        case Instances():
            return (node.body,)
        case Loop():
            return node.body, node.redo
        case Activity() | Silent():
            return ()


def iterate_activities(tree: ProcessTree) -> Iterator[Activity]:
    """Yield all activities from left to right. An activity that appears more than once in the tree is repeated."""
    if isinstance(tree, Activity):
        yield tree
    for part in parts_of(tree):
        yield from iterate_activities(part)


def activity_names(tree: ProcessTree) -> tuple[str, ...]:
    """Return the distinct names of a tree's activities, in the order of their first occurrence."""
    return tuple(dict.fromkeys(activity.name for activity in iterate_activities(tree)))


def _check_choice(
    what: str,
    choice: ExclusiveChoice | InclusiveChoice,
    requirement: str,
    is_possible: Callable[[Iterable[float]], bool],
) -> None:
    _check_parts(what, choice.branches)
    shares, branches = choice.probabilities, len(choice.branches)
    if shares and len(shares) != branches:
        raise InvalidWorkflow(
            f"{what} of {branches} branches needs the same number of probabilities, not {len(shares)}"
        )
    if shares and not (all(0.0 <= share <= 1.0 for share in shares) and is_possible(shares)):
        raise InvalidWorkflow(f"the probabilities of {what} lie between 0 and 1{requirement}, got {shares}")


def _sums_to_1(shares: Iterable[float]) -> bool:
    return math.isclose(math.fsum(shares), 1.0, abs_tol=1e-9)


def _check_parts(what: str, parts: tuple[ProcessTree, ...]) -> None:
    if not parts:
        raise InvalidWorkflow(f"{what} needs at least one part; use Silent() for nothing")

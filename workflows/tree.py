"""Process trees: block-structured workflows as frozen values.

A tree denotes the set of its traces, sequences of activities. Probabilities affect the simulation only; a branch of
probability 0 still belongs to the language. ``origin`` describes the model's element of a node in words, such as
``exclusive gateway 'In stock?' (G_1)``; it is ignored in comparisons.
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
    """One event of type ``name`` with its attributes.

    ``duration``, for the simulation, is the time from when the activity can begin to its event; None: unknown.
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
    """A silent step: no event."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """All parts, one after the other."""

    parts: tuple[ProcessTree, ...]
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_parts("a sequence", self.parts)


@dataclass(frozen=True, slots=True)
class ExclusiveChoice:
    """Exactly one branch; ``probabilities`` sum to 1, or are empty for equal probabilities."""

    branches: tuple[ProcessTree, ...]
    probabilities: tuple[float, ...] = ()
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_choice("a choice", self, " and sum to 1", _sums_to_1)


@dataclass(frozen=True, slots=True)
class Parallel:
    """All branches, interleaved in any way."""

    branches: tuple[ProcessTree, ...]
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_parts("a parallel block", self.branches)


@dataclass(frozen=True, slots=True)
class InclusiveChoice:
    """One or more branches, interleaved in any way.

    ``probabilities`` has the probability of each branch, taken independently; if no branch is taken, the draw is
    repeated. Empty: 1/2 for each.
    """

    branches: tuple[ProcessTree, ...]
    probabilities: tuple[float, ...] = ()
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        _check_choice("an inclusive choice", self, ", not all 0", any)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A trace of ``body``, then any number of times a trace of ``redo`` and another of ``body``.

    ``repetitions`` is the number of bodies, if the model fixes it; otherwise ``again`` is the probability of one more
    round after each.
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
    """One or more concurrent traces of ``body``, interleaved in any way: a parallel multi-instance block.

    ``again`` is the probability of one more instance after each.
    """

    body: ProcessTree
    again: float = 0.5
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.again < 1.0:
            raise InvalidWorkflow(f"the probability of another instance is at least 0 and below 1, got {self.again}")


ProcessTree: TypeAlias = Activity | Silent | Sequence | ExclusiveChoice | Parallel | InclusiveChoice | Loop | Instances


def parts_of(node: ProcessTree) -> tuple[ProcessTree, ...]:
    """The parts of a node, from left to right; of a loop the body, then the redo part."""
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
    """All activities from left to right; a repeated one is yielded again."""
    if isinstance(tree, Activity):
        yield tree
    for part in parts_of(tree):
        yield from iterate_activities(part)


def activity_names(tree: ProcessTree) -> tuple[str, ...]:
    """The distinct names of the activities, in the order of their first occurrence."""
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
        raise InvalidWorkflow(f"{what} of {branches} branches needs as many probabilities, got {len(shares)}")
    if shares and not (all(0.0 <= share <= 1.0 for share in shares) and is_possible(shares)):
        raise InvalidWorkflow(f"the probabilities of {what} lie between 0 and 1{requirement}, got {shares}")


def _sums_to_1(shares: Iterable[float]) -> bool:
    return math.isclose(math.fsum(shares), 1.0, abs_tol=1e-9)


def _check_parts(what: str, parts: tuple[ProcessTree, ...]) -> None:
    if not parts:
        raise InvalidWorkflow(f"{what} needs at least one part; use Silent() for nothing")

"""Changes of groups, and the derived events that they lead to once the condition is known.

The condition is examined for all changes of a step of the shard together, by columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aggregates.document import AggregateBody
from aggregates.emitting import Change, Emission
from aggregates.groups import Group
from aggregates.rows import Scalar
from streams import format_time

Holds: TypeAlias = Callable[[Mapping[str, Any], int], NDArray[np.bool_]]
"""Whether the condition is true, for each of some rows of named columns: plain values, or a ``ScalarColumn``."""

StepKind: TypeAlias = Literal["changed", "each", "window", "ended"]
"""A window changed; the values are emitted in any case; a fixed window, or another one, ended."""


class Step(NamedTuple):
    """A change of a group.

    Attributes:
        place: The number of the event that decided it, in the order of taking in; 0 if time did.
        cause: What distinguishes it from other changes of the same group and time.
        is_empty: Whether no event is in the window.
        values: The values after the change; of a window that ended, those before.
        more: What the condition reads besides, in the order of ``Having.names``.
        shown: The newest events, as derived events show them.
        bounds: Beginning and end of a window that ended.
        errors: The errors of values that are estimated, by name.
    """

    group: Group
    time_us: int
    place: int
    kind: StepKind
    cause: str
    is_empty: bool
    values: tuple[Scalar, ...]
    more: tuple[Scalar, ...]
    shown: Sequence[Mapping[str, Any]]
    bounds: tuple[int, int] | None
    errors: Mapping[str, float]


def emitted(steps: Sequence[Step], body: AggregateBody, holds: Holds | None) -> Iterator[Emission]:
    """The derived events of some changes, which are in the order of their making."""
    truths = [True] * len(steps) if holds is None else holds(_columns(steps, body), len(steps)).tolist()
    for step, is_true in zip(steps, truths, strict=True):
        change = _change_of(step, body, is_true=is_true and not step.is_empty)
        if change is not None:
            yield emission(step, change, body)


def _change_of(step: Step, body: AggregateBody, *, is_true: bool) -> Change | None:
    """Why a change is emitted, if it is; the group remembers whether its condition is true."""
    if step.kind == "each":
        return "each"
    if step.kind == "window" or body.having is None:
        return "window" if is_true and body.window.ends else None
    group, was_true = step.group, step.group.is_true
    group.is_true = is_true and step.kind == "changed"
    if group.is_true == was_true or not (group.is_true or body.clear):
        return None
    return "met" if group.is_true else "cleared"


def emission(step: Step, change: Change, body: AggregateBody) -> Emission:
    """The derived event of a change."""
    group, names = step.group, [one.name for one in body.values]
    data: dict[str, Any] = dict(zip(body.by, group.values, strict=True))
    data.update(zip(names, step.values, strict=True))
    if change == "window" and step.bounds is not None:
        data |= {"from": format_time(step.bounds[0]), "to": format_time(step.bounds[1])}
    data |= {f"{name}_error": error for name, error in step.errors.items()}
    if body.events:
        data["events"] = step.shown
    return Emission(
        step.time_us,
        int(step.place > 0),
        step.place,
        group.text,
        change,
        step.cause,
        group.key,
        group.key_hash,
        data,
    )


def _columns(steps: Sequence[Step], body: AggregateBody) -> dict[str, Sequence[Scalar]]:
    """What a condition may read of some changes, by name."""
    names = [*body.by, *(one.name for one in body.values), *(() if body.having is None else body.having.names)]
    rows = ((*step.group.values, *step.values, *step.more) for step in steps)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

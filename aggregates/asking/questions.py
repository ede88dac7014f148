"""Questions over the events of a window: groups, equalities, values and a sub-window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from aggregates.scalars import Scalar

ValueFunction: TypeAlias = Literal["count", "sum", "avg", "min", "max", "distinct"]
FUNCTIONS: tuple[ValueFunction, ...] = get_args(ValueFunction)
NUMERIC: tuple[ValueFunction, ...] = ("sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class AskedValue:
    """A value of each group.

    ``count`` counts all events or, with an attribute, the events in which the attribute is not null.
    """

    function: ValueFunction
    attribute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about the events of a window: groups, equalities, values and a sub-window.

    Attributes:
        by: Attributes that form groups; empty: one group, which exists even without events.
        where: The value that each of some attributes must have; null equals nothing, as in SQL.
        window_us: The length of the window; None: the whole window of the index.
        until_us: The end of the window, unless the time of the index is later; None: the time of the index.
    """

    values: Mapping[str, AskedValue]
    by: Sequence[str] = ()
    where: Mapping[str, Scalar] = field(default_factory=dict)
    window_us: int | None = None
    until_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWindow:
    """The content of an index that answers questions: attributes, measures (numeric arguments), and the window length.

    ``unfiltered``: attributes that no question can fix, so the index has no address bits for them.
    """

    attributes: tuple[str, ...]
    measures: tuple[str, ...]
    span_us: int
    unfiltered: frozenset[str] = frozenset()

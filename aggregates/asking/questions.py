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
    """A value that a question asks for in each group: a function of an attribute.

    ``count`` counts the events in which the attribute is not null. Without an attribute, it counts all events.
    """

    function: ValueFunction
    attribute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about the events of a window: groups, equalities, values and a sub-window.

    Attributes:
        by: Attributes that form groups. If empty, there is one group, even without events.
        where: The required values of attributes. As in SQL, null equals nothing.
        window_us: The length of the sub-window, or None for the whole window of the index.
        until_us: The end of the sub-window. If None or earlier than the time of the index, this time is the end.
    """

    values: Mapping[str, AskedValue]
    by: Sequence[str] = ()
    where: Mapping[str, Scalar] = field(default_factory=dict)
    window_us: int | None = None
    until_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWindow:
    """What a question index holds of each event: attributes, measures (numeric arguments), and for how long.

    Questions cannot filter by the attributes in ``unfiltered``. The index gives them no address bits.
    """

    attributes: tuple[str, ...]
    measures: tuple[str, ...]
    span_us: int
    unfiltered: frozenset[str] = frozenset()

"""Events as an aggregate takes them in: the group of each, and the arguments of the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

Scalar = bool | int | float | str | None


class Row(NamedTuple):
    """One event.

    Attributes:
        group: The values of ``by``.
        key: Correlation key of the event, which its group keeps for its derived events, and its hash.
        arguments: The argument of each value; True for ``count()``.
        event: What derived events show of the event; None unless the aggregate has ``events``.
        retracts: The id of the event that this one takes out of the window; empty: it counts itself.
        is_revocable: Whether a later event may take this one out.
        ends: Whether the transaction of the key ends after the event, or here (a row without an event has no id).
        asked: The values of the attributes of ``ask``.
    """

    time_us: int
    group: tuple[Scalar, ...]
    key: str
    key_hash: int
    id: str
    arguments: tuple[Scalar, ...]
    event: Mapping[str, Any] | None = None
    retracts: str = ""
    is_revocable: bool = False
    ends: bool = False
    asked: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class EventRows:
    """Events in the order in which they are taken in.

    Attributes:
        newest_us: The newest time of the batch, also of events that do not count.
    """

    rows: Sequence[Row]
    newest_us: int

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def group_text(group: Sequence[Scalar]) -> str:
    """The canonical text of a group, by which groups are equal and ordered; 1 and 1.0 are the same number."""
    return orjson.dumps(normal_group(group)).decode()


def normal_group(group: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The values of a group as derived events show them, whichever of its events came first."""
    return tuple(normal_value(one) for one in group)


def normal_value(value: Scalar) -> Scalar:
    """A value as it is emitted: whole numbers without a decimal point, as 1 and 1.0 are equal."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value

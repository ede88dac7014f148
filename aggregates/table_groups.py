"""The rows of a table as groups. An index finds the rows whose values an event has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from aggregates.scalars import Scalar, canonical, key_of


@dataclass(frozen=True, slots=True)
class TableGroups:
    """The groups of an aggregate that are rows of a table. A row may leave attributes open (null).

    Attributes:
        every: The groups. Each has the key and the values of its row.
        found: The groups by the indexes of the attributes for which a row has values, then by these values.
    """

    every: Set[tuple[Scalar, ...]]

    found: Mapping[tuple[int, ...], Mapping[tuple[object, ...], Sequence[tuple[Scalar, ...]]]]

    @classmethod
    def of(cls, rows: pa.RecordBatch, key: str, by: Sequence[str], more: Sequence[str] = ()) -> Self:
        """Make a group of each row. A group has the row's key, then the values of the columns ``by`` and ``more``.

        If the table lacks one of the columns, there are no groups.
        """
        names = (*by, *more)
        if not {key, *names} <= set(rows.schema.names):
            return cls(frozenset(), {})
        groups: dict[tuple[int, ...], dict[tuple[object, ...], list[tuple[Scalar, ...]]]] = {}
        columns = [map(canonical, rows.column(name).to_pylist()) for name in names]
        every = list(zip(map(str, rows.column(key).to_pylist()), *columns, strict=True))
        for group in sorted(every, key=lambda values: values[0]):
            fixed = tuple(place for place, value in enumerate(group[1 : len(by) + 1]) if value is not None)
            same = tuple(key_of(group[place + 1]) for place in fixed)
            groups.setdefault(fixed, {}).setdefault(same, []).append(group)
        return cls(frozenset(every), dict(sorted(groups.items())))

    def __len__(self) -> int:
        return len(self.every)

    def __contains__(self, group: object) -> bool:
        return group in self.every

    def groups_of(self, values: Sequence[Scalar]) -> list[tuple[Scalar, ...]]:
        """Return the groups to which an event belongs: rows whose values equal the event's ``values`` or are null."""
        keys = [key_of(canonical(value)) for value in values]
        return [
            group
            for fixed, known in self.found.items()
            for group in known.get(tuple([keys[place] for place in fixed]), ())
        ]

    @property
    def most_at_once(self) -> int:
        """Return the greatest number of groups to which one event can belong."""
        return sum(max(map(len, known.values())) for known in self.found.values())

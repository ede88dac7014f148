"""Groups of an aggregate that are the rows of a table (``for_each_row_of``), and limits on their number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates import AggregateBody, Holds, Scalar, TableGroups
from nfa import MOST_ROWS, MOST_ROWS_AT_ONCE, TooManyRows
from streams import EventBatch, duration_of
from streams.tables import OpenTable, TableRefused, Tables

_PAIRS_AT_ONCE = 1 << 18  # pairs of an event and a row
_MOST_WINDOWS = 100  # different lengths; each length has a run of its own, of about a megabyte in every shard


class RowGroups:
    """The groups of an aggregate with ``for_each_row_of``: each row of its table is a group.

    Other aggregates have none.
    """

    def __init__(self, body: AggregateBody) -> None:
        self._body = body
        self._versions: Sequence[OpenTable] = ()
        self._begins: list[int] = []
        self._tables: list[TableGroups] = []

    def read(self, tables: Tables | None) -> None:
        """Read the groups from the rows of the aggregate's table, if the table has changed since."""
        versions = (tables or Tables()).versions.get(self._body.rows_of or "", ())
        if versions is not self._versions:
            self._versions = versions
            self._begins = [version.version.since_us or 0 for version in versions[1:]]
            self._tables = [_groups(self._body, version) for version in versions]

    def parts(self, batch: EventBatch) -> Iterator[EventBatch]:
        """Split a batch so that each part has a limited number of (event, group) pairs."""
        most = max((groups.most_at_once for groups in self._tables), default=0)
        size = max(1, _PAIRS_AT_ONCE // max(1, most))
        for begin in range(0, len(batch), size):
            yield batch.slice(begin, min(size, len(batch) - begin))

    def groups_of(self, time_us: int, values: Sequence[Scalar]) -> Sequence[tuple[Scalar, ...]]:
        """Return the groups of an event: the rows of the table that are valid at ``time_us`` and match ``values``."""
        if not self._tables:
            return ()
        return self._tables[bisect_right(self._begins, time_us)].groups_of(values)

    def of_rows(self, holds: Holds | None) -> Holds | None:
        """Return a condition that is false for groups whose row has left the table, and otherwise equals ``holds``."""
        if holds is None or self._body.rows_of is None:
            return holds

        def both(columns: Mapping[str, Any], size: int) -> NDArray[np.bool_]:
            is_true = np.array(holds(columns, size))
            groups = zip(*(columns[name] for name in self._body.by), strict=True)
            is_true &= [any(group in rows for rows in self._tables) for group in groups]
            return is_true

        return both


def require_groups(body: AggregateBody, tables: Tables) -> None:
    """Refuse a table that has too many rows for groups, or a row whose window is not a duration."""
    for opened in tables.versions.get(body.rows_of or "", ()):
        groups, name = _groups(body, opened), opened.version.name
        if len(groups) > MOST_ROWS:
            raise TooManyRows(
                f"an aggregate is for each row of {name!r}, which has {len(groups):,} rows; at most {MOST_ROWS:,}",
                table=name,
            )
        if groups.most_at_once > MOST_ROWS_AT_ONCE:
            raise TooManyRows(
                f"an aggregate is for each row of {name!r}, and an event may be in {groups.most_at_once:,} of them; at "
                f"most {MOST_ROWS_AT_ONCE:,}: give the rows more, or different, values of "
                f"{', '.join(body.attributes)}",
                table=name,
            )
        _require_windows(body, groups, name)


def _require_windows(body: AggregateBody, groups: TableGroups, name: str) -> None:
    every = groups.every if body.window.column else ()
    if len(lengths := {duration for *_, duration in every}) > _MOST_WINDOWS:
        raise TooManyRows(
            f"the rows of {name!r} have windows of {len(lengths):,} different lengths in {body.window.column}; at most "
            f"{_MOST_WINDOWS:,}: round them up",
            table=name,
        )
    for row, *_, duration in every:
        if duration is not None and not duration_of(duration):
            raise TableRefused(
                f"the row {row!r} of {name!r} has in {body.window.column} {duration!r}, which the aggregate reads "
                "as the length of its window: write a duration such as '20 min', or nothing",
                column=body.window.column,
            )


def _groups(body: AggregateBody, opened: OpenTable) -> TableGroups:
    (key,) = opened.version.form.key
    return TableGroups.of(opened.rows(), key, body.attributes, body.by[len(body.attributes) + 1 :])

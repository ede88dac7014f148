"""The attributes of simulated events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numpy.random import Generator

from workflows.attributes import Value
from workflows.tree import Activity

_BLOCK_ROWS = 512


class DataSource:
    """Draws attributes of events, in blocks for each activity."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._rows: dict[int, Iterator[dict[str, Value]]] = {}

    def next_for(self, activity: Activity) -> dict[str, Value]:
        rows = self._rows.get(id(activity))
        if rows is None:
            rows = self._rows[id(activity)] = self._draw(activity)
        return next(rows)

    def _draw(self, activity: Activity) -> Iterator[dict[str, Value]]:
        names = [name for attribute in activity.attributes for name in attribute.names]
        while True:
            columns: list[Sequence[Value]] = []
            for attribute in activity.attributes:
                columns += [attribute.sample(self._rng, _BLOCK_ROWS)] * len(attribute.names)
            rows = zip(*columns, strict=True) if columns else iter([()] * _BLOCK_ROWS)
            for row in rows:
                yield dict(zip(names, row, strict=True))

"""A small join that calls all kernels of joins in order to compile them (``streams.compiling``)."""

from __future__ import annotations

from joins.items import Item, ItemColumns
from joins.windowed import Window, WindowJoin

JOIN_EXERCISE = "joins.exercises:joined"


def joined() -> int:
    """Run small joins that call each kernel of the package. Return the number of results of one of them."""
    windows = (Window("time", 10), Window())
    join, restored = WindowJoin(windows, outer=[0]), WindowJoin(windows, outer=[0])
    rows = [(Item.EVENT, number % 2, number // 2 + 1, number) for number in range(200)]
    results = join.push(ItemColumns.of([*rows, (Item.CLOSING, 1, 1, 200), (Item.TIME, 0, 0, 205)]))
    join.unjoin(3, 0, 4)
    join.retract(3, 0, 4)
    join.is_over(3)
    join.change([Window("time", 5), Window()])
    join.drop(join.keys()[:1])
    keys, events = join.take(join.coldest(2))
    join.put_back(keys, events[events["sequence"].argsort()])
    restored.load(*join.dump())
    three = WindowJoin((*windows, Window()), optional=[1])
    three.push(ItemColumns.of(rows))
    three.change([Window("time", 5), Window(), Window()])
    return len(results.members)

"""Ways to pass tables between kernels: by value, by reference, or as one array of records (ADR 28).

In a generated program of 14 nested functions, each function reads and writes 12 columns of a table of 160. For each
way, the output is the CPU time of the compilation and the time of a call of the whole chain, relative to passing by
value.

``scripts/bench table_passing [--quick]``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import routine

ROWS, NESTED, USED = 1_024, 14, 12


def table_of(columns: int) -> Any:
    """Return a table of ``int64`` columns, as a named tuple."""
    make: Any = NamedTuple
    return make("Table", [(f"c{number}", Any) for number in range(columns)])(
        *(np.arange(ROWS) + number for number in range(columns))
    )


def records_of(columns: int) -> Any:
    """Return the same table as one array of records."""
    table = np.zeros(ROWS, [(f"c{number}", np.int64) for number in range(columns)])
    for number in range(columns):
        table[f"c{number}"] = np.arange(ROWS) + number
    return table


def chain(cell: str, columns: int, inner: Callable[..., Any], outer: Callable[..., Any], first: str) -> Any:
    """Generate the chain of nested functions, and return its outermost function.

    ``cell`` is a template for a column of a row.
    """
    names: dict[str, Any] = {"borrowed": borrowed, "inner": inner, "outer": outer}
    lines = []
    for level in range(NESTED):
        used = [cell.format((level * USED + place) % columns) for place in range(USED)]
        body = [f"    {one} += {other} & 1" for one, other in zip(used, [*used[1:], used[0]], strict=True)]
        rest = f"f{level - 1}(t, i)" if level else "0"
        name, mark = (f"f{level}", "inner") if level < NESTED - 1 else ("whole", "outer")
        opening = [f"    {first}"] if mark == "outer" and first else []
        lines += [f"@{mark}", f"def {name}(t, i):", *opening, *body, f"    return {used[0]} + {rest}"]
    exec("\n".join(lines), names)  # noqa: S102 (made from numbers only)
    return names["whole"]


def uncached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel without cache, so that a second compilation costs the same."""
    return cast("Callable[..., Any]", njit(nogil=True)(function))


def main() -> None:
    """Print a line for each way."""
    columns = 40 if "--quick" in sys.argv else 160
    table, records = table_of(columns), records_of(columns)
    ways: Mapping[str, tuple[Any, Any]] = {
        "tuple of arrays by value": (chain("t.c{}[i]", columns, uncached, uncached, ""), table),
        "tuple of arrays by reference": (chain("t.c{}[i]", columns, routine, uncached, "t = borrowed(t)"), table),
        "array of records": (chain('t[i]["c{}"]', columns, uncached, uncached, ""), records),
        "array of records, routines": (chain('t[i]["c{}"]', columns, routine, uncached, ""), records),
    }
    measured = {}
    for name, (whole, given) in ways.items():
        start = time.process_time()
        whole(given, 0)
        compiled = time.process_time() - start
        start = time.process_time()
        for row in range(ROWS):
            whole(given, row)
        measured[name] = compiled, (time.process_time() - start) / ROWS * 1e6
    first = next(iter(measured.values()))
    print(f"| {columns} columns, {NESTED} nested functions | compiled | to by value | call | to by value |")
    print("|---|---|---|---|---|")
    for name, (compiled, call) in measured.items():
        print(f"| {name} | {compiled:.1f} s | {compiled / first[0]:.2f} | {call:.1f} us | {call / first[1]:.2f} |")


if __name__ == "__main__":
    main()

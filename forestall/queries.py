"""``forestall.sql``: SQL with MATCH_RECOGNIZE over tables, in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from forestall.errors import FrameRefused
from forestall.frames import Frame, read_frame
from nfa import run_query


def sql(query: str, /, *, max_steps: int | None = None, **tables: Any) -> Any:
    """Run a query with MATCH_RECOGNIZE.

    Args:
        query: ``SELECT … FROM name MATCH_RECOGNIZE (…)``, with WHERE, ORDER BY and LIMIT of the result.
        max_steps: Steps that the search may take in one partition (default: a billion); with more the call fails.
        tables: The tables by the names that the query uses: lists of dictionaries, DataFrames of pandas or polars,
            tables or datasets of Arrow, relations of DuckDB.

    Returns:
        The result, in the form of the table that the query reads.

    Raises:
        ForestallError: The query or the table is refused, or the search takes too many steps; the message names the
            place.
    """
    frames: list[Frame] = []

    def read(name: str) -> pa.Table:
        found = next((one for one in tables if one.lower() == name.lower()), None)
        if found is None:
            given = ", ".join(tables) or "none"
            raise FrameRefused(f"the query reads {name}; pass it by name, as {name}=...; given: {given}")
        frames.append(read_frame(tables[found]))
        return frames[0].table

    result = run_query(query, read, max_steps=max_steps)
    return frames[0].back(result)

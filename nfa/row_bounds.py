"""Bounds of FOR EACH ROW: the number of rows, and of rows that one event concerns."""

from __future__ import annotations

from nfa.automata.query_building import build_query
from nfa.conditions.table_rows import RowIndex, TableRows
from nfa.errors import TooManyRows
from nfa.language.strangers import columns_read
from nfa.syntax import Pattern
from streams.tables import Tables

MOST_ROWS = 10_000
MOST_ROWS_AT_ONCE = 1_000


def require_rows(pattern: Pattern, tables: Tables) -> None:
    """Check that a pattern with FOR EACH ROW may have the rows that its table has in ``tables``.

    Raises:
        TooManyRows: The table has more than ``MOST_ROWS`` rows, or an event may meet more than ``MOST_ROWS_AT_ONCE`` of
            them at a step.
    """
    if pattern.rows is None:
        return
    name, *versions = pattern.rows.table, *tables.versions.get(pattern.rows.table, ())
    for opened in versions:
        rows = opened.rows()
        if len(rows) <= MOST_ROWS_AT_ONCE:
            continue
        if len(rows) > MOST_ROWS:
            raise TooManyRows(
                f"the pattern {pattern.name!r} is for each row of {name!r}, which has {len(rows):,} rows; at most "
                f"{MOST_ROWS:,}: use another table with the rows that matter, or lookup() in a pattern without rows",
                table=name,
            )
        read = TableRows.of(rows, opened.version.form.key, sorted(columns_read(pattern)))
        index = RowIndex(read, [build_query(pattern).pattern.event], pattern.rows.alias, ())
        if index.most_rows > MOST_ROWS_AT_ONCE:
            raise TooManyRows(
                f"the pattern {pattern.name!r} is for each row of {name!r}, and an event may meet {index.most_rows:,} "
                f"of its rows at one step; at most {MOST_ROWS_AT_ONCE:,}: compare an attribute of the event with a "
                f"column by =, as in [attribute = {pattern.rows.alias}.column], whose values differ from row to row",
                table=name,
            )

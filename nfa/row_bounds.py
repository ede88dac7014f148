"""Limits of FOR EACH ROW: how many rows a table may have, and how many of them an event may concern."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from nfa.conditions.over_events import over_events
from nfa.conditions.table_rows import RowIndex, TableRows, dispatched_steps
from nfa.errors import TooManyRows
from nfa.language.strangers import columns_read
from nfa.language.stream_checks import Notice
from nfa.syntax import Pattern
from streams.tables import Tables

MOST_ROWS = 10_000
MOST_ROWS_AT_ONCE = 1_000


def row_notices(pattern: Pattern) -> Iterator[Notice]:
    """Yield a warning for each step whose events concern every row, because no equality with a column selects rows."""
    if pattern.rows is None:
        return
    row = pattern.rows.alias
    for atom, columns, opens in dispatched_steps(over_events(pattern).event, row):
        if opens and not columns:
            yield Notice(
                "every-row",
                f"each event of the type {atom.type} meets every row of {pattern.rows.table}; compare an attribute "
                f"with a column, as in [attribute = {row}.column], so that an index finds its rows",
                atom.position,
            )


def rows_met(pattern: Pattern) -> list[tuple[str, str]]:
    """Return (alias, description) for each step of a pattern with FOR EACH ROW.

    The description says, in words, which rows of the table an event of the step concerns.
    """
    if pattern.rows is None:
        return []
    descriptions = []
    for atom, columns, opens in dispatched_steps(over_events(pattern).event, pattern.rows.alias):
        names = " and ".join(f"{pattern.rows.alias}.{column}" for column in columns)
        default = "every row" if opens else "the rows with events bound in the transaction"
        descriptions.append(
            (atom.alias, f"the rows with the values of the event, by an index over {names}" if names else default)
        )
    return descriptions


def require_rows(pattern: Pattern, tables: Tables) -> None:
    """Refuse a pattern with FOR EACH ROW if its table has too many rows, or if an event concerns too many of them.

    The table may have ``MOST_ROWS`` rows, and an event may concern ``MOST_ROWS_AT_ONCE`` of them at one step.
    """
    if pattern.rows is None:
        return
    name, *versions = pattern.rows.table, *tables.versions.get(pattern.rows.table, ())
    for table_version in versions:
        rows = table_version.rows()
        if len(rows) <= MOST_ROWS_AT_ONCE:
            continue
        if len(rows) > MOST_ROWS:
            raise TooManyRows(
                f"the pattern {pattern.name!r} is for each row of {name!r}, which has {len(rows):,} rows; at most "
                f"{MOST_ROWS:,}: use another table with the rows that matter, or lookup() in a pattern without rows",
                table=name,
            )
        table_rows = TableRows.of(rows, table_version.version.form.key, sorted(columns_read(pattern)))
        index = RowIndex(table_rows, [over_events(pattern).event], pattern.rows.alias, ())
        if index.most_rows > MOST_ROWS_AT_ONCE:
            raise TooManyRows(
                f"the pattern {pattern.name!r} is for each row of {name!r}, and an event may meet {index.most_rows:,} "
                f"of its rows at one step; at most {MOST_ROWS_AT_ONCE:,}: compare an attribute of the event with a "
                f"column by =, as in [attribute = {pattern.rows.alias}.column], whose values differ from row to row",
                table=name,
            )


def key_notices(pattern: Pattern, tables: Tables) -> Iterator[Notice]:
    """Yield a warning for each comparison with a key column of texts that all look like whole numbers.

    A key column has texts, unless another type is declared. A text never equals an attribute that is a number.
    """
    table_versions = tables.versions.get("" if pattern.rows is None else pattern.rows.table, ())
    if pattern.rows is None or not table_versions:
        return
    form, rows = table_versions[-1].version.form, table_versions[-1].rows()
    texts = [name for name in form.key if form.columns[name] == "text" and len(rows)]
    numbers = [name for name in texts if pc.all(pc.match_substring_regex(rows.column(name), r"^-?[0-9]+$")).as_py()]
    for atom, columns, _ in dispatched_steps(over_events(pattern).event, pattern.rows.alias):
        for column in columns:
            if column in numbers:
                yield Notice(
                    "text-key",
                    f"{pattern.rows.alias}.{column} is a text, as key columns are unless another type is declared, "
                    f"and a number never equals a text; if {atom.type} has a number there, declare the column of "
                    f"{pattern.rows.table} as integer",
                    atom.position,
                )

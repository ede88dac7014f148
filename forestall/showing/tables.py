"""Tables of results as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pyarrow as pa

_MOST_ROWS = 10
_MOST_CHARACTERS = 80


def result_html(summary: str, name: str, table: pa.Table | None, notices: Sequence[str], extra: str = "") -> str:
    """A result: a sentence, a picture if there is one, the first rows of a list, and notices.

    Args:
        summary: The sentence.
        name: Name of the list.
        table: The list; None: it was not kept.
        notices: Probable mistakes, in words.
        extra: HTML between the sentence and the list.
    """
    parts = [f"<p>{escape(summary)}</p>", extra]
    if table is not None:
        parts.append(table_html(name, table))
    parts += [f"<p><em>{escape(notice)}</em></p>" for notice in notices]
    return f'<div class="forestall">{"".join(parts)}</div>'


def table_html(name: str, table: pa.Table) -> str:
    """The first rows of a table; columns that are null or false in all of them are left out."""
    shown = table.slice(0, _MOST_ROWS)
    columns = {one: shown.column(one).to_pylist() for one in shown.schema.names}
    columns = {one: values for one, values in columns.items() if any(value not in (None, False) for value in values)}
    head = "".join(f"<th>{escape(one)}</th>" for one in columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*columns.values(), strict=True))
    more = f", the first {_MOST_ROWS} of {len(table):,}" if len(table) > _MOST_ROWS else ""
    return f"<table><caption>{escape(name)}{more}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    cut = text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
    return f"<td>{escape(cut)}</td>"

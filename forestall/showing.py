"""Results in a notebook, as HTML without scripts. Every text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from streams import shown_time

if TYPE_CHECKING:
    from workflows import WorkflowModel  # slow to import

_WIDTH, _MARGIN, _ROW, _DOT = 900, 24, 22, 5
_MOST_EVENTS = 200
_MOST_ROWS = 10
_MOST_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG picture, which a notebook shows and ``save`` writes to a file."""

    svg: str

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event of a time line. ``marks`` are the aliases that bind the event."""

    type: str
    time_us: int
    id: str
    marks: Sequence[str]


def process_picture(model: WorkflowModel, counts: Mapping[str, int]) -> Picture:
    """Draw a model, with the number of events beside each activity."""
    from workflows import draw  # noqa: PLC0415 - takes long to import

    return Picture(draw(model, counts))


def time_line(key: str, events: Sequence[ShownEvent]) -> Picture:
    """Draw the events of a transaction in time order, one below the other. Bound events are filled and labelled.

    At most the first 200 events are shown.
    """
    shown_events = events[:_MOST_EVENTS]
    first, last = (shown_events[0].time_us, shown_events[-1].time_us) if shown_events else (0, 0)
    scale = (_WIDTH / 2 - 2 * _MARGIN) / max(last - first, 1)
    rows = []
    for number, event in enumerate(shown_events):
        x, y = _MARGIN + (event.time_us - first) * scale, 2 * _MARGIN + number * _ROW
        fill = "#2f6fbb" if event.marks else "none"
        marks = f" ({', '.join(event.marks)})" if event.marks else ""
        text = f"{shown_time(event.time_us)}  {event.type}{marks}"
        rows.append(
            f'<circle cx="{x:.1f}" cy="{y}" r="{_DOT}" fill="{fill}" stroke="#2f6fbb">'
            f"<title>{escape(event.id)}</title></circle>"
            f'<text x="{_WIDTH / 2:.0f}" y="{y + 4}">{escape(text)}</text>'
        )
    more = f", the first {_MOST_EVENTS} of {len(events):,} events" if len(events) > _MOST_EVENTS else ""
    height = 3 * _MARGIN + len(shown_events) * _ROW
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="currentColor">'
        f'<text x="{_MARGIN}" y="{_MARGIN}" font-weight="bold">'
        f"{escape(key)}{more}</text>{''.join(rows)}</svg>"
    )


def result_html(summary: str, name: str, table: pa.Table | None, notices: Sequence[str], extra: str = "") -> str:
    """Render a result: ``summary`` as a sentence, ``extra`` as HTML, the first rows of a list, and notices.

    ``name`` is the list's name. ``table`` is the list, or None if it was not kept.
    """
    parts = [f"<p>{escape(summary)}</p>", extra]
    if table is not None:
        parts.append(table_html(name, table))
    parts += [f"<p><em>{escape(notice)}</em></p>" for notice in notices]
    return f'<div class="forestall">{"".join(parts)}</div>'


def table_html(name: str, table: pa.Table) -> str:
    """Render the first rows of a table. A column is left out if it is null or false in all of these rows."""
    first_rows = table.slice(0, _MOST_ROWS)
    columns = {column_name: first_rows.column(column_name).to_pylist() for column_name in first_rows.schema.names}
    columns = {
        column_name: values
        for column_name, values in columns.items()
        if any(value not in (None, False) for value in values)
    }
    head = "".join(f"<th>{escape(column_name)}</th>" for column_name in columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*columns.values(), strict=True))
    more = f", the first {_MOST_ROWS} of {len(table):,}" if len(table) > _MOST_ROWS else ""
    return f"<table><caption>{escape(name)}{more}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    cut = text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
    return f"<td>{escape(cut)}</td>"

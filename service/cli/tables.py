"""``forestall tables`` and ``forestall calendars``: the reference tables and calendars of the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from service.cli.calling import Caller, Commands
from service.cli.inputs import progress_bar
from service.cli.models import read_content
from service.cli.operators import read_document
from service.cli.output import counted
from service.cli.resources import Resource, Table, add_delete, add_list, add_show
from service.client import part
from streams.tables import format_of, media_type_of

tables = Commands(help="Reference tables of the running service.")


def with_names_of_users(item: dict[str, Any]) -> dict[str, Any]:
    """Return a table or calendar in which ``users`` has only the names of the operators that use it."""
    return {**item, "users": [user["name"] for user in item["users"]]}


_MOST_BYTES, _MOST_OF_CALENDAR = 2**31, 2**20
_TABLES = Resource(
    path="/tables",
    one="table",
    listed="the tables, by name",
    table=Table(
        ("name", "version", "key", "rows", "changes", "users:looked up by"),
        with_names_of_users,
    ),
)

add_list(tables, _TABLES)
add_show(tables, _TABLES, "a table: its columns, key, versions, and the operators that look it up")


@tables.command("add")
def add_table(
    client: Caller,
    name: Annotated[str, typer.Argument(help="Name of the table.")],
    file: Annotated[Path, typer.Argument(help="Rows: .csv with a header line, .jsonl or .parquet.")],
    key: Annotated[list[str], typer.Option(metavar="COLUMN", help="Column of the key. Repeatable.")],
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:TYPE",
            help="Type of a column: text, integer, number, boolean or time (default: inferred). Repeatable.",
        ),
    ] = None,
) -> None:
    """Upload a table; an existing one gets its next version."""
    media_type, content = media_type_of(format_of(file.name)), read_content(file, _MOST_BYTES, "table")
    with progress_bar(f"uploading {file.name}"):
        query, headers = {"key": key, "column": column}, {"Content-Type": media_type}
        stored_table = client.request("PUT", f"/tables/{part(name)}", query=query, body=content, headers=headers)
    sentence = f"{stored_table['name']}: version {stored_table['version']}, {counted(stored_table['rows'], 'row')}"
    client.say(stored_table, sentence)


@tables.command("change")
def change_row(
    client: Caller,
    name: Annotated[str, typer.Argument(help="Name of the table.")],
    key: Annotated[list[str], typer.Option(metavar="VALUE", help="Key of the row. Repeatable, once per key column.")],
    file: Annotated[
        Path | None,
        typer.Option("--row", metavar="FILE", help="JSON object with the columns (default: remove the row)."),
    ] = None,
) -> None:
    """Add, change or remove one row of a table; only later events see the change."""
    path, query = f"/tables/{part(name)}/rows", {"key": key}
    if file is None:
        answer = client.request("DELETE", path, query=query)
    else:
        row, headers = read_content(file, _MOST_BYTES, "row"), {"Content-Type": "application/json"}
        answer = client.request("PUT", path, query=query, body=row, headers=headers)
    row_key = ", ".join(key)
    sentence = f"{name} has no row {row_key} now" if file is None else f"{name}: the row {row_key} is stored"
    client.say(answer or {"removed": key}, sentence)


add_delete(tables, _TABLES, "Delete a table that no operator looks up.")


calendars = Commands(help="Calendars of the running service.")

_CALENDARS = Resource(
    path="/calendars",
    one="calendar",
    listed="the calendars, by name",
    table=Table(
        ("name", "version", "created_at", "users:used by"),
        with_names_of_users,
    ),
)

add_list(calendars, _CALENDARS)
add_show(calendars, _CALENDARS, "a calendar: its declaration, versions, and the operators that use it")


@calendars.command("put")
def put_calendar(
    client: Caller,
    name: Annotated[str, typer.Argument(help="Name of the calendar.")],
    file: Annotated[Path, typer.Argument(help="Declaration, YAML or JSON: zone, hours, holidays, exceptions.")],
    ical: Annotated[Path | None, typer.Option(help="Holidays as an iCalendar file (.ics).")] = None,
) -> None:
    """Declare a calendar; an existing one gets its next version."""
    document = read_document(file)
    if ical is not None:
        document["ical"] = read_content(ical, _MOST_OF_CALENDAR, "calendar").decode(errors="replace")
    content = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    stored_calendar = client.request(
        "PUT", f"/calendars/{part(name)}", body=content, headers={"Content-Type": "application/json"}
    )
    client.say(stored_calendar, f"{stored_calendar['name']}: version {stored_calendar['version']}")


add_delete(calendars, _CALENDARS, "Delete a calendar that no operator uses.")

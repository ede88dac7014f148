"""``forestall calendars``: the calendars of the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from service.cli.calling import Caller, Commands
from service.cli.models import read_content
from service.cli.operators import read_document
from service.cli.resources import Resource, Table, add_delete, add_list, add_show
from service.client import part

calendars = Commands(help="Calendars of the running service.")

_MOST_BYTES = 2**20
_CALENDARS = Resource(
    path="/calendars",
    one="calendar",
    listed="the calendars, by name",
    table=Table(
        ("name", "version", "created_at", "users:used by"),
        lambda item: {**item, "users": [user["name"] for user in item["users"]]},
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
        document["ical"] = read_content(ical, _MOST_BYTES, "calendar").decode(errors="replace")
    content = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    found = client.request(
        "PUT", f"/calendars/{part(name)}", body=content, headers={"Content-Type": "application/json"}
    )
    client.say(found, f"{found['name']}: version {found['version']}")


add_delete(calendars, _CALENDARS, "Delete a calendar that no operator uses.")

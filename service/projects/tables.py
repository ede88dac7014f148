"""Reference tables of a project, whose rows are files beside the documents, and calendars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, ResourceKind, StoredResource, Wanted, tag_of
from service.registering.public_holidays import public_holidays
from streams.tables import (
    CalendarRefused,
    TableDeclaration,
    TableRefused,
    TableVersion,
    format_of,
    keep_calendar,
    keep_table,
    media_type_of,
    read_calendar,
)


class ReferenceTables(ResourceKind):
    """The tables of a project. Tables are compared by digests of their rows, which do not depend on the file format.

    A stored table with ``changed_rows`` differs from every file.
    """

    title = "table"
    path = "/tables"

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read a table. Its rows are stored in the cache folder."""
        file, key = document.path("file", folder), document.body["key"]
        specification = TableDeclaration(
            key=tuple([key] if isinstance(key, str) else key), types=document.body.get("columns", {})
        )
        try:
            version = keep_table(file, format_of(file.name), specification)
        except TableRefused as error:
            member = str(error.details.get("field") or "file")
            raise document.refuse(f"{document.body['file']}: {error.message}", member) from error
        form = {**version.form.to_json(), "digest": version.digest}
        extra = {"file": file, "version": version}
        return Wanted(kind=self, name=document.name, form=form, document=document, extra=extra)

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        form = {"key": answer["key"], "columns": answer["columns"], "digest": answer["rows_digest"]}
        return {**form, "changed_rows": answer["changed_rows"]} if answer["changed_rows"] else form

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        file: Path = wanted.extra["file"]
        columns = [f"{name}:{kind}" for name, kind in wanted.form["columns"].items()]
        client.request(
            "PUT",
            f"/tables/{part(wanted.name)}",
            query={"key": wanted.form["key"], "column": columns},
            body=file.read_bytes(),
            headers={"Content-Type": media_type_of(format_of(file.name)), **condition(tag_of(stored))},
        )

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """Export a table, and write its rows to a file."""
        content = client.content(f"{stored.at}/rows")
        form = {member: stored.form[member] for member in ("key", "columns")}
        return {**form, "file": keep(f"{name}.parquet", content)}


class Calendars(ResourceKind):
    """The calendars of a project. The content of ``ical_file`` becomes the member ``ical``."""

    title = "calendar"
    path = "/calendars"

    def read(self, document: Document, folder: Path) -> Wanted:
        """Read a calendar. Its hours are stored in the cache folder."""
        form = dict(document.body)
        if "ical_file" in form:
            form["ical"] = document.beside("ical_file", folder).decode(errors="replace")
            del form["ical_file"]
        try:
            version = keep_calendar(document.name, read_calendar(form, public_holidays))
        except CalendarRefused as error:
            member = str(error.details.get("field"))
            raise document.refuse(error.message, member if member in document.body else "") from error
        return Wanted(kind=self, name=document.name, form=form, document=document, extra={"version": version})

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        form: Form = answer["calendar"]
        return form

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        """Export a calendar, and write an iCalendar text to a file."""
        form = dict(stored.form)
        if "ical" in form:
            form["ical_file"] = keep(f"{name}.ics", form.pop("ical").encode())
        return form


def table_of(wanted: Wanted) -> TableVersion:
    """Return the content of a wanted table, as version 1 of a table with the resource's name.

    A run without a service uses this content.
    """
    version: Any = wanted.extra["version"]
    return TableVersion.from_json({**version.to_json(), "name": wanted.name, "version": 1})

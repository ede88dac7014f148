"""The calendars of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Files, Form, Found, ResourceKind, Wanted, tag_of
from service.registering.public_holidays import public_holidays
from streams.tables import CalendarRefused, keep_calendar, read_calendar


class Calendars(ResourceKind):
    """Calendars; the text of ``ical_file`` is the member ``ical``."""

    title = "calendar"
    path = "/calendars"

    def read(self, document: Document, folder: Path) -> Wanted:
        """The calendar of a document; its hours are kept in the cache folder."""
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

    def put(self, client: Client, wanted: Wanted, found: Found | None) -> None:
        client.request("PUT", f"/calendars/{part(wanted.name)}", body=wanted.form, headers=condition(tag_of(found)))

    def export(self, client: Client, name: str, found: Found, keep: Files) -> Form:
        """The document of a calendar; an iCalendar text becomes a file."""
        form = dict(found.form)
        if "ical" in form:
            form["ical_file"] = keep(f"{name}.ics", form.pop("ical").encode())
        return form

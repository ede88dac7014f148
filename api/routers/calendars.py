"""Calendars: declare, list, look up, delete."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Response, status

from api.errors import WrongShape
from api.requests.bodies import RawBody, require_json
from api.requests.filters import WantedPart
from api.requests.form import parse_document
from api.requests.preconditions import Preconditions
from api.schemas.calendars import CALENDAR_EXAMPLE, CalendarDetail, CalendarList, CalendarModel
from api.services import Served
from api.work import bounded
from service import CalendarReport

router = APIRouter(prefix="/calendars", tags=["calendars"])

_BODY: dict[str, Any] = {
    "required": True,
    "content": {"application/json": {"schema": {"type": "object"}, "example": CALENDAR_EXAMPLE}},
}


@router.put(
    "/{name}",
    status_code=status.HTTP_201_CREATED,
    summary="Declare a calendar",
    dependencies=[Depends(require_json)],
    openapi_extra={"requestBody": _BODY},
    responses={200: {"model": CalendarDetail, "description": "The calendar has these hours already."}},
)
@bounded
def put_calendar(
    name: str, body: RawBody, services: Served, preconditions: Preconditions, response: Response
) -> CalendarDetail:
    """Declare business hours by weekday, holidays of a country or of an iCalendar text, and exceptions.

    A changed declaration under the same name is the next version, which applies to later events. A deadline that
    started with an earlier event does not change.
    """
    document = parse_document(body)
    if not isinstance(document, dict):
        raise WrongShape("body: a calendar is a JSON object with the members zone and hours")
    report = services.calendars.put(name, document, preconditions)
    if not report.table.is_new:
        response.status_code = status.HTTP_200_OK
    return _detail(report, response)


@router.get("", summary="List the calendars")
def list_calendars(services: Served, part: WantedPart) -> CalendarList:
    """List all calendars by name, with the operators that use them."""
    return CalendarList(
        **part.of([CalendarModel.from_table(report) for report in services.calendars.calendars()], "name")
    )


@router.get("/{name}", summary="Look up a calendar")
def get_calendar(name: str, services: Served, response: Response) -> CalendarDetail:
    """Look up the declaration of a calendar, its versions, and the operators that use it."""
    return _detail(services.calendars.calendar(name), response)


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a calendar")
def delete_calendar(name: str, services: Served, preconditions: Preconditions) -> None:
    """Delete a calendar that no operator uses."""
    services.calendars.delete(name, preconditions)


def _detail(report: CalendarReport, response: Response) -> CalendarDetail:
    response.headers["ETag"] = f'"{report.table.record.tag}"'
    return CalendarDetail.from_domain(report)

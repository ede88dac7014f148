"""Calendars over HTTP: what is refused, what the log gets, and what their users keep."""

import json

import pytest

from streams import log_key

pytestmark = pytest.mark.redis

DOCUMENT = {
    "zone": "Europe/Berlin",
    "hours": {"mon-fri": "09:00-17:00"},
    "holidays": {"country": "DE", "subdivision": "BE"},
}
TEXT = "PATTERN p EVENT SEQ(A a, NOT B b) WITHIN 2 business days OF de"


def put(http, document=DOCUMENT, name="de", **headers):
    return http.put(f"/v1/calendars/{name}", json=document, headers=headers)


def records(stores):
    found = [fields for _, fields in stores.client.xrange(log_key(0))]
    return [(one[b"kind"].decode(), json.loads(one[b"body"])) for one in found if one[b"stream"] == b""]


def test_a_calendar_is_declared_listed_and_shown(orders, stores):
    answer = put(orders)
    assert (answer.status_code, answer.headers["etag"]) == (201, '"calendar:de@1.0"')
    assert (answer.json()["name"], answer.json()["version"], answer.json()["calendar"]) == ("de", 1, DOCUMENT)
    shown = orders.get("/v1/calendars/de")
    assert shown.json() == answer.json()
    assert shown.headers["etag"].startswith('"calendar:de@1.0')
    assert [one["name"] for one in orders.get("/v1/calendars").json()["items"]] == ["de"]
    assert orders.get("/v1/tables").json()["items"] == []
    ((kind, record),) = records(stores)
    assert (kind, record["name"], record["version"]) == ("table-on", "calendar:de", 1)


def test_the_same_hours_change_nothing_and_others_are_the_next_version(orders):
    put(orders)
    assert (put(orders).status_code, put(orders).json()["version"]) == (200, 1)
    other = put(orders, {**DOCUMENT, "exceptions": {"2026-12-24": "closed"}})
    assert (other.status_code, other.json()["version"]) == (201, 2)
    assert [one["version"] for one in other.json()["versions"]] == [2, 1]
    assert put(orders, **{"if-match": '"calendar:de@1.0"'}).status_code == 412


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        ([], 422, "a calendar is a JSON object"),
        ({**DOCUMENT, "zone": "Berlin"}, 422, "zone: unknown time zone 'Berlin'"),
        ({**DOCUMENT, "holidays": {"country": "XX"}}, 422, "holidays: {'country': 'XX'} is unknown; countries are AD,"),
        (
            {**DOCUMENT, "holidays": {"country": "DE", "subdivision": "XX"}},
            422,
            "its subdivisions are Augsburg, BB, BE, BW",
        ),
        ({**DOCUMENT, "holidays": {"country": "__class__"}}, 422, "holidays: {'country': '__class__'} is unknown"),
        ({**DOCUMENT, "holidays": {"country": ["DE"]}}, 422, "holidays: {'country': ['DE']} is unknown"),
        (
            {**DOCUMENT, "holidays": {"country": "VA", "subdivision": "BE"}},
            422,
            "the country has no subdivisions",
        ),
        ({**DOCUMENT, "holidays": {"market": "MOON"}}, 422, "holidays: {'market': 'MOON'} is unknown; markets are"),
        ({**DOCUMENT, "holidays": {"land": "DE"}}, 422, "holidays: write the member country"),
    ],
)
def test_other_declarations_are_refused(orders, document, status, message):
    answer = put(orders, document)
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True), answer.json()


def test_a_name_that_is_none_and_an_unknown_calendar(orders):
    assert put(orders, name="d e").json()["code"] == "table-name"
    missing = orders.get("/v1/calendars/de")
    assert (missing.status_code, missing.json()["detail"]) == (
        404,
        "there is no calendar 'de'; GET /v1/calendars lists them",
    )
    assert orders.delete("/v1/calendars/de").status_code == 404


def test_a_pattern_needs_its_calendar_and_keeps_it(orders):
    refused = orders.post("/v1/patterns", json={"stream": "orders", "text": TEXT})
    assert (refused.status_code, refused.json()["detail"]) == (
        400,
        "no calendar is called 'de'; there are no calendars",
    )
    put(orders)
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": TEXT}).status_code == 201
    assert orders.get("/v1/calendars/de").json()["users"] == [{"kind": "pattern", "name": "p"}]
    kept = orders.delete("/v1/calendars/de")
    assert (kept.status_code, kept.json()["code"]) == (409, "table-in-use")
    assert "the calendar 'de' is looked up by the pattern p" in kept.json()["detail"]
    row = orders.put("/v1/tables/calendar:de/rows?key=1", json={})
    assert (row.status_code, row.json()["code"]) == (422, "table-refused")


def test_a_repeated_member_and_a_large_integer_are_refused(orders):
    repeated = '{"zone": "UTC", "hours": {"mon-fri": "09:00-17:00", "mon-fri": "closed"}}'
    large = '{"zone": "UTC", "hours": {"mon-fri": "09:00-17:00"}, "years": 36893488147419103232}'
    for body, message in ((repeated, "mon-fri"), (large, "body.years: an integer beyond 64 bits")):
        answer = orders.put("/v1/calendars/de", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, message in answer.json()["detail"]) == (422, True), answer.json()

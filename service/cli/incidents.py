"""``forestall incidents``: groups of alerts, until they are over, and what people did about them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, given, show_sentence
from service.cli.resources import After, AtMost, OfStream, Resource, Table, add_show, argument_of

incidents = typer.Typer(help="Incidents of the running service.", no_args_is_help=True)


class State(StrEnum):
    """The state of an incident."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    CLOSED = "closed"


def _shaped(incident: dict[str, Any]) -> dict[str, Any]:
    """An incident with its group as text."""
    return {**incident, "group": ", ".join(f"{name}: {value}" for name, value in incident["group"].items())}


_INCIDENTS = Resource(
    path="/incidents",
    one="incident",
    listed="incidents, the newest first",
    table=Table(("id", "pattern", "group", "state", "severity", "alerts", "opened_at", "updated_at"), _shaped),
)
_Incident = argument_of(_INCIDENTS)
_By = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the person, stored with the incident.")]


@incidents.command("list", help=f"List {_INCIDENTS.listed}.")
def list_incidents(
    stream: OfStream = None,
    pattern: Annotated[str | None, typer.Option(metavar="PATTERN", help="Only incidents of this pattern.")] = None,
    state: Annotated[State | None, typer.Option(help="Only incidents in this state.")] = None,
    after: After = None,
    limit: AtMost = 20,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """List incidents, the newest first."""
    with calling(url, api_key) as client:
        chosen = {"stream": stream, "pattern": pattern, "state": state, "after": after}
        _INCIDENTS.table.show_pages(client, _INCIDENTS.path, limit, is_json=is_json, **chosen)


add_show(incidents, _INCIDENTS, "an incident")


@incidents.command()
def acknowledge(
    incident: str = _Incident, by: _By = None, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False
) -> None:
    """Mark an incident as seen, for everyone who gets its messages."""
    _act(incident, "acknowledge", by, url, api_key, is_json=is_json)


@incidents.command()
def close(
    incident: str = _Incident, by: _By = None, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False
) -> None:
    """Close an incident; the next alert of its group opens another one."""
    _act(incident, "close", by, url, api_key, is_json=is_json)


def _act(incident: str, action: str, by: str | None, url: str | None, api_key: str | None, *, is_json: bool) -> None:
    with calling(url, api_key) as client:
        found = client.post(f"{_INCIDENTS.path_of(client, incident)}/{action}", given(by=by))
    show_sentence(found, f"requested: {action} the incident of {_shaped(found)['group'] or 'all'}", is_json=is_json)

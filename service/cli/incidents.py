"""``forestall incidents``: groups of alerts with their state: open, acknowledged or closed."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.resources import After, AtMost, OfStream, Resource, Table, add_show, argument_of

incidents = Commands(help="Incidents of the running service.")


State: TypeAlias = Literal["open", "acknowledged", "closed"]
"""The state of an incident."""


def _shaped(incident: dict[str, Any]) -> dict[str, Any]:
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
    client: Caller,
    stream: OfStream = None,
    pattern: Annotated[str | None, typer.Option(metavar="PATTERN", help="Only incidents of this pattern.")] = None,
    state: Annotated[State | None, typer.Option(help="Only incidents in this state.")] = None,
    after: After = None,
    limit: AtMost = 20,
) -> None:
    """List incidents, the newest first."""
    filters = {"stream": stream, "pattern": pattern, "state": state, "after": after}
    _INCIDENTS.table.show_pages(client, _INCIDENTS.path, limit, **filters)


add_show(incidents, _INCIDENTS, "an incident")


@incidents.command()
def acknowledge(client: Caller, incident: str = _Incident, by: _By = None) -> None:
    """Mark an incident as seen; receivers of its messages are notified."""
    _act(client, incident, "acknowledge", by)


@incidents.command()
def close(client: Caller, incident: str = _Incident, by: _By = None) -> None:
    """Close an incident; the next alert of its group opens another one."""
    _act(client, incident, "close", by)


def _act(client: Caller, incident: str, action: str, by: str | None) -> None:
    changed_incident = client.post(f"{_INCIDENTS.path_of(client, incident)}/{action}", without_none(by=by))
    sentence = f"requested: {action} the incident of {_shaped(changed_incident)['group'] or 'all'}"
    client.say(changed_incident, sentence)

"""``forestall derived-events``: the events that patterns with INTO made of their matches."""

from __future__ import annotations

from service.cli.calling import Commands
from service.cli.resources import Resource, Table, add_list_of_latest

derived_events = Commands(help="Matches that became events of derived streams in the running service.")

_DERIVED_EVENTS = Resource(
    path="/derived-events",
    one="derived event",
    listed="recent derived events, the newest first",
    table=Table(("time", "into:stream", "type", "key", "pattern")),
)

add_list_of_latest(derived_events, _DERIVED_EVENTS)

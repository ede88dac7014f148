"""``forestall deviations``: transactions that left the constraints of their stream."""

from __future__ import annotations

from service.cli.calling import Commands
from service.cli.resources import Resource, Table, add_list_of_latest

deviations = Commands(help="Deviations reported by the running service: transactions that break their constraints.")

_DEVIATIONS = Resource(
    path="/deviations",
    one="deviation",
    listed="recent deviations, the newest first",
    table=Table(("time", "stream", "key", "event_type:event", "kind", "reason")),
)

add_list_of_latest(deviations, _DEVIATIONS)

"""``forestall deviations``: transactions that left the constraints of their stream."""

from __future__ import annotations

import typer

from service.cli.resources import Resource, Table, add_list_of_latest

deviations = typer.Typer(
    help="Deviations reported by the running service: transactions that break their constraints.",
    no_args_is_help=True,
)

_DEVIATIONS = Resource(
    path="/deviations",
    one="deviation",
    listed="recent deviations, the newest first",
    table=Table(("time", "stream", "key", "event_type:event", "kind", "reason")),
)

add_list_of_latest(deviations, _DEVIATIONS)


@deviations.callback()
def _one_command() -> None:
    """Deviations reported by the running service: transactions that break their constraints."""

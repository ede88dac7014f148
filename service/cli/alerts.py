"""``forestall alerts``: past alerts of the running service, and new alerts as they are found."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from service.cli.calling import Caller, Commands, PatientCaller
from service.cli.resources import After, AfterOrNow, AtMost, EndAfter, Resource, Table, add_list_of_latest, note_more

alerts = Commands(help="Alerts of the running service.")

_Stream = Annotated[str | None, typer.Option(metavar="STREAM", help="Only alerts of this stream.")]
_Pattern = Annotated[str | None, typer.Option(metavar="PATTERN", help="Only alerts of this pattern.")]
_AlertId = Annotated[str, typer.Argument(help="Id of the alert, as the lists show it with --json.")]
_By = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the person, stored with the alert.")]


@alerts.command("list")
def list_alerts(
    client: Caller,
    stream: _Stream = None,
    pattern: _Pattern = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Only alerts of this transaction.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only alerts detected at this event time (RFC 3339) or later.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only alerts detected before this event time.")
    ] = None,
    created_since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only alerts found at this clock time (RFC 3339) or later.")
    ] = None,
    acknowledged: Annotated[
        bool | None,
        typer.Option("--acknowledged/--unacknowledged", help="Only acknowledged alerts, or only unacknowledged ones."),
    ] = None,
    after: After = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="List the oldest first (default: the newest).")
    ] = False,
    limit: AtMost = 100,
) -> None:
    """List alerts, the last found first; the printed times are event times."""
    for alert in client.alerts.list(
        stream=stream,
        pattern=pattern,
        key=key,
        since=since,
        until=until,
        created_since=created_since,
        acknowledged=acknowledged,
        after=after,
        order="asc" if oldest_first and after is None else None,
        most=limit,
        on_more=note_more,
    ):
        _show(client, alert)


_SUPPRESSED = Resource(
    path="/suppressed-alerts",
    one="suppressed alert",
    listed="recent suppressed alerts, the newest first",
    table=Table(("detected_at", "stream", "pattern", "key", "suppressed_by")),
)

add_list_of_latest(alerts, _SUPPRESSED, "suppressed")


@alerts.command("tail")
def tail_alerts(
    client: PatientCaller,
    stream: _Stream = None,
    pattern: _Pattern = None,
    after: AfterOrNow = None,
    limit: EndAfter = None,
) -> None:
    """Show alerts as they are found, until interrupted; after an outage of the service, resume where it stopped."""
    for event in islice(client.alerts.live(stream=stream, pattern=pattern, after=after), limit):
        _show(client, event.data)


@alerts.command("show")
def show_alert(client: Caller, alert: _AlertId) -> None:
    """Show an alert with its notes."""
    client.show(client.alerts.get(alert))


@alerts.command()
def acknowledge(client: Caller, alert: _AlertId, by: _By = None) -> None:
    """Mark an alert as seen; prints who acknowledged it first, and when."""
    client.show(client.alerts.acknowledge(alert, {"by": by}))


@alerts.command()
def note(
    client: Caller, alert: _AlertId, text: Annotated[str, typer.Argument(help="Text of the note.")], by: _By = None
) -> None:
    """Add a note to an alert."""
    client.show(client.alerts.add_note(alert, {"text": text, "by": by}))


def _show(client: Caller, alert: Mapping[str, Any]) -> None:
    line = f"{alert['detected_at']}  {alert['stream']}  {alert['pattern']}  {alert['key']}  {alert['why']}"
    client.say(alert, line)

"""``forestall traces``: the open transactions of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands
from service.cli.resources import Table

traces = Commands(help="Transactions of the running service.")


_PATIENCE_S = 30.0  # an answer waits for the pipeline

State: TypeAlias = Literal["open", "matching", "deviating"]
"""Which open transactions to list."""


@traces.command("list")
def list_traces(
    client: Annotated[Caller, _PATIENCE_S],
    named: Annotated[str | None, typer.Argument(metavar="[STREAM]", hidden=True)] = None,
    stream: Annotated[str | None, typer.Option(metavar="STREAM", help="The stream.")] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only transactions in which this pattern has a partial match.")
    ] = None,
    state: Annotated[
        State, typer.Option(help="All transactions, those with a partial match, or those that broke a constraint.")
    ] = ("open"),
    older_than: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Only transactions open for longer than this: seconds, 2d, 90min."),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Only the transaction of this key.")] = None,
    last_type: Annotated[
        str | None, typer.Option("--last", metavar="TYPE", help="Only transactions whose newest event has this type.")
    ] = None,
    waits_for: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Only transactions in which the furthest partial match of a pattern waits for this type.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of transactions.")] = 20,
) -> None:
    """List open transactions, the oldest first, and how far each pattern is in them."""
    if (stream is None) == (named is None):
        raise typer.BadParameter("name one stream.", param_hint="--stream")
    found = client.traces.page(
        stream=stream or named or "",
        pattern=pattern,
        state=state,
        older_than=older_than,
        key=key,
        last_type=last_type,
        waits_for=waits_for,
        limit=limit,
    )
    _TABLE.show(client, found["items"])
    if not client.is_json and (left := found["matching_count"] - len(found["items"])):
        typer.echo(f"{left} more match; --limit shows more of them")


def _row(trace: dict[str, Any]) -> dict[str, Any]:
    """An open transaction as a row of the table."""
    alive = [pattern for pattern in trace["patterns"] if pattern["furthest"] is not None]
    following = trace["may_follow"]
    return {
        **trace,
        "patterns": "; ".join(_progress(pattern) for pattern in alive),
        "following": ", ".join(following["possible_types"]) if following else "",
    }


_TABLE = Table(
    (
        "key",
        "since",
        "newest:newest event",
        "last_type:type",
        "events",
        "constraints_state:constraints",
        "patterns:partial matches",
        "following:may come next",
    ),
    _row,
)


def _progress(pattern: Mapping[str, Any]) -> str:
    furthest = pattern["furthest"]
    bound = " ".join(step["alias"] for step in furthest["bound"])
    return f"{pattern['name']} has {bound}, waits for {' or '.join(furthest['waits_for'])}"


@traces.command("show")
def show_trace(
    client: Caller,
    stream: Annotated[str, typer.Argument(help="The stream.")],
    key: Annotated[str, typer.Argument(help="Correlation key of the transaction, or with --by its further key.")],
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Further key whose value is given (default: the correlation key)."),
    ] = None,
) -> None:
    """Show a transaction: its events, the state of each pattern, and which types may come next."""
    found = client.traces.get(stream, key, by=by)
    client.show(found if client.is_json else _for_people(found))


def _for_people(found: Mapping[str, Any]) -> dict[str, Any]:
    """A transaction, in the form for people."""
    shown: dict[str, Any] = {
        "transaction": f"{_named(found)} of {found['stream']}, {'open' if found['is_open'] else 'over'}",
        "events": [f"{event['time']}  {event['type']}  {event['id']}" for event in found["newest_events"]],
        "patterns": [_pattern(pattern, found["stream"]) for pattern in found["patterns"]],
    }
    if found["deviation"] is not None:
        shown["deviation"] = found["deviation"]["reason"]
    if found["following"]:
        shown["may come now"] = [_next(one) for one in found["following"] if one["is_possible"]]
        shown["must not come now"] = [one["event_type"] for one in found["following"] if not one["is_possible"]]
    if not found["is_complete"]:
        shown["notice"] = "the log no longer holds the whole beginning of the transaction"
    return shown


def _named(found: Mapping[str, Any]) -> str:
    """The key of a transaction; a further key with its name before it."""
    return f"{found['route']} {found['key']}" if found.get("route") else str(found["key"])


def _pattern(found: Mapping[str, Any], stream: str) -> str:
    if found["state"] == "other_key":
        where = " or ".join(
            f"forestall traces show {stream} {key} --by {found['route']}" for key in found["route_keys"]
        )
        return f"{found['name']} is matched by {found['route']}" + (
            f": {where}" if where else ", which no event here has"
        )
    matched = {0: "", 1: ", matched once"}.get(found["matched"], f", matched {found['matched']} times")
    ended = "" if found["ending"] is None else f": {found['ending']['reason']}"
    broken = "" if found.get("broken") is None else f": {found['broken']['reason']}"
    return f"{found['name']} is {found['state']}{matched}{ended}{broken}"


def _next(found: Mapping[str, Any]) -> str:
    ended = f", which would end {', '.join(found['ends'])}" if found["ends"] else ""
    return f"{found['event_type']}{ended}"

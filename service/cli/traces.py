"""``forestall traces``: the open transactions of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands
from service.cli.output import counted
from service.cli.resources import Table

traces = Commands(help="Transactions of the running service.")


_PATIENCE_S = 30.0  # because an answer waits for the pipeline

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
            help="Only transactions in which a pattern's most advanced partial match waits for this event type.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of transactions.")] = 20,
) -> None:
    """List open transactions, the oldest first, and how far each pattern is in them."""
    if (stream is None) == (named is None):
        raise typer.BadParameter("name one stream.", param_hint="--stream")
    page = client.traces.page(
        stream=stream or named or "",
        pattern=pattern,
        state=state,
        older_than=older_than,
        key=key,
        last_type=last_type,
        waits_for=waits_for,
        limit=limit,
    )
    _TABLE.show(client, page["items"])
    if not client.is_json and (unlisted := page["matching_count"] - len(page["items"])):
        typer.echo(f"{unlisted} more match; --limit shows more of them")


def _row(trace: dict[str, Any]) -> dict[str, Any]:
    alive = [_progress(pattern) for pattern in trace["patterns"] if pattern["furthest"] is not None]
    if trace.get("more_patterns") and len(alive) == len(trace["patterns"]):
        alive.append(f"{trace['more_patterns']} more patterns are not listed")
    following = trace["may_follow"] or {"possible_types": []}
    types = list(following["possible_types"])
    if following.get("more_types"):
        types.append(f"{following['more_types']} more types were not examined")
    return {**trace, "patterns": "; ".join(alive), "following": ", ".join(types)}


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
    if furthest.get("bound_events", 0) > len(furthest["bound"]):
        bound = f"{furthest['bound_events']} events, the newest {len(furthest['bound'])} of them {bound}"
    steps = [*furthest["waits_for"]]
    if furthest.get("more_waits_for"):
        steps.append(counted(furthest["more_waits_for"], "more step"))
    return f"{pattern['name']} has {bound}, waits for {' or '.join(steps)}"


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
    trace = client.traces.get(stream, key, by=by)
    client.show(trace if client.is_json else _for_people(trace))


def _for_people(trace: Mapping[str, Any]) -> dict[str, Any]:
    sections: dict[str, Any] = {
        "transaction": f"{_key_text(trace)} of {trace['stream']}, {'open' if trace['is_open'] else 'over'}",
        "events": [f"{event['time']}  {event['type']}  {event['id']}" for event in trace["newest_events"]],
        "patterns": [
            _pattern(pattern, trace["stream"]) + _extent(pattern, trace.get("total_events", 0))
            for pattern in trace["patterns"]
        ],
    }
    if trace["deviation"] is not None:
        sections["deviation"] = trace["deviation"]["reason"]
    if trace["following"]:
        possible = [_next(follower) for follower in trace["following"] if follower["is_possible"]]
        has_rules = trace["constraints_version"] is not None
        sections["may come now"] = possible if has_rules else [*possible, "any other type, as no constraints apply"]
        sections["must not come now"] = [
            follower["event_type"] for follower in trace["following"] if not follower["is_possible"]
        ]
    notices = [] if trace["is_complete"] else ["the log no longer holds the whole beginning of the transaction"]
    count, total = len(trace["newest_events"]), trace.get("total_events", 0)
    if total > count:
        notices.append(f"the newest {count:,} of {total:,} events are listed")
    if trace.get("more_types"):
        notices.append(f"{trace['more_types']} more types were not examined for what may come now")
    return {**sections, "notice": "; ".join(notices)} if notices else sections


def _key_text(trace: Mapping[str, Any]) -> str:
    return f"{trace['route']} {trace['key']}" if trace.get("route") else str(trace["key"])


def _pattern(pattern: Mapping[str, Any], stream: str) -> str:
    if pattern["state"] == "other_key":
        where = " or ".join(
            f"forestall traces show {stream} {key} --by {pattern['route']}" for key in pattern["route_keys"]
        )
        more = f" and {pattern['more_route_keys']} more values" if pattern.get("more_route_keys") else ""
        return f"{pattern['name']} is matched by {pattern['route']}" + (
            f": {where}{more}" if where else ", which no event here has"
        )
    if pattern["state"] == "registered_later":
        return f"{pattern['name']} version {pattern['version']} was registered after this transaction's last event"
    if pattern["state"] == "was_paused":
        return f"{pattern['name']} was paused during the whole transaction"
    is_alive = pattern["state"] == "alive"
    matched = {0: "", 1: ", matched once"}.get(pattern["matched"], f", matched {pattern['matched']} times")
    ended = "" if pattern["ending"] is None else f"; {_ENDED[is_alive]}: {pattern['ending']['reason']}"
    broken = "" if pattern.get("broken") is None else f": {pattern['broken']['reason']}"
    if not pattern.get("is_broken_examined", True):
        broken = "; how its last partial match ended was not examined, as it sees more than 300 events"
    state = "has a partial match" if is_alive else f"is {pattern['state']}"
    return f"{pattern['name']} {state}{matched}{ended}{broken}"


def _extent(pattern: Mapping[str, Any], total: int) -> str:
    """Say how much of the transaction a pattern saw, and what its earlier versions matched."""
    seen, earlier = pattern.get("seen_events"), pattern.get("earlier_matched")
    part = f"; it saw {seen} of the {total} events" if seen and seen < total else ""
    if earlier is None:
        return part
    return part + "; earlier versions matched " + {0: "nothing", 1: "once"}.get(earlier, f"{earlier} times")


_ENDED = {True: "an earlier partial match was terminated early", False: "no further match is possible"}
"""The effect of the newest early termination of a pattern, by whether the pattern has a partial match."""


def _next(follower: Mapping[str, Any]) -> str:
    ended = f", which would end {', '.join(follower['ends'])}" if follower["ends"] else ""
    return f"{follower['event_type']}{ended}"

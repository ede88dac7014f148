"""``forestall streams``: the streams of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.choices import AUTO_FORM, NONE, read_lateness, seconds_of
from service.cli.inputs import chosen_key, further_keys
from service.cli.output import printable, standard_error
from service.cli.resources import Resource, Table, add_list, add_show
from service.client import part
from service.errors import StreamInUse
from streams import AUTO, Late, Ties, key_text

streams = Commands(help="Streams of the running service.")

OwnKey = Annotated[
    list[str] | None,
    typer.Option(
        "--key-path",
        "--key",
        metavar="[TYPE=]PATH",
        help="Path of the correlation key (default: subject). TYPE=PATH: only for events of TYPE, "
        "*=PATH: for all other types. Repeatable.",
    ),
]
MoreKeys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[:TYPE]=PATH", help="Further correlation key, for all event types or for TYPE. Repeatable."
    ),
]
Name = Annotated[str, typer.Argument(help="Name of the stream.")]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="Description, shown in lists.")]

Ahead = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION|none|default",
        help="How far the time of an event may be ahead of the service's clock (default: six hours).",
    ),
]

_DURATION = "DURATION|none"
Lateness = Annotated[
    str | None,
    typer.Option(
        metavar=f"{_DURATION}|{AUTO_FORM}",
        help="Out-of-orderness bound (5 min, or seconds): events within it are sorted by time; auto: it is measured.",
    ),
]
LateEvents = Annotated[
    Late | None,
    typer.Option(help="What to do with events beyond the lateness bound; process: match them out of order."),
]
Idle = Annotated[
    str | None,
    typer.Option(metavar=_DURATION, help="Session gap: end a transaction after this time without an event."),
]
Quiet = Annotated[
    str | None,
    typer.Option(
        metavar=_DURATION, help="Source idleness: after this time without events, event time follows the clock."
    ),
]


def _shaped(document: dict[str, Any]) -> dict[str, Any]:
    further = {name: key_text(key) for name, key in document["keys"].items()}
    declared = document["lateness"]
    lateness = declared and (AUTO if declared["mode"] == AUTO else declared["seconds"])
    return {**document, "key": key_text(document["key"]), "keys": further, "lateness": lateness}


def _detailed(document: dict[str, Any]) -> dict[str, Any]:
    measured = document["measured_lateness"]
    members = {name: value for name, value in (document["lateness"] or {}).items() if value is not None}
    detail = {**_shaped(document), "lateness": members or None}
    return detail if measured else {name: value for name, value in detail.items() if name != "measured_lateness"}


_STREAMS = Resource(
    path="/streams",
    one="stream",
    listed="the streams, by name",
    table=Table(("name", "key", "end_events:ended by", "lateness"), shaped=_shaped),
    detailed=_detailed,
)

_USES = Table(("kind", "name", "state"))

add_list(streams, _STREAMS)
add_show(streams, _STREAMS, "the declaration of a stream")


@streams.command("add")
def add_stream(
    client: Caller,
    name: Name,
    key: OwnKey = None,
    further_key: MoreKeys = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Allowed event type (default: any). Repeatable.")
    ] = None,
    end: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Event type that ends a transaction. Repeatable.")
    ] = None,
    ties: Annotated[
        Ties | None, typer.Option(help="Order of events with equal timestamps: as in the log, or none (simultaneous).")
    ] = None,
    lateness: Lateness = None,
    late: LateEvents = None,
    idle_timeout: Idle = None,
    quiet_after: Quiet = None,
    max_ahead: Ahead = None,
    derived: Annotated[
        bool | None, typer.Option("--derived", help="Patterns with INTO make the events; clients send none.")
    ] = None,
    description: Description = None,
) -> None:
    """Declare a stream; how its events are read cannot be changed later."""
    body: dict[str, Any] = without_none(
        name=name,
        key=chosen_key(key),
        keys=further_keys(further_key),
        event_types=type_,
        end_events=end,
        ties=ties,
        lateness=None if lateness is None else read_lateness(lateness),
        late=late,
        idle_timeout=None if idle_timeout is None else seconds_of("idle_timeout", idle_timeout),
        quiet_after=None if quiet_after is None else seconds_of("quiet_after", quiet_after),
        max_ahead=None if max_ahead is None else _ahead(max_ahead),
        derived=derived,
        description=description,
    )
    declaration = client.post("/streams", body)
    client.say(declaration, f"the stream {name} is declared, with the key {key_text(declaration['key'])}")
    _warn(client, declaration)


@streams.command("change")
def change_stream(
    client: Caller,
    name: Name,
    lateness: Lateness = None,
    late: LateEvents = None,
    idle_timeout: Idle = None,
    quiet_after: Quiet = None,
    max_ahead: Ahead = None,
    end: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE|none", help="Event type that ends a transaction. Repeatable. Replaces the present ones."
        ),
    ] = None,
    description: Description = None,
) -> None:
    """Change event time, end events or description of a stream, for later events."""
    durations = without_none(idle_timeout=idle_timeout, quiet_after=quiet_after)
    body = {
        **({} if lateness is None else {"lateness": read_lateness(lateness)}),
        **({} if max_ahead is None else {"max_ahead": _ahead(max_ahead)}),
        **{member: seconds_of(member, text) for member, text in durations.items()},
        **without_none(late=late, end_events=[] if end == [NONE] else end, description=description),
    }
    if not body:
        raise typer.BadParameter("say what to change, such as --lateness '5 min' or --end Done")
    declaration = client.patch(f"/streams/{part(name)}", body)
    client.say(declaration, f"the stream {name} is changed")
    _warn(client, declaration)


def _warn(client: Caller, declaration: Mapping[str, Any]) -> None:
    for warning in () if client.is_json else declaration["warnings"]:
        standard_error.warning(printable(warning))


@streams.command("punctuate")
def punctuate_stream(
    client: Caller,
    name: Name,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="No event with an earlier time (RFC 3339) comes any more.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="No event of this transaction comes any more: it ends. Repeatable."),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option("--from", metavar="NUMBER", help="Least key of a finished range of whole numbers."),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", metavar="NUMBER", help="Greatest key of a finished range of whole numbers.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Key of the range, as operators name it (default: the correlation key)."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Event time at which the range is finished (default: that of the newest event)."
        ),
    ] = None,
) -> None:
    """Announce that no more events will come: before a time, of some keys, or of a range of keys."""
    bounds = {name: bound for name, bound in (("from", first), ("to", last)) if bound is not None}
    body = without_none(before=before, keys=key, range=bounds or None, by=by, time=time)
    if not body:
        raise typer.BadParameter("give --before, --key, --from or --to: which events will not come any more.")
    answer = client.post(f"/streams/{part(name)}/punctuations", body)
    if not client.is_json:
        for warning in answer.pop("warnings", ()):
            standard_error.warning(printable(warning))
        answer = {"stream": name, **answer}
    client.show(answer)


@streams.command("rm")
def remove_stream(
    client: Caller,
    name: Name,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade", help="Also delete what uses the stream, as it is listed; needs a key with the scope admin."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
) -> None:
    """Delete a stream. Lists what uses it, and asks before. Alerts and other results stay."""
    preview = client.streams.delete(name, dry_run=True)
    if not yes:
        if preview["items"]:
            _USES.show(client, preview["items"])
        if not cascade and any(use["state"] != "retired" for use in preview["items"]):
            raise StreamInUse(
                f"the stream {name!r} is in use; delete what is listed first, or all of it with --cascade, which needs "
                "a key with the scope admin",
                stream=name,
            )
        what = f"the stream {printable(name)}{' and all of this' if preview['items'] else ''}"
        _confirm(what)
    deleted = client.streams.delete(name, cascade=cascade)
    if client.is_json:
        client.show(deleted)
    standard_error.say(f"the stream {name} is deleted")


def _confirm(what: str) -> None:
    try:
        is_wanted = typer.confirm(f"Delete {what}?", err=True)
    except typer.Abort:
        typer.echo(err=True)
        raise typer.BadParameter(f"nothing can be asked here; delete {what} with --yes", param_hint="--yes") from None
    if not is_wanted:
        raise typer.Exit(1)


def _ahead(text: str) -> float | str | None:
    """Parse how many seconds events may be ahead of the clock: ``NONE`` for no limit, or None for the default."""
    if text in (NONE, "default"):
        return NONE if text == NONE else None
    return seconds_of("max_ahead", text, "5 min, seconds, none for no limit, or default for six hours")

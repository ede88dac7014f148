"""``forestall traces``: one transaction, as the running service sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, show
from service.client import part

traces = typer.Typer(help="Transactions of the running service.", no_args_is_help=True)


@traces.callback()
def _several() -> None:
    """Transactions of the running service."""


@traces.command("show")
def show_trace(
    stream: Annotated[str, typer.Argument(help="The stream.")],
    key: Annotated[str, typer.Argument(help="Correlation key of the transaction.")],
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Show a transaction: its events, the state of each pattern, and which types may come next."""
    with calling(url, api_key) as client:
        found = client.get(f"/traces/{part(stream)}/{part(key)}")
    show(found if is_json else _told(found), is_json=is_json)


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    """A transaction, as people read it."""
    told: dict[str, Any] = {
        "transaction": f"{found['key']} of {found['stream']}, {'open' if found['open'] else 'over'}",
        "events": [f"{event['time']}  {event['type']}  {event['id']}" for event in found["events"]],
        "patterns": [_pattern(pattern) for pattern in found["patterns"]],
    }
    if found["deviation"] is not None:
        told["deviation"] = found["deviation"]["reason"]
    if found["following"]:
        told["may come now"] = [_next(one) for one in found["following"] if one["possible"]]
        told["must not come now"] = [one["event_type"] for one in found["following"] if not one["possible"]]
    if not found["complete"]:
        told["notice"] = "the log no longer holds the whole beginning of the transaction"
    return told


def _pattern(found: Mapping[str, Any]) -> str:
    matched = {0: "", 1: ", matched once"}.get(found["matched"], f", matched {found['matched']} times")
    ended = "" if found["ended"] is None else f": {found['ended']['reason']}"
    return f"{found['name']} is {found['state']}{matched}{ended}"


def _next(found: Mapping[str, Any]) -> str:
    ended = f", which would end {', '.join(found['ends'])}" if found["ends"] else ""
    return f"{found['event_type']}{ended}"

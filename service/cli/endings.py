"""``forestall endings``: where patterns could no longer match in a transaction, and why."""

from __future__ import annotations

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.resources import OfStream, Resource, Table, add_list_of_latest

endings = typer.Typer(help="Early terminations reported by the running service.", no_args_is_help=True)

_ENDINGS = Resource(
    path="/endings",
    one="ending",
    listed="recent early terminations, the newest first",
    table=Table(("time", "pattern", "key", "reason")),
)
_REASONS = Table(("pattern", "count", "form:by", "atom:what went", "why"))

add_list_of_latest(endings, _ENDINGS)


@endings.command()
def summary(stream: OfStream = None, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """Count early terminations by pattern and reason."""
    with calling(url, api_key) as client:
        found = client.endings.summary(stream=stream)["items"]
    reasons = [
        {**reason, "pattern": item["pattern"], "why": reason["chain"] or f"by the {reason['form']}"}
        for item in found
        for reason in item["reasons"]
    ]
    _REASONS.show(found if is_json else reasons, is_json=is_json)

"""``forestall endings``: where patterns could no longer match in a transaction, and why."""

from __future__ import annotations

from service.cli.calling import Caller, Commands
from service.cli.resources import OfStream, Resource, Table, add_list_of_latest

endings = Commands(help="Early terminations reported by the running service.")

_ENDINGS = Resource(
    path="/endings",
    one="ending",
    listed="recent early terminations, the newest first",
    table=Table(("time", "pattern", "key", "reason")),
)
_REASONS = Table(("pattern", "count", "form:by", "atom:what went", "why"))

add_list_of_latest(endings, _ENDINGS)


@endings.command()
def summary(client: Caller, stream: OfStream = None) -> None:
    """Count early terminations by pattern and reason."""
    found = client.endings.summary(stream=stream)["items"]
    reasons = [
        {**reason, "pattern": item["pattern"], "why": reason["chain"] or f"by the {reason['form']}"}
        for item in found
        for reason in item["reasons"]
    ]
    _REASONS.show(found if client.is_json else reasons, is_json=client.is_json)

"""``forestall audit``: who changed which resource of the running service, and when."""

from __future__ import annotations

from service.cli.calling import Caller, Commands
from service.cli.resources import After, AtMost, Table

audit = Commands(help="Changes that were requested from the running service. Needs a key with the scope admin.")

_TABLE = Table(("at", "key_name:key", "client", "method", "resource", "http_status:status"))


@audit.command("list")
def list_changes(client: Caller, after: After = None, limit: AtMost = 20) -> None:
    """List recent changes, the newest first."""
    _TABLE.show_pages(client, "/audit", limit, is_json=client.is_json, after=after)

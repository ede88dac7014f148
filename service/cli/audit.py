"""``forestall audit``: who changed which resource of the running service, and when."""

from __future__ import annotations

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.resources import After, AtMost, Table

audit = typer.Typer(
    help="Changes that were requested from the running service. Needs a key with the scope admin.", no_args_is_help=True
)

_TABLE = Table(("at", "key_name:key", "client", "method", "resource", "http_status:status"))


@audit.command("list")
def list_changes(
    after: After = None,
    limit: AtMost = 20,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """List recent changes, the newest first."""
    with calling(url, api_key) as client:
        _TABLE.show_pages(client, "/audit", limit, is_json=is_json, after=after)


@audit.callback()
def _one_command() -> None:
    """Changes that were requested from the running service. Needs a key with the scope admin."""

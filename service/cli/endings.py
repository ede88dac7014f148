"""``forestall endings``: where patterns could no longer match in a transaction, and why."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, given, show_list

endings = typer.Typer(help="Early endings that the running service has seen.", no_args_is_help=True)

Stream = Annotated[str | None, typer.Option(help="Only those of this stream.")]


@endings.command("list")
def list_endings(
    stream: Stream = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """List recent early endings, the newest first."""
    with calling(url, api_key) as client:
        items = list(islice(client.pages("/endings", **given(stream=stream, limit=min(limit, 1_000))), limit))
    columns = (("time", "time"), ("pattern", "pattern"), ("key", "key"), ("reason", "reason"))
    show_list(items, columns, is_json=is_json)


@endings.command()
def summary(stream: Stream = None, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """Count early endings by pattern and reason."""
    with calling(url, api_key) as client:
        items = client.get("/endings/summary", **given(stream=stream))["items"]
    if not is_json:
        items = [
            {**reason, "pattern": item["pattern"], "why": reason["constraints"] or f"by the {reason['form']}"}
            for item in items
            for reason in item["reasons"]
        ]
    columns = (("pattern", "pattern"), ("count", "count"), ("by", "form"), ("what went", "atom"), ("why", "why"))
    show_list(items, columns, is_json=is_json)

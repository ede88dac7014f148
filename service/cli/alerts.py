"""``forestall alerts``: what the running service has found, and what it finds from now on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

import orjson
import typer

from service.client import ForestallClient
from service.settings import load_settings

alerts = typer.Typer(help="Alerts of the running service.", no_args_is_help=True)

_Stream = Annotated[str | None, typer.Option(help="Only alerts of this stream.")]
_Pattern = Annotated[str | None, typer.Option(help="Only alerts of this pattern.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]
_Url = Annotated[str | None, typer.Option(help="Where the API listens; FORESTALL_API_HOST and _PORT else.")]


@alerts.command("list")
def list_alerts(
    stream: _Stream = None,
    pattern: _Pattern = None,
    key: Annotated[str | None, typer.Option(help="Only alerts of this transaction.")] = None,
    after: Annotated[str, typer.Option(help="Cursor to begin behind.")] = "0",
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """List alerts, the oldest first."""
    chosen = _given(stream=stream, pattern=pattern, key=key)
    with _client(url) as client:
        for alert in islice(client.pages("/alerts", after=after, **chosen), limit):
            _show(alert, as_json=as_json)


@alerts.command("tail")
def tail_alerts(
    stream: _Stream = None,
    pattern: _Pattern = None,
    after: Annotated[str | None, typer.Option(help="Cursor to begin behind; 0: all. Else what comes now.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    as_json: _Json = False,
    url: _Url = None,
) -> None:
    """Show alerts as they are found, until it is interrupted; goes on where it was when the service comes back."""
    chosen = _given(stream=stream, pattern=pattern)
    with _client(url) as client:
        for alert in islice(client.follow("/alerts/live", after, **chosen), limit):
            _show(alert, as_json=as_json)


@contextmanager
def _client(url: str | None) -> Iterator[ForestallClient]:
    settings = load_settings()
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    with ForestallClient(url or f"http://{settings.api_host}:{settings.api_port}", secret) as client:
        yield client


def _given(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _show(alert: Mapping[str, Any], *, as_json: bool) -> None:
    """One line, written at once, so that a reader of a pipe has it."""
    if as_json:
        line = orjson.dumps(alert).decode()
    else:
        line = f"{alert['detected_at']}  {alert['stream']}  {alert['pattern']}  {alert['key']}  {alert['why']}"
        line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
    typer.echo(line)

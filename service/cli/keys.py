"""``forestall keys``: the API keys of the running service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.cli.inputs import told
from service.client import ForestallClient
from service.settings import load_settings

keys = typer.Typer(
    help="API keys of the running service. All commands need a key with the scope admin, in FORESTALL_API_KEY.",
    no_args_is_help=True,
)

_PATIENCE_S = 5.0
_MOST_GRACE_S = 604_800


class KeyScope(StrEnum):
    """What a key may do."""

    ADMIN = "admin"
    PATTERNS = "patterns"
    INGEST = "ingest"
    READ = "read"


Url = Annotated[str | None, typer.Option(help="Where the API listens; FORESTALL_API_HOST and _PORT else.")]
ApiKeyOption = Annotated[
    str | None,
    typer.Option("--api-key", help="Key to call with; FORESTALL_API_KEY else, which other users cannot see."),
]
IsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
KeyId = Annotated[str, typer.Argument(help="Id of the key, as 'forestall keys list' shows it.")]


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    scope: Annotated[list[KeyScope], typer.Option(help="What it may do; repeatable. admin holds all others.")],
    stream: Annotated[list[str] | None, typer.Option(help="The only stream that it may touch; repeatable.")] = None,
    days: Annotated[float | None, typer.Option(min=0, help="Days after which it expires; never else.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Make an API key. Standard output is its token, which nobody can look up later."""
    body: dict[str, Any] = {"name": name, "scopes": [str(one) for one in scope], "streams": stream or None}
    if days is not None:
        body["expires_at"] = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    with _calling(url, api_key) as client:
        _tell(client.post("/keys", body), is_json=is_json)


@keys.command("list")
def list_keys(url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """List the API keys, the oldest first."""
    with _calling(url, api_key) as client:
        items = client.get("/keys")["items"]
    if is_json:
        typer.echo(orjson.dumps(items).decode())
        return
    table = Table("id", "name", "scopes", "streams", "last used", "state")
    for key in items:
        streams = "all" if key["streams"] is None else ", ".join(key["streams"])
        cells = (key["id"], key["name"], ", ".join(key["scopes"]), streams, key["last_used_at"] or "never", _state(key))
        table.add_row(*(escape(cell) for cell in cells))
    Console().print(table)


@keys.command()
def rotate(
    key_id: KeyId,
    grace: Annotated[
        int, typer.Option(min=0, max=_MOST_GRACE_S, help="Seconds for which the former secret is taken as well.")
    ] = 0,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Give an API key another secret. Standard output is its token, which nobody can look up later."""
    with _calling(url, api_key) as client:
        _tell(client.post(f"/keys/{key_id}/rotate", {"grace_s": grace}), is_json=is_json)


@keys.command()
def revoke(key_id: KeyId, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Refuse an API key from now on, for good."""
    with _calling(url, api_key) as client:
        client.delete(f"/keys/{key_id}")
    told.print(f"the API key {escape(key_id)} is revoked")


@contextmanager
def _calling(url: str | None, api_key: str | None) -> Iterator[ForestallClient]:
    settings = load_settings()
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    address = url or f"http://{settings.api_host}:{settings.api_port}"
    with ForestallClient(address, api_key or secret, patience_s=_PATIENCE_S) as client:
        yield client


def _tell(key: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        typer.echo(orjson.dumps(key).decode())
        return
    told.print(f"API key {key['id']} ({escape(key['name'])}); its token is shown this once:")
    typer.echo(key["token"])


def _state(key: dict[str, Any]) -> str:
    if key["revoked"]:
        return "revoked"
    expires = key["expires_at"]
    if expires is None:
        return "usable"
    return "expired" if datetime.fromisoformat(expires) <= datetime.now(UTC) else f"until {expires}"

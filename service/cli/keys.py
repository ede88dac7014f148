"""``forestall keys``: the API keys of the running service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from service.cli.calling import Caller, Commands
from service.cli.choices import as_seconds
from service.cli.resources import Resource, Table, add_delete, add_list

keys = Commands(
    help="API keys of the running service. All commands need a key with the scope admin, in FORESTALL_API_KEY."
)


class KeyScope(StrEnum):
    """A scope of an API key, as an option."""

    ADMIN = "admin"
    PATTERNS = "patterns"
    INGEST = "ingest"
    READ = "read"


KeyId = Annotated[str, typer.Argument(help="Id of the key, as 'forestall keys list' shows it.")]


def _listed(key: dict[str, Any]) -> dict[str, Any]:
    return {**key, "streams": ["all"] if key["streams"] is None else key["streams"], "state": _state(key)}


def _state(key: dict[str, Any]) -> str:
    if key["revoked"]:
        return "revoked"
    expires = key["expires_at"]
    if expires is None:
        return "usable"
    return "expired" if datetime.fromisoformat(expires) <= datetime.now(UTC) else f"until {expires}"


_KEYS = Resource(
    path="/keys",
    one="API key",
    listed="the API keys, the oldest first",
    table=Table(("id", "name", "scopes", "streams", "last_used_at", "state"), _listed),
)

add_list(keys, _KEYS)


@keys.command()
def create(
    client: Caller,
    name: Annotated[str, typer.Argument(help="Name of the key, for people.")],
    scope: Annotated[
        list[KeyScope],
        typer.Option(metavar="SCOPE", help="Right: read, ingest, patterns, or admin (all rights). Repeatable."),
    ],
    stream: Annotated[
        list[str] | None, typer.Option(metavar="STREAM", help="Restrict the key to this stream. Repeatable.")
    ] = None,
    days: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Days after which the key expires (default: never).")
    ] = None,
) -> None:
    """Create an API key and print its token, which is shown only once."""
    body: dict[str, Any] = {"name": name, "scopes": [str(key_scope) for key_scope in scope], "streams": stream or None}
    if days is not None:
        body["expires_at"] = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    _show_token(client, client.post("/keys", body))


@keys.command()
def rotate(
    client: Caller,
    key_id: KeyId,
    grace: Annotated[
        float,
        typer.Option(parser=as_seconds, metavar="DURATION", help="How long the former secret stays valid."),
    ] = 0,
) -> None:
    """Rotate the secret of an API key and print its new token, which is shown only once."""
    _show_token(client, client.keys.rotate(key_id, {"grace_s": round(grace)}))


add_delete(keys, _KEYS, "Revoke an API key, for good.", "revoke")


def _show_token(client: Caller, key: Mapping[str, Any]) -> None:
    client.show_secret(key, "token", "API key", f"({key['name']})", "keys")

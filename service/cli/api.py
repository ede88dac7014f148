"""``forestall api``: call any operation of the API, with the address and key of the other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import orjson
import typer

from service.cli.calling import ApiKeyOption, Url, calling
from service.cli.inputs import read_json

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
"""An HTTP method."""


def api(
    method: Annotated[Method, typer.Argument(help="GET, POST, PUT, PATCH or DELETE.", case_sensitive=False)],
    path: Annotated[str, typer.Argument(help="Path with its query, such as '/v1/alerts?limit=3'.")],
    body: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON file to send; '-': standard input.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Call the API of the running service and print its answer."""
    at = path if path.startswith("/") else f"/{path}"
    with calling(url, api_key) as client:
        answer = client.request(method, at, body=None if body is None else read_json(body))
    if isinstance(answer, str):
        typer.echo(answer)
    elif answer is not None:
        typer.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())

"""``forestall joins``: joins of the running service."""

from __future__ import annotations

import orjson
import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, printable
from service.cli.operators import operator_commands
from service.client import part

joins = operator_commands("join", "joins")


@joins.command("explain", help="Print how a join runs, what it keeps and for how long, and what it has counted.")
def explain(name: str, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """Print the explanation of a join."""
    with calling(url, api_key) as client:
        found = client.get(f"/joins/{part(name)}/explanation")
    if is_json:
        typer.echo(orjson.dumps(found).decode())
        return
    for sentence in found["sentences"]:
        typer.echo(printable(sentence))
    for counted, number in (found["statistics"] or {}).items():
        typer.echo(printable(f"{counted.replace('_', ' '):16}{number:>12,}"))
    typer.echo(f"{'waiting':16}{found['waiting']:>12,}")

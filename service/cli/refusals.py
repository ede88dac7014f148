"""Errors on the command line: text for people, one line of JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson
import typer

from streams import ForestallError


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a call asks for JSON, by ``--json`` or ``--output json``: then its errors are JSON too."""
    return not {"--json", "--output=json"}.isdisjoint(arguments) or ("--output", "json") in pairwise(arguments)


def refusal_document(error: ForestallError) -> dict[str, Any]:
    """An error as plain JSON.

    ``error`` is its code, ``message`` the whole text; ``problems``, for a model, each have ``element`` and ``message``;
    ``details`` are further attributes, such as ``line`` and ``column``.
    """
    details = dict(error.details)
    problems = details.pop("problems", [])
    return {"error": error.code, "message": error.message, "problems": problems, "details": details}


def tell_refusal(error: ForestallError, *, is_json: bool) -> None:
    """Write to standard error why a call cannot be carried out, each problem once."""
    if is_json:
        typer.echo(orjson.dumps(refusal_document(error), default=str).decode(), err=True)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error[/red]: {escape(error.message)}")


def tell_usage(error: Any) -> None:
    """Write to standard error, as JSON, the fault in the options of a call."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    document: dict[str, Any] = {"error": "usage", "message": message, "problems": [], "details": {}}
    typer.echo(orjson.dumps(document).decode(), err=True)

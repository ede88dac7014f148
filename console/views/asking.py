"""Ad-hoc questions to aggregates: the user chooses groups and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from starlette.responses import Response

from console.calls import at, reason_of
from console.page import Page, all_of, allowed
from console.svg import inline
from forestall import ApiError

_SHOWN: Final = 200
_WIDEST: Final = 240


async def show(page: Page) -> Response:
    """Render the form for questions to aggregates, and the chosen aggregate's answer."""
    listed = (await page.get("/aggregates", stream=page.parameter("stream"), age_s=1.0))["items"]
    aggregates = {aggregate["name"]: aggregate for aggregate in listed if aggregate["state"] != "retired"}
    name = page.query("aggregate") or next(
        (aggregate_name for aggregate_name, definition in aggregates.items() if _ask_attributes(definition)), None
    )
    chosen = aggregates.get(name or "")
    if chosen is None:
        return page.render("ask.html", title="Ask", aggregates=list(aggregates), chosen=None)
    question, error = _question(page, chosen)
    answer = picture = None
    try:
        answer, picture = await all_of(
            page.api.ask(at("aggregates", chosen["name"], "ask"), question, age_s=page.shared_s),
            allowed(page.picture(at("aggregates", chosen["name"], "plot.svg"))),
        )
    except ApiError as refusal:
        error = reason_of(refusal)
    groups = answer["groups"] if answer else []
    return page.render(
        "ask.html",
        title="Ask",
        aggregates=list(aggregates),
        chosen=chosen,
        attributes=_ask_attributes(chosen),
        by=question["by"],
        where=page.query("where"),
        window=page.query("window"),
        sort=page.query("sort"),
        values=list(chosen["body"]["values"]),
        answer=answer,
        groups=_ranked(groups, page.query("sort") or next(iter(chosen["body"]["values"]), None))[:_SHOWN],
        total=len(groups),
        widest=_WIDEST,
        error=error,
        picture=inline(picture) if picture else None,
    )


def _ask_attributes(aggregate: Mapping[str, Any]) -> list[str]:
    return list((aggregate["body"].get("ask") or {}).get("by") or [])


def _question(page: Page, aggregate: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    attributes = _ask_attributes(aggregate)
    by = [name for name in page.request.query_params.getlist("by") if name in attributes]
    if "by" not in page.request.query_params and attributes:
        by = attributes[:1]
    where, error = read_filter(page.query("where") or "")
    question: dict[str, Any] = {"by": by, "where": where}
    if page.query("window"):
        question["window"] = page.query("window")
    return question, error


def read_filter(text: str) -> tuple[dict[str, Any], str]:
    """Read a filter such as ``region=north, level=2``. Return the values by attribute, and an error message or "".

    A value is a JSON number or boolean if it looks like one, as in the command. Any other value is a text.
    """
    where: dict[str, Any] = {}
    error = ""
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if sign:
            where[name.strip()] = _constant(value.strip())
        elif part.strip():
            error = f"“{part.strip()}” is not a filter; write attribute=value, with commas between several."
    return where, error


def _constant(text: str) -> Any:
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return parsed if isinstance(parsed, bool | int | float) else text


def _ranked(groups: Sequence[Mapping[str, Any]], value: str | None) -> list[dict[str, Any]]:
    numbers = [group.get(value or "") for group in groups]
    largest = max((abs(amount) for amount in numbers if isinstance(amount, int | float)), default=0) or 1
    ranked = [
        {"values": group, "share": abs(amount) / largest if isinstance(amount, int | float) else 0.0, "rank": amount}
        for group, amount in zip(groups, numbers, strict=True)
    ]
    return sorted(ranked, key=lambda group_row: -group_row["share"])

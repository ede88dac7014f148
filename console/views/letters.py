"""Dead letters: events that could not be processed, with the reasons, and sending them again."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from console.calls import at
from console.formats import plural
from console.page import Page

_PAGE = 50
_AT_ONCE = 100


async def show_list(page: Page) -> Response:
    """Render the newest dead letters."""
    stream, code = page.query("stream"), page.query("code")
    _, names = await page.stream(is_derived=True)
    listed = await page.get(
        "/dead-letters", stream=stream, code=code, after=page.query("after"), limit=_PAGE, order="desc"
    )
    return page.render(
        "letters.html",
        title="Dead letters",
        letters=listed["items"],
        counts=listed["counts"],
        next=listed["next"],
        names=names,
        stream=stream,
        code=code,
        codes=sorted({counter["code"] for counter in listed["counts"]}),
        at_once=_AT_ONCE,
    )


async def show(page: Page) -> Response:
    """Render one dead letter with its event."""
    letter = await page.get(at("dead-letters", page.place("id")))
    return page.render("letter.html", title="Dead letter", letter=letter, event=_pretty(letter["event"]))


async def replay(page: Page) -> Response:
    """Send dead letters again: the chosen one, or the oldest of a stream and code."""
    form = await page.form()
    letter = page.request.path_params.get("id")
    if letter is not None:
        path = at("dead-letters", letter)
        result = await page.api.send("POST", f"{path}/replay")
        page.session.notify(_outcome(result), "ok" if result["is_accepted"] else "bad")
        return page.go(path)
    filters = {"stream": form.get("stream"), "code": form.get("code")}
    stream, code = filters["stream"], filters["code"]
    result = await page.api.send("POST", "/dead-letters/replay", stream=stream, code=code, limit=_AT_ONCE)
    accepted = sum(letter_result["is_accepted"] for letter_result in result["items"])
    refused = len(result["items"]) - accepted
    text = f"{plural(accepted, 'event')} accepted, {refused} refused again, {result['left']} left."
    return page.go("/dead-letters", text, **filters)


def _outcome(result: Any) -> str:
    return "The event was accepted." if result["is_accepted"] else f"Refused again: {result['detail']}"


def _pretty(event: str | None) -> str:
    try:
        return orjson.dumps(orjson.loads(event or ""), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return event or ""

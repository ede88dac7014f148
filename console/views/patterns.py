"""Patterns: the list, single patterns with versions and figures, and their life cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import ndiff
from itertools import pairwise
from typing import Any, Final

from starlette.responses import Response

from console.calls import at, reason_of
from console.page import Page, all_of, allowed
from forestall import ApiError

_MOVES: Final[Mapping[str, tuple[str, ...]]] = {
    "draft": ("activate", "retire"),
    "active": ("pause", "retire"),
    "paused": ("resume", "retire"),
    "suspended": ("resume", "retire"),
    "retired": (),
}
_DONE: Final = {"activate": "activated", "pause": "paused", "resume": "resumed", "retire": "retired"}
_RULES: Final = ("suppress", "incident", "resolves")  # members that the editor shows, and does not change
_CHANGED: Final = (
    "{} has been changed since this editor was opened, so nothing was registered. Open the editor again from the "
    "pattern's page to see the current version; your text is kept below."
)
_MOST_DRAWN: Final = 500
_MOST_VERSIONS: Final = 20
SAMPLE: Final = 500
_EXAMPLE: Final = "PATTERN name\nEVENT SEQ(First a, Second b)\n"
_NEW: Final[Mapping[str, Any]] = {
    "stream": None,
    "text": "",
    "severity": "medium",
    "constraints": "on",
    "state": "active",
    "etag": "",
}
_LANGUAGE: Final = """\
PATTERN name                                          -- its alerts have this name
EVENT SEQ(A a, B b)                                   -- an A, later a B of the same transaction
EVENT SEQ(A a [price > 200], B|C b, D+ d)             -- a condition; a B or a C; one D or more
EVENT SEQ(A a, NOT X, B b)                            -- no X between them
WHERE a.price < b.price AND b.region = 'north'        -- conditions on several events
WITHIN 2 h                                            -- the last at most two hours after the first
"""


async def show_list(page: Page) -> Response:
    """Render the patterns of a stream, or of all."""
    _, names = await page.stream(is_derived=True)
    stream = page.query("stream")
    patterns, summary = await all_of(
        page.get("/patterns", stream=stream, after=page.query("after"), limit=200),
        allowed(page.get("/endings/summary", stream=stream, age_s=1.0), {"items": []}),
    )
    return page.render(
        "patterns.html",
        title="Patterns",
        names=names,
        stream=stream,
        patterns=patterns["items"],
        next=patterns["next"],
        ended={item["pattern"]: item for item in summary["items"]},
        moves=_MOVES,
    )


async def show(page: Page) -> Response:
    """Render one pattern: text, state, failing conditions, versions and their differences."""
    name = page.place("name")
    pattern, statistics, versions, backtests = await all_of(
        page.get(at("patterns", name)),
        page.get(at("patterns", name, "statistics")),
        page.get(at("patterns", name, "versions")),
        allowed(page.get("/backtests"), {"items": []}),
    )
    newest = versions["items"][-_MOST_VERSIONS:]
    changes = {new["version"]: _difference(old["text"], new["text"]) for old, new in pairwise(newest)}
    lines = {version["version"]: len(version["text"].splitlines()) for version in newest}
    return page.render(
        "pattern.html",
        title=name,
        pattern=pattern,
        statistics=statistics,
        versions=list(reversed(newest)),
        version_count=len(versions["items"]),
        changes=changes,
        lengths={new["version"]: max(lines[old["version"]], lines[new["version"]]) for old, new in pairwise(newest)},
        most_drawn=_MOST_DRAWN,
        rules={member: pattern[member] for member in _RULES if pattern[member]},
        moves=_MOVES.get(pattern["state"], ()),
        backtests=[
            backtest for backtest in backtests["items"] if name in [tried["name"] for tried in backtest["patterns"]]
        ],
    )


def _difference(old: str, new: str) -> list[tuple[str, str]]:
    kinds = {"+": "added", "-": "lost", " ": "same"}
    lines = ndiff(old.splitlines()[:_MOST_DRAWN], new.splitlines()[:_MOST_DRAWN])
    return [(kinds[line[0]], line[2:]) for line in lines if line[0] in kinds]


async def change_state(page: Page) -> Response:
    """Change the state of a pattern: activate, pause, resume or retire it."""
    form = await page.form()
    name, action = page.place("name"), form.get("action", "")
    path = at("patterns", name)
    if action not in _DONE:
        return page.go(path)
    return await page.change(page.api.send("POST", f"{path}/{action}"), path, f"{name} is {_DONE[action]}.")


async def edit(page: Page) -> Response:
    """Render the editor for a new pattern, or for the next version of a registered one."""
    name = page.query("pattern")
    stream, names = await page.stream(is_derived=True)
    draft = {**_NEW, "stream": stream, "text": _EXAMPLE}
    if name is not None:
        pattern, tag = await page.api.tagged(at("patterns", name))
        draft |= {**pattern, "etag": tag}
    draft["text"] = page.query("text") or draft["text"]
    return await _editor(page, name, draft, names)


async def _editor(
    page: Page, name: str | None, draft: Mapping[str, Any], names: Sequence[str], error: str = ""
) -> Response:
    title = "New pattern" if name is None else f"Next version of {name}"
    status = 400 if error else 200
    return page.render(
        "editor.html",
        status,
        title=title,
        name=name,
        draft=draft,
        names=names,
        error=error,
        rules={member: draft[member] for member in _RULES if draft.get(member)},
        is_example=draft["text"] == _EXAMPLE,
        language=_LANGUAGE,
        **await _past(page, draft["stream"]),
    )


async def show_draft(page: Page, name: str | None, form: Mapping[str, str], error: str) -> Response:
    """Render the editor again with a refused form and the reason."""
    pattern = None if name is None else await allowed(page.get(at("patterns", name)))
    rules = {member: pattern[member] for member in _RULES} if pattern else {}
    _, names = await page.stream(is_derived=True)
    return await _editor(page, name, {**_NEW, **form, **rules}, names, error)


async def _past(page: Page, stream: str | None) -> dict[str, Any]:
    if not stream:
        return {"oldest": None, "newest": None, "vocabulary": {}, "sample": 0}
    path, none = at("streams", stream, "events"), dict[str, Any](items=[])
    streams, events, first, schemas, workflows = await all_of(
        page.streams(),
        allowed(page.get(path, age_s=30.0, limit=SAMPLE), none),
        allowed(page.get(path, age_s=30.0, limit=1, after="0"), none),
        allowed(page.get(at("streams", stream, "event-types"), age_s=30.0), none),
        allowed(page.get("/workflows", age_s=30.0), none),
    )
    sources = [declared for declared in streams if declared["name"] == stream]
    sources += [
        model for model in workflows["items"] if stream in {follower["stream"] for follower in model["streams"]}
    ]
    attributes: dict[str, set[str]] = {name: set() for source in sources for name in source["event_types"]}
    for schema in schemas["items"]:
        attributes.setdefault(schema["type"], set()).update(schema["json_schema"].get("properties", ()))
    for event in events["items"]:
        attributes.setdefault(event["type"], set()).update(event["data"] or ())
    return {
        "oldest": first["items"][0] if first["items"] else None,
        "newest": events["items"][-1] if events["items"] else None,
        "sample": len(events["items"]),
        "vocabulary": {name: sorted(attributes[name]) for name in sorted(attributes)},
    }


async def save(page: Page) -> Response:
    """Register the pattern in the editor. If it is refused, show the editor again with the reason."""
    form = await page.form()
    name = page.query("pattern")
    body = {member: form.get(member, "") for member in ("stream", "text", "severity", "constraints", "state")}
    if form.get("start"):
        body["start"] = form["start"]
    try:
        if name is None:
            registered = await page.api.send("POST", "/patterns", body, headers={"If-None-Match": "*"})
        else:
            pattern, tag = await page.api.tagged(at("patterns", name))
            rules = {member: pattern[member] for member in _RULES}
            condition = {"If-Match": form.get("etag") or tag}
            registered = await page.api.send("PUT", at("patterns", name), {**body, **rules}, headers=condition)
    except ApiError as refusal:
        is_changed = name is not None and refusal.code == "precondition-failed"
        return await show_draft(page, name, form, _CHANGED.format(name) if is_changed else reason_of(refusal))
    for warning in registered["warnings"]:
        page.session.notify(f"Warning: {warning}", "warn")
    return page.go(
        at("patterns", registered["name"]), f"{registered['name']} is registered as version {registered['version']}."
    )

"""Transactions: the list of open ones, and the story of each, with the reasons why no alert was raised."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from console.calls import at
from console.formats import as_json, plural
from console.page import Page, all_of, allowed
from console.svg import inline
from console.views.process import NEWEST, usual_s
from forestall import ApiError

LARGEST: Final = 200
_NAME: Final = re.compile(r"\w+")
_FILTERS: Final = ("older_than", "state", "last_type", "waits_for", "pattern", "key")
_SHOWN: Final = 50
_USUAL_AGE_S: Final = 60.0  # usual times change slowly


async def show_list(page: Page) -> Response:
    """Render the open transactions of a stream, by default with the longest quiet ones first.

    A transaction is quiet since its newest event. With ``order=oldest``, the oldest are first.
    """
    stream, names = await page.stream()
    if stream is None:
        return page.render("transactions.html", title="Transactions", stream=None, names=names)
    filters: dict[str, Any] = {name: page.query(name) for name in _FILTERS}
    listed, patterns, past = await all_of(
        page.get("/traces", stream=stream, **filters, limit=LARGEST),
        page.get("/patterns", stream=stream, age_s=1.0),
        page.get(at("streams", stream, "events"), limit=NEWEST, age_s=_USUAL_AGE_S),
    )
    is_all, is_quiet = page.query("all") is not None, page.query("order") != "oldest"
    cases = [_with_quiet(case, listed["time"]) for case in listed["items"]]
    if is_quiet:
        cases.sort(key=lambda case: -(case["quiet_s"] or 0.0))
    return page.render(
        "transactions.html",
        title="Transactions",
        stream=stream,
        names=names,
        wanted=filters,
        listed=listed,
        cases=cases[: LARGEST if is_all else _SHOWN],
        is_quiet=is_quiet,
        places=listed["counts_by_last_type"],
        quietest=_quietest(cases),
        usual_s=usual_s(past["items"]),
        past_events=len(past["items"]),
        other_places=listed["open_count"] - sum(listed["counts_by_last_type"].values()),
        expected=sorted({kind for case in cases for kind in (case["may_follow"] or {}).get("possible_types") or ()}),
        patterns=[pattern["name"] for pattern in patterns["items"]],
        has_filters=any(filters.values()),
    )


def _with_quiet(case: Mapping[str, Any], time: str | None) -> dict[str, Any]:
    if time is None:
        return {**case, "quiet_s": None}
    return {**case, "quiet_s": max(0.0, (_time(time) - _time(case["newest"])).total_seconds())}


def _quietest(cases: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return, for each event type, the open transaction that has been quiet longest since an event of this type."""
    return {case["last_type"] or "": case for case in sorted(cases, key=lambda case: case["quiet_s"] or 0.0)}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def find(page: Page) -> Response:
    """Find a transaction in any stream, by its key or by a value of a further key, and show it."""
    key = page.query("key")
    if key is None:
        return page.go("/transactions")
    streams = [stream for stream in await page.streams() if not stream["derived"]]
    places = [(stream["name"], None) for stream in streams]
    places += [(stream["name"], by) for stream in streams for by in stream["keys"]]
    hits = await all_of(*(_has_events(page, stream, key, by) for stream, by in places))
    for (stream, by), is_hit in zip(places, hits, strict=True):
        if is_hit:
            return page.go(at("transactions", stream, key), by=by)
    names = [stream["name"] for stream in streams]
    reason = f"No event of a transaction {key} is in the log of {plural(len(names), 'stream')} ({', '.join(names)})."
    return page.render("refused.html", 404, title="Not found", reason=reason)


async def _has_events(page: Page, stream: str, key: str, by: str | None) -> bool:
    try:
        story = await allowed(page.get(at("traces", stream, key), by=by))
    except ApiError as refusal:
        if refusal.code == "trace-too-long":
            return True
        raise
    return bool(story and story["total_events"])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a pattern in a transaction: a word and the reason."""

    pattern: str
    level: str
    word: str
    reason: str
    event: str | None = None


async def show(page: Page) -> Response:
    """Render one transaction: its events, its alerts, and for each pattern why it matched or did not."""
    stream, key, by = page.place("stream"), page.place("key"), page.query("by")
    story, case, alerts, followed = await all_of(
        _story(page, stream, key, by),
        _open_case(page, stream, key),
        allowed(page.get("/alerts", stream=stream, key=key, limit=20), {"items": [], "next": None}),
        allowed(page.get(at("streams", stream, "workflow"), age_s=30.0)),
    )
    picture = None
    if followed and by is None and story["total_events"] and story["is_replayed"]:
        drawing = page.picture(at("workflows", followed["workflow"], "picture.svg"), trace=key, stream=stream)
        picture = await allowed(drawing)
    waiting = (
        {
            case_pattern["name"]: _steps(case_pattern["furthest"])
            for case_pattern in case["patterns"]
            if case_pattern["furthest"]
        }
        if case
        else {}
    )
    verdicts = [
        replace(verdict, reason=verdict.reason + _extent(pattern, story["total_events"]))
        for pattern in story["patterns"]
        for verdict in [
            _verdict(pattern, waiting.get(pattern["name"]), story["newest_events"], is_open=story["is_open"])
        ]
    ]
    return page.render(
        "transaction.html",
        title=f"{key} in {stream}",
        stream=stream,
        key=key,
        story=story,
        events=_annotated(story, verdicts),
        verdicts=sorted(verdicts, key=lambda verdict: (verdict.level != "ok", verdict.pattern)),
        alerts=alerts["items"],
        has_more_alerts=alerts["next"] is not None,
        workflow=followed["workflow"] if followed else None,
        picture=inline(picture) if picture else None,
        following=[next_type for next_type in story["following"] if next_type["is_possible"]],
    )


async def _story(page: Page, stream: str, key: str, by: str | None) -> dict[str, Any]:
    path = at("traces", stream, key)
    try:
        return {**await page.get(path, by=by), "is_replayed": True}
    except ApiError as refusal:
        if refusal.code != "trace-too-long":
            raise
    return {**await page.get(path, by=by, replay="false"), "is_replayed": False}


async def _open_case(page: Page, stream: str, key: str) -> Any:
    """Return the open transaction, or None if it is over or the shards do not answer."""
    try:
        listed = await page.get("/traces", stream=stream, key=key, limit=1)
    except ApiError:
        return None
    return next(iter(listed["items"]), None)


def _values(ended: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str:
    data = next((event["data"] for event in events if event["id"] == ended["event"]), None) or {}
    mentioned = set(_NAME.findall(ended["reason"]))
    values = ", ".join(f"{name} {as_json(value)}" for name, value in data.items() if name in mentioned)
    return f" ({ended['event']} has {values})" if values else ""


def _steps(furthest: Mapping[str, Any]) -> list[str]:
    more = furthest.get("more_waits_for")
    return [*furthest["waits_for"], *([plural(more, "further step")] if more else ())]


def _verdict(
    pattern: Mapping[str, Any],
    waits_for: Sequence[str] | None,
    events: Sequence[Mapping[str, Any]],
    *,
    is_open: bool,
) -> Verdict:
    name, state = pattern["name"], pattern["state"]
    if pattern["matched"]:
        matched, marked = pattern["matched"], len(pattern["matches"])
        text = "It matched once." if matched == 1 else f"It matched {matched:,} times."
        cut = f" The events of the newest {marked} matches are marked below." if matched > marked else ""
        return Verdict(name, "ok", "matched", text + cut)
    ended, broken, is_examined = pattern["ending"], pattern["broken"], pattern.get("is_broken_examined", True)
    if ended:
        return Verdict(name, "no", "cannot match", ended["reason"] + _values(ended, events), ended["event"])
    if state == "alive":
        rest = " or ".join(waits_for) if waits_for else "the rest"
        text = f"It has bound {plural(pattern['partial_matches'], 'event')} and waits for {rest}."
        if waits_for is None and not is_examined:
            text += " Whether WITHIN has ended it was not examined, because it sees more than 300 events."
        return Verdict(name, "open", "in progress", text)
    if broken:
        bound = ", ".join(f"{alias} = {', '.join(ids)}" for alias, ids in broken["bindings"].items())
        text = f"It bound {bound}; then: {broken['reason']}"
        return Verdict(name, "no", "given up", text, broken["event"])
    reason = (
        _REASONS.get(state, "").format(keys=_keys(pattern), version=pattern["version"]) if is_examined else _UNEXAMINED
    )
    if state == "waiting" and is_open:
        return Verdict(name, "open", "may still match", reason)
    return Verdict(name, "no", _WORDS.get(state, "no match"), reason)


_WORDS: Final = {
    "paused": "paused",
    "suspended": "suspended",
    "other_key": "another key",
    "registered_later": "registered later",
    "was_paused": "was paused",
}
_REASONS: Final = {
    "closed": "The transaction ended before the pattern had seen all events that it needs.",
    "waiting": "It has bound no event.",
    "paused": "The pattern is paused and sees no event.",
    "suspended": "The pattern is suspended because it cost too much, and sees no event.",
    "other_key": "The pattern is matched by another key of the stream{keys}.",
    "registered_later": "Version {version} was registered after this transaction's last event.",
    "was_paused": "The pattern was paused during the whole transaction.",
}


_UNEXAMINED: Final = (
    "It holds no partial match. How its last one ended was not examined, because it sees more than 300 events."
)


def _extent(pattern: Mapping[str, Any], total: int) -> str:
    """Say how much of the transaction a pattern saw, and what its earlier versions matched."""
    seen, earlier = pattern.get("seen_events"), pattern.get("earlier_matched")
    part = f" It saw {seen:,} of the {total:,} events." if seen and seen < total else ""
    if earlier is None:
        return part
    return part + " Earlier versions matched " + {0: "nothing", 1: "once"}.get(earlier, f"{earlier:,} times") + "."


def _keys(pattern: Mapping[str, Any]) -> str:
    keys = ", ".join(pattern.get("route_keys") or ())
    more = f", and {pattern['more_route_keys']:,} more" if pattern.get("more_route_keys") else ""
    return f" ({pattern['route']}: {keys}{more})" if keys else ""


def _annotated(story: Mapping[str, Any], verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    notes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pattern in story["patterns"]:
        for match in pattern["matches"]:
            for alias, ids in match.items():
                for event in ids:
                    notes[event].append(("bound", f"{alias} of {pattern['name']}"))
    for verdict in verdicts:
        if verdict.event:
            notes[verdict.event].append(("ended", f"{verdict.pattern} cannot match any more: {verdict.reason}"))
    if breach := story["deviation"]:
        notes[breach["event"]].append(("broke", f"leaves the process: {breach['reason']}"))
    return [{**event, "notes": notes[event["id"]]} for event in story["newest_events"]]

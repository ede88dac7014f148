"""The process: a picture of the model with counts at its steps, and the time between steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

from starlette.responses import Response

from console.calls import at
from console.formats import plural
from console.page import Page, all_of, allowed
from console.svg import Badge, inline

NEWEST: Final = 1_000
_MOST_STEPS: Final = 20
_AGE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    """Two event types that follow each other in transactions, and the time between them, in seconds."""

    first: str
    second: str
    count: int
    median_s: float
    longest_s: float
    longest_key: str

    @property
    def total_s(self) -> float:
        """The estimated time that all transactions spend in a step: count times median. Steps are ranked by it."""
        return self.count * self.median_s


async def show(page: Page) -> Response:
    """Render the model that a stream follows, with counts at its event types."""
    stream, names = await page.stream()
    followed = None
    if stream is not None:
        followed = await allowed(page.get(at("streams", stream, "workflow"), age_s=_AGE_S))
    if stream is None or followed is None:
        return page.render("process.html", title="Process", stream=stream, names=names, workflow=None)
    cases, deviations, endings, listed, picture = await all_of(
        allowed(page.get("/traces", stream=stream, limit=1, age_s=1.0)),
        page.get("/deviations", stream=stream, limit=20, age_s=1.0),
        page.get("/endings", stream=stream, limit=NEWEST, age_s=_AGE_S),
        page.get(at("streams", stream, "events"), limit=NEWEST, age_s=_AGE_S),
        allowed(page.picture(at("workflows", followed["workflow"], "picture.svg"))),
    )
    events = listed["items"]
    steps = _steps(events)
    places = {} if cases is None else cases["counts_by_last_type"]
    broken = Counter({counter["event_type"]: counter["count"] for counter in deviations["counts"]})
    early = [ending for ending in endings["items"] if ending["form"] != "end"]
    ended = Counter(ending["event_type"] for ending in early)
    event_counts = Counter(event["type"] for event in events)
    return page.render(
        "process.html",
        title="Process",
        stream=stream,
        names=names,
        workflow=followed["workflow"],
        version=followed["version"],
        picture=inline(picture, _badges(event_counts, places, broken, ended)) if picture else None,
        seen=event_counts,
        events=len(events),
        early=len(early),
        places=places,
        broken=broken,
        ended=ended,
        types=sorted(set(event_counts) | set(places) | set(broken) | set(ended)),
        deviations=deviations["items"],
        steps=steps[:_MOST_STEPS],
        step_count=len(steps),
    )


def _badges(
    event_counts: Mapping[str, int], places: Mapping[str, int], broken: Mapping[str, int], ended: Mapping[str, int]
) -> dict[str, Sequence[Badge]]:
    badges: dict[str, list[Badge]] = defaultdict(list)
    for counts, kind, noun in (
        (event_counts, "seen", "event"),
        (places, "open", "open transaction"),
        (broken, "deviating", "deviation"),
        (ended, "ended", "early termination"),
    ):
        for name, count in counts.items():
            if count:
                badges[name].append(Badge(count, kind, f"{name}: {plural(count, noun)}"))
    return dict(badges)


def _steps(events: Iterable[Mapping[str, Any]]) -> list[Step]:
    steps = [
        Step(first, second, len(times), median(time for time, _ in times), *max(times))
        for (first, second), times in _gaps(events).items()
    ]
    return sorted(steps, key=lambda step: -step.total_s)


def usual_s(events: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the median time, in seconds, from each event type to the next event of the transaction."""
    times: dict[str, list[float]] = defaultdict(list)
    for (first, _), gaps in _gaps(events).items():
        times[first] += [gap for gap, _ in gaps]
    return {kind: median(gaps) for kind, gaps in times.items()}


def _gaps(events: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """Return the times between consecutive events of each transaction, grouped by the pair of their event types.

    Each item has the time in seconds and the key of the transaction.
    """
    latest: dict[str, tuple[str, float]] = {}
    gaps: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    timed = sorted(
        (datetime.fromisoformat(event["time"]).timestamp(), event["key"] or "", event["type"]) for event in events
    )
    for time, key, kind in timed:
        if key in latest:
            before, since = latest[key]
            gaps[before, kind].append((time - since, key))
        latest[key] = (kind, time)
    return gaps

"""The overview: the health of the service, its input, and the results of its patterns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response

from console.charts import hourly
from console.formats import plural, span
from console.page import Page, all_of, allowed
from console.views.webhooks import receivers_of

_MOST_INCIDENTS: Final = 100
_MOST_OF: Final = 0.9  # share of alerts whose latency is at most the shown one
_SHOWN: Final = 8
_QUIET_S: Final = 5.0  # greatest age, in seconds, of figures that change slowly
_METRICS_AGE_S: Final = 10.0
_MOST_WEBHOOKS: Final = 20
_BEHIND_S: Final = 10.0
_DRAWN: Final = timedelta(hours=47)  # from the first to the newest of the hours that charts show
_CUT_HOURS: Final = "The chart of {noun} begins at {since}: earlier hours have too many counts for one answer."
_CUT: Final = "Only the first {most} webhooks and the first {most} other receivers are checked here."


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about the state of the service, its severity, and a link to details."""

    level: str
    text: str
    link: str = ""


async def show(page: Page) -> Response:
    """Render the overview of one stream, or of all streams that the key may access."""
    stream = page.query("stream")
    names = [declared_stream["name"] for declared_stream in await page.streams()]
    (
        alerts,
        endings,
        patterns,
        summary,
        pipeline,
        (receivers, is_cut),
        incidents,
        letters,
        figures,
        newest,
    ) = await all_of(
        allowed(page.get("/results/hours", kind="alert", stream=stream, age_s=_QUIET_S), {"items": []}),
        allowed(page.get("/results/hours", kind="ending", stream=stream, age_s=_QUIET_S), {"items": []}),
        page.get("/patterns", stream=stream, age_s=_QUIET_S),
        allowed(page.get("/endings/summary", stream=stream, age_s=_QUIET_S), {"items": []}),
        allowed(page.get("/pipeline")),
        receivers_of(page, stream, _MOST_WEBHOOKS, _QUIET_S),
        allowed(page.get("/incidents", stream=stream, state="open", limit=_MOST_INCIDENTS, age_s=_QUIET_S)),
        allowed(page.get("/dead-letters", stream=stream, limit=1, age_s=_QUIET_S), {"counts": []}),
        allowed(page.api.shared("figures", _METRICS_AGE_S, lambda: _figures(page)), Figures(None, None)),
        allowed(page.get("/alerts", stream=stream, limit=_SHOWN), {"items": []}),
    )
    alert_counts, ending_counts = _by_pattern(alerts["items"]), _by_pattern(endings["items"])
    latest = max((hour for hours in (*alert_counts.values(), *ending_counts.values()) for hour in hours), default=0)
    return page.render(
        "overview.html",
        title="Overview",
        stream=stream,
        names=names,
        pipeline=pipeline,
        sentences=[
            *_sentences(pipeline, patterns["items"], receivers, incidents, letters["counts"]),
            *_of_hours(alerts, "alerts"),
            *_of_hours(endings, "early terminations"),
            *([Sentence("warn", _CUT.format(most=_MOST_WEBHOOKS), "/webhooks")] if is_cut else []),
        ],
        rows=_rows(patterns["items"], summary["items"], alert_counts, ending_counts, figures.alerts, latest),
        latency=figures.latency,
        alert_chart=hourly(sum(alert_counts.values(), Counter()), "alerts", latest),
        ending_chart=hourly(sum(ending_counts.values(), Counter()), "early terminations", latest),
        has_alerts=bool(alert_counts),
        has_endings=bool(ending_counts),
        newest=newest["items"],
    )


async def _figures(page: Page) -> Figures:
    return Figures.of(await page.get("/metrics"))


def _sentences(
    pipeline: Any, patterns: Sequence[Any], receivers: Sequence[Any], incidents: Any, letters: Sequence[Any]
) -> Iterator[Sentence]:
    troubles = [
        *_of_pipeline(pipeline),
        *(
            Sentence(
                "bad", f"The pattern {pattern['name']} is suspended: {pattern['suspension']['reason']}", "/patterns"
            )
            for pattern in patterns
            if pattern.get("suspension")
        ),
        *(_of_receiver(receiver) for receiver in receivers if receiver["failing_since"] or not receiver["enabled"]),
    ]
    yield from troubles
    if not troubles:
        yield Sentence("ok", "All accepted events are matched.")
    if incidents and (opened := incidents["items"]):
        count = f"{'At least ' if incidents['next'] else ''}{plural(len(opened), 'incident')}"
        yield Sentence("warn", f"{count} {'is' if len(opened) == 1 else 'are'} open.", "/incidents")
    if count := sum(counter["count"] for counter in letters):
        yield Sentence("warn", f"{plural(count, 'dead letter')}: events that could not be processed.", "/dead-letters")


def _of_pipeline(pipeline: Any) -> Iterator[Sentence]:
    if pipeline is None:
        return
    if pipeline["running_since"] is None:
        yield Sentence("bad", "The pipeline does not run: events are accepted, but not matched.")
    backlog = pipeline["backlog"]
    waiting = backlog["waiting_volume"]["events"]
    speed = backlog["per_second"]["events"] if backlog["per_second"] else 0
    if waiting and (not speed or waiting / speed > _BEHIND_S):
        rest = f", about {span(waiting / speed)} of work" if speed else ""
        yield Sentence("warn", f"{plural(waiting, 'event')} wait to be matched{rest}.")


def _of_hours(counts: Any, noun: str) -> Iterator[Sentence]:
    newest = max((datetime.fromisoformat(count["hour"]) for count in counts["items"]), default=None)
    if newest and datetime.fromisoformat(counts["since"]) > newest - _DRAWN:
        yield Sentence("warn", _CUT_HOURS.format(noun=noun, since=counts["since"]))


def _of_receiver(receiver: Any) -> Sentence:
    link = receiver["path"]
    kind = "webhook" if link.startswith("/webhooks/") else f"{receiver['kind']} sink"
    name = receiver["description"] or receiver["name"] or receiver.get("url") or receiver["address"]
    if not receiver["enabled"]:
        reason = receiver["disabled_because"] or "by hand"
        return Sentence("warn", f"The {kind} “{name}” is switched off ({reason}).", link)
    waiting = plural(receiver["waiting"], "delivery", "deliveries")
    error = receiver["last_error"] or receiver["last_http_status"]
    return Sentence("bad", f"The {kind} “{name}” fails ({error}); {waiting} wait.", link)


def _by_pattern(counts: Sequence[Any]) -> dict[str, Counter[int]]:
    """Return counts grouped by pattern and hour. An hour is given as the number of hours since 1970."""
    by_pattern: dict[str, Counter[int]] = defaultdict(Counter)
    for count in counts:
        by_pattern[count["pattern"] or ""][int(datetime.fromisoformat(count["hour"]).timestamp()) // 3_600] += count[
            "count"
        ]
    return by_pattern


def _rows(
    patterns: Sequence[Any],
    summary: Sequence[Any],
    alerts: Mapping[str, Counter[int]],
    endings: Mapping[str, Counter[int]],
    counted: Mapping[str, float] | None,
    latest: int,
) -> list[dict[str, Any]]:
    ended = {item["pattern"]: item for item in summary}
    return [
        {
            **pattern,
            "alerts": None if counted is None else counted.get(pattern["name"], 0),
            "ended": ended.get(pattern["name"], {"total": 0, "by_form": {}}),
            "chart": hourly(alerts.get(pattern["name"], {}), "alerts", latest),
            "ending_chart": hourly(endings.get(pattern["name"], {}), "early terminations", latest),
        }
        for pattern in patterns
        if pattern["state"] != "retired"
    ]


@dataclass(frozen=True, slots=True)
class Figures:
    """Metrics of the service that the overview shows: alerts by pattern since its registration, and their latency.

    ``alerts`` is None if the key may not read the metrics. At least nine of ten alerts are found within ``latency``
    seconds, which is the upper bound of a histogram bucket. ``latency`` is None without alerts.
    """

    alerts: Mapping[str, float] | None
    latency: float | None

    @classmethod
    def of(cls, metrics: str) -> Figures:
        """Parse metrics in Prometheus' text format."""
        samples = {
            family.name: family.samples
            for family in text_string_to_metric_families(metrics)
            if family.name in ("forestall_alerts", "forestall_alert_latency_seconds")
        }
        buckets = [
            (float(sample.labels["le"]), sample.value)
            for sample in samples.get("forestall_alert_latency_seconds", ())
            if sample.name.endswith("_bucket")
        ]
        most = max((count for _, count in buckets), default=0.0)
        within = [bound for bound, count in buckets if most and count >= _MOST_OF * most]
        alerts = {sample.labels["pattern"]: sample.value for sample in samples.get("forestall_alerts", ())}
        return cls(alerts, min(within, default=None))

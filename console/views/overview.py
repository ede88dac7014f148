"""The overview: whether the service is well, what comes in, and what its patterns find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response

from console.charts import histogram
from console.formats import plural, span
from console.page import Page, all_of, allowed

_NEWEST: Final = 500
_SHOWN: Final = 8
_FAST_S: Final = 1.5  # how old figures may be, of pages that refresh every two seconds
_QUIET_S: Final = 5.0
_SLOW_S: Final = 30.0
_MOST_WEBHOOKS: Final = 20
_BEHIND_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about the state of the service, its severity, and the page with more."""

    level: str
    text: str
    link: str = ""


async def show(page: Page) -> Response:
    """Render the overview of one stream, or of all that the key may touch."""
    stream = page.query("stream")
    names = [one["name"] for one in await page.streams()]
    api = page.api
    alerts, endings, patterns, summary, pipeline, webhooks, letters, metrics, newest = await all_of(
        allowed(api.recent("/alerts", stream=stream, limit=_NEWEST, age_s=_SLOW_S), {"items": []}),
        allowed(api.recent("/endings", stream=stream, limit=_NEWEST, age_s=_SLOW_S), {"items": []}),
        api.recent("/patterns", stream=stream, limit=1000, age_s=_QUIET_S),
        allowed(api.recent("/endings/summary", stream=stream, age_s=_QUIET_S), {"items": []}),
        allowed(api.recent("/pipeline", age_s=_FAST_S)),
        allowed(_webhooks(page, stream), []),
        allowed(api.recent("/dead-letters", stream=stream, limit=1, age_s=_QUIET_S), {"counts": []}),
        allowed(api.metrics(), ""),
        allowed(api.recent("/alerts", stream=stream, limit=_SHOWN, age_s=_FAST_S), {"items": []}),
    )
    counted = _counters(metrics)
    return page.render(
        "overview.html",
        title="Overview",
        stream=stream,
        names=names,
        pipeline=pipeline,
        sentences=list(_sentences(pipeline, patterns["items"], webhooks, letters["counts"])),
        rows=_rows(patterns["items"], summary["items"], alerts["items"], endings["items"], counted),
        alert_chart=histogram((alert["detected_at"] for alert in alerts["items"]), "alerts"),
        ending_chart=histogram((ending["time"] for ending in endings["items"]), "early terminations"),
        newest=newest["items"],
    )


async def _webhooks(page: Page, stream: str | None) -> list[Any]:
    found = (await page.api.recent("/webhooks", stream=stream, limit=_MOST_WEBHOOKS, age_s=_QUIET_S))["items"]
    return await all_of(*(page.api.recent(f"/webhooks/{webhook['id']}", age_s=5.0) for webhook in found))


def _sentences(
    pipeline: Any, patterns: Sequence[Any], webhooks: Sequence[Any], letters: Sequence[Any]
) -> Iterator[Sentence]:
    """The state of the service in words, what is wrong first."""
    troubles = [
        *_of_pipeline(pipeline),
        *(
            Sentence("bad", f"The pattern {one['name']} is suspended: {one['suspension']['reason']}", "/patterns")
            for one in patterns
            if one.get("suspension")
        ),
        *(_of_webhook(one) for one in webhooks if one["failing_since"] or not one["enabled"]),
    ]
    yield from troubles
    if not troubles:
        yield Sentence("ok", "Events are taken and matched; nothing waits.")
    if count := sum(one["count"] for one in letters):
        yield Sentence("warn", f"{plural(count, 'event')} could not be taken and became dead letters.", "/dead-letters")


def _of_pipeline(pipeline: Any) -> Iterator[Sentence]:
    if pipeline is None:
        return
    if pipeline["running_since"] is None:
        yield Sentence("bad", "The pipeline does not run: events are kept, but not matched.")
    backlog = pipeline["backlog"]
    waiting = backlog["waiting_volume"]["events"]
    speed = backlog["per_second"]["events"] if backlog["per_second"] else 0
    if waiting and (not speed or waiting / speed > _BEHIND_S):
        rest = f", about {span(waiting / speed)} of work" if speed else ""
        yield Sentence("warn", f"{plural(waiting, 'event')} wait to be matched{rest}.")


def _of_webhook(webhook: Any) -> Sentence:
    name = webhook["description"] or webhook["name"] or webhook["url"]
    if not webhook["enabled"]:
        reason = webhook["disabled_because"] or "by hand"
        return Sentence("warn", f"The webhook “{name}” is switched off ({reason}).", f"/webhooks/{webhook['id']}")
    waiting = plural(webhook["waiting"], "delivery", "deliveries")
    text = f"The webhook “{name}” fails ({webhook['last_error'] or webhook['last_http_status']}); {waiting} wait."
    return Sentence("bad", text, f"/webhooks/{webhook['id']}")


def _rows(
    patterns: Sequence[Any],
    summary: Sequence[Any],
    alerts: Sequence[Any],
    endings: Sequence[Any],
    counted: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A row for each pattern: how often it matched and was terminated early, and when."""
    ended = {item["pattern"]: item for item in summary}
    alert_times, ending_times = defaultdict(list), defaultdict(list)
    for alert in alerts:
        alert_times[alert["pattern"]].append(alert["detected_at"])
    for ending in endings:
        ending_times[ending["pattern"]].append(ending["time"])
    return [
        {
            **pattern,
            "alerts": counted.get(pattern["name"], 0),
            "ended": ended.get(pattern["name"], {"total": 0, "by_form": {}}),
            "chart": histogram(alert_times[pattern["name"]], "alerts"),
            "ending_chart": histogram(ending_times[pattern["name"]], "early terminations"),
            "last": _latest(alert_times[pattern["name"]]),
        }
        for pattern in patterns
        if pattern["state"] != "retired"
    ]


def _latest(times: Sequence[str]) -> str | None:
    """The latest of times whose fractions differ in length."""
    return max(times, key=datetime.fromisoformat, default=None)


def _counters(metrics: str) -> dict[str, float]:
    """The number of alerts of each pattern since its registration."""
    return {
        sample.labels["pattern"]: sample.value
        for family in text_string_to_metric_families(metrics)
        if family.name == "forestall_alerts"
        for sample in family.samples
    }

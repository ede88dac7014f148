"""``forestall status``: the state of the running service, in a few lines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from http import HTTPStatus
from typing import Annotated, Any

import typer
from prometheus_client.parser import text_string_to_metric_families

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, show
from service.cli.choices import as_seconds
from service.cli.waiting import waiting_on
from service.client import AccessDenied, Client, ServiceUnavailable, ServiceUnreachable
from service.readiness import await_ready, missing_part

_MINUTE_S = 60.0
_COUNTER = "forestall_alerts_total"


def status(
    over: Annotated[
        float,
        typer.Option(
            parser=as_seconds,
            metavar="DURATION",
            help="For how long to count new alerts, for the rate; 0: do not count.",
        ),
    ] = 2.0,
    wait: Annotated[
        float,
        typer.Option(
            parser=as_seconds,
            metavar="DURATION",
            help="How long to wait until the service is ready; compiling kernels does not count.",
        ),
    ] = 0.0,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Show whether the service is ready, its backlog, and the state of its streams. Exit status 1: not ready.

    With a key that is restricted to streams, only these streams and their results are shown.
    """
    with calling(url, api_key, patience_s=0.0) as client:
        with waiting_on() as waiting:
            await_ready(lambda: missing_part(client), waiting, wait)
        missing = _missing(client)
        report = {"ready": missing is None, **({} if missing is None else {"missing": missing})}
        with suppress(ServiceUnavailable, ServiceUnreachable) if missing else nullcontext():
            report |= _read_allowed(client, over)
    show(report, is_json=is_json)
    raise typer.Exit(0 if report["ready"] else 1)


def _missing(client: Client) -> str | None:
    client.health.get()
    try:
        client.ready.get()
    except ServiceUnavailable as error:
        return error.message
    return None


def _read_allowed(client: Client, over_s: float) -> dict[str, Any]:
    try:
        return _read(client, over_s)
    except AccessDenied as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return {
            "streams": {stream["name"]: _stream_results(client, stream["name"]) for stream in client.streams.list()}
        }


def _stream_results(client: Client, stream: str) -> dict[str, Any]:
    patterns = list(client.patterns.list(stream=stream))
    statistics = [client.patterns.statistics(pattern["name"]) for pattern in patterns]
    counts = {
        name: sum(count["count"] for count in client.get(f"/{path}", stream=stream, limit=1)["counts"])
        for name, path in (("deviations", "deviations"), ("dead_letters", "dead-letters"))
    }
    return {
        "active_patterns": sum(pattern["state"] == "active" for pattern in patterns),
        "alerts": sum(numbers["alerts"] for numbers in statistics),
        **counts,
    }


def _read(client: Client, over_s: float) -> dict[str, Any]:
    pipeline = client.pipeline.get()
    backlog, rate = pipeline["backlog"]["waiting_volume"], pipeline["backlog"]["per_second"]
    first = _alerts(client)
    report: dict[str, Any] = {
        "running_since": pipeline["running_since"],
        "backlog_events": backlog["events"],
        "matched_per_second": None if rate is None else rate["events"],
        "alerts": first,
    }
    if (executors := pipeline.get("executors")) is not None:
        report["executors"] = executors["running"]
        if executors["missing"]:
            report["missing_executors"] = executors["missing"]
    if over_s:
        time.sleep(over_s)
        report["alerts_per_minute"] = round((_alerts(client) - first) * _MINUTE_S / over_s, 1)
        report["rate_measured_s"] = over_s
    report["streams"] = {
        stream["name"]: {
            "watermark": stream["watermark"],
            "open_traces": stream["open_traces"],
            "held_partial_matches": stream["held_partial_matches"],
            **_disorder(client, stream),
        }
        for stream in pipeline["streams"]
    }
    for count in client.dead_letters.page(limit=1)["counts"]:
        of_stream = report["streams"].setdefault(count["stream"], {})
        of_stream["dead_letters"] = of_stream.get("dead_letters", 0) + count["count"]
    return report


def _disorder(client: Client, stream: Mapping[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {"derived": True} if stream["derived"] else {}
    members["waiting_events"] = stream["waiting_events"]
    if stream["derived"] and stream["waiting_events"]:
        members["held_back_by"] = client.streams.get(stream["name"])["held_back_by"]
    if stream["late_events"]:
        members["late_events"] = stream["late_events"]
    if stream.get("events_without_key"):
        members["events_without_key"] = stream["events_without_key"]
    return members


def _alerts(client: Client) -> int:
    families = text_string_to_metric_families(client.pipeline.metrics())
    return int(sum(sample.value for family in families for sample in family.samples if sample.name == _COUNTER))

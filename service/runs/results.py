"""The results of a run, sorted into lists by their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from service.runs.plan import RunPlan
from shards import DEAD_LETTER, DERIVED, INCIDENT_CHANGES, KINDS, RESULT_KINDS, ResultKind, with_alerts
from streams import parse_time

Results: TypeAlias = dict[str, list[dict[str, Any]]]
"""The results of a run, by the name of their list."""

LISTS: Mapping[str, ResultKind] = {
    result.member: result for kind in KINDS for result in kind.result_kinds if result.in_backtests != "no"
}
"""The kind of the results in each list, by the name of the list."""
EVENTS = "events"
"""The list of derived events."""
INCIDENTS = "incidents"
"""The list of incidents, each in its latest state."""
SUSPENSIONS = "suspensions"
"""The list of suspended operators."""
OLD_LISTS: Mapping[str, str] = {"ended": "endings"}
"""Former names of lists, which are still accepted and printed for one release."""

_NAMES = {**{result.name: name for name, result in LISTS.items()}, DERIVED.name: EVENTS}
_SHOWN_LETTERS = frozenset(error.code for kind in KINDS for error in kind.letters)
_CHANGES = frozenset(kind.name for kind in INCIDENT_CHANGES)
_TIMES = frozenset(("start", "end", "due", "time"))


def results_of(plan: RunPlan, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Results:
    """Sort result rows into lists. A row is a kind and a body.

    A list is sorted by stream. The results of one stream are sorted by the function ``ordered``.
    """
    patterns = [
        routed_pattern.pattern for stream_patterns in plan.patterns.values() for routed_pattern, _ in stream_patterns
    ]
    with_returns = {pattern.name for pattern in patterns if pattern.returns}
    results: Results = {name: [] for name in (*_NAMES.values(), DEAD_LETTER.member, SUSPENSIONS)}
    incidents: dict[str, Mapping[str, Any]] = {}
    alerts: dict[str, int] = {}  # by incident: the number of alerts, which suppressed alerts have without a change
    for kind, body in rows:
        alerts |= _alerts_so_far(body, alerts)
        if (name := _NAMES.get(kind)) is not None:
            stream = body["into"] if name == EVENTS else body["stream"]
            if stream not in plan.declarations:  # an internal stream of operators
                continue
            document = document_of(RESULT_KINDS[kind], body)
            if "returns" in document and body["pattern"] not in with_returns:
                del document["returns"]
            results[name].append({"stream": stream, **document})
        elif kind in _CHANGES:
            latest = incidents.setdefault(body["incident"], body)
            incidents[body["incident"]] = max(latest, body, key=lambda change: int(change["revision"]))
        elif kind == DEAD_LETTER.name and body["code"] in _SHOWN_LETTERS:
            results[DEAD_LETTER.member].append({name: body[name] for name in ("stream", "pattern", "key", "reason")})
        elif kind in RESULT_KINDS and RESULT_KINDS[kind].stops:
            members = [name for name in ("pattern", "key", "event", "time", "reason") if name in body]
            source = body.get("source", body["pattern"])
            results[SUSPENSIONS].append({"stream": source, **{name: body[name] for name in members}})
    places = {name: place for place, name in enumerate(plan.declarations)}
    for kind, name in _NAMES.items():
        results[name] = ordered(RESULT_KINDS[kind], results[name])
    results[INCIDENTS] = sorted(
        (_incident(with_alerts(change, alerts.get(name, 0))) for name, change in incidents.items()),
        key=lambda incident: (incident["opened_at"], incident["id"]),
    )
    for entries in results.values():
        entries.sort(key=lambda entry: places[entry["stream"]])
    return results


def _alerts_so_far(body: Mapping[str, Any], before: Mapping[str, int]) -> dict[str, int]:
    """Return the number of alerts of the incident of a suppressed alert, by incident. Other results have none."""
    if "incident_alerts" not in body:
        return {}
    incident = body["incident"]
    return {incident: max(before.get(incident, 0), body["incident_alerts"])}


def _incident(change: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: value for name, value in change.items() if name not in ("type", "id", "incident")}
    return {"id": change["incident"], **members}


def document_of(kind: ResultKind, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a result that lists show, without its stream."""
    names = kind.shown or [name for name in body if name not in ("type", "id", "stream")]
    return {name: body[name] for name in names if name in body}


def row_text(body: Mapping[str, Any]) -> str:
    """Return the row of FOR EACH ROW as text, such as ``(sensor=s1)``, or an empty text if the result has none."""
    if "row" not in body:
        return ""
    words = (f"{name}={value}" for name, value in body["row"].items())
    return f"({' '.join(words)})"


def ordered(kind: ResultKind, bodies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort results of one kind in the order in which runs list them."""

    def place(body: Mapping[str, Any]) -> list[Any]:
        return [_comparable(name, body.get(name, {})) for name in kind.ordered_by]

    return sorted(bodies, key=place)


def numbers_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of results in each list. ``counts`` has the number of rows of each kind."""
    return {name: counts.get(kind, 0) for kind, name in _NAMES.items()}


def _comparable(name: str, value: Any) -> Any:
    if name in _TIMES:
        return parse_time(value)
    return sorted(value.items()) if isinstance(value, Mapping) else value

"""Patterns: register, list, look up, lead from one state to another, delete."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response, status

from api.bodies import require_json
from api.filters import StreamFilter
from api.schemas.endings import EndingSummary
from api.schemas.patterns import (
    CheckedPattern,
    MissingCount,
    NewPattern,
    PatternDetail,
    PatternList,
    PatternModel,
    PatternStatistics,
    PatternVersion,
    PatternVersions,
)
from api.services import Served

router = APIRouter(prefix="/patterns", tags=["patterns"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Register a pattern",
    dependencies=[Depends(require_json)],
    responses={200: {"model": CheckedPattern, "description": "It is registered in the same words already."}},
)
def register_pattern(pattern: NewPattern, services: Served, response: Response) -> CheckedPattern:
    """Match a pattern from this place of the log on; another text under the same name is its next version.

    It is sent as ``text`` or, in its JSON form, as ``definition``; the answer has both. A pattern that the stream's
    constraints make impossible is refused with the reason, a minimal clash; one that looks for what breaks them is
    registered with ``constraints: off``. With ``start: migrate`` the version before goes on for the partial matches
    that it has, until its WITHIN has passed or there is another version.

    With ``state: draft`` it is checked and written down, and matched once it is activated; a draft that is sent without
    that is activated.
    """
    is_guarded, start, is_draft = pattern.constraints == "on", pattern.start, pattern.state == "draft"
    registration = services.registration
    if pattern.text is not None:
        report = registration.register_pattern(
            pattern.stream, pattern.text, is_guarded=is_guarded, start=start, is_draft=is_draft
        )
    else:
        report = registration.register_definition(
            pattern.stream, pattern.definition, is_guarded=is_guarded, start=start, is_draft=is_draft
        )
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    return CheckedPattern.from_report(report)


@router.get("", summary="List the patterns")
def list_patterns(services: Served, stream: StreamFilter) -> PatternList:
    """All patterns, by name, drafts, paused and retired ones too."""
    patterns = services.stores.registry.patterns(stream)
    return PatternList(items=[PatternModel.from_domain(pattern) for pattern in patterns])


@router.get("/{name:path}/versions", summary="List the versions of a pattern")
def list_versions(name: str, services: Served) -> PatternVersions:
    """Every version that the pattern has had, the oldest first."""
    versions = services.stores.registry.pattern_versions(name)
    last = versions[-1].version
    return PatternVersions(items=[PatternVersion.from_domain(version, last) for version in versions])


@router.get("/{name:path}/statistics", summary="See how a pattern fares")
def get_statistics(name: str, services: Served) -> PatternStatistics:
    """Counts of what was found by all versions of a pattern, those that are no longer kept included."""
    pattern, stores = services.stores.registry.pattern(name), services.stores
    chosen = {"stream": pattern.stream, "pattern": name}
    place = pattern.stream, name
    timeouts = stores.timeouts.counts(**chosen)
    last = stores.alerts.last(*place)
    return PatternStatistics(
        name=name,
        stream=pattern.stream,
        state=pattern.state,
        version=pattern.version,
        alerts=stores.alerts.counts().get(place, 0),
        would_be_lost=stores.alerts.lost_counts().get(place, 0),
        last_alert_at=None if last is None else last["detected_at"],
        corrections=sum(count["count"] for count in stores.corrections.counts(**chosen)),
        timeouts=sum(count["count"] for count in timeouts),
        timeouts_by_missing=[MissingCount(missing=count["missing"], count=count["count"]) for count in timeouts],
        endings=EndingSummary.from_domain(pattern.stream, name, stores.endings.counts(**chosen)),
    )


@router.get("/{name:path}", summary="Look up a pattern")
def get_pattern(name: str, services: Served) -> PatternDetail:
    """The pattern, in words the events that end its partial matches under the constraints, and how often they did."""
    report, found = services.registration.pattern(name)
    endings = services.stores.endings.counts(stream=report.pattern.stream, pattern=report.pattern.name)
    return PatternDetail.of(report, found, endings)


@router.post("/{name:path}/activate", summary="Activate a draft")
def activate_pattern(name: str, services: Served) -> CheckedPattern:
    """Match a draft from this place of the log on. Active already, it stays so."""
    return CheckedPattern.from_report(services.registration.move_pattern(name, "activate"))


@router.post("/{name:path}/retire", summary="Retire a pattern")
def retire_pattern(name: str, services: Served) -> CheckedPattern:
    """Never match a pattern again, from this place of the log on; it stays listed, its alerts and counts stay too."""
    return CheckedPattern.from_report(services.registration.move_pattern(name, "retire"))


@router.post("/{name:path}/pause", summary="Pause a pattern")
def pause_pattern(name: str, services: Served) -> CheckedPattern:
    """Let a pattern see nothing from this place of the log on; its partial matches go. Paused already, it stays so."""
    return CheckedPattern.from_report(services.registration.pause_pattern(name))


@router.post("/{name:path}/resume", summary="Resume a pattern")
def resume_pattern(name: str, services: Served) -> CheckedPattern:
    """Let a paused pattern see what comes from this place of the log on, as the version that it was."""
    return CheckedPattern.from_report(services.registration.resume_pattern(name))


@router.delete("/{name:path}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a pattern")
def delete_pattern(name: str, services: Served) -> None:
    """Stop matching a pattern from this place of the log on; its alerts stay."""
    services.registration.delete_pattern(name)

"""Patterns: register, list, look up, pause, delete."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response, status

from api.bodies import require_json
from api.filters import StreamFilter
from api.schemas.patterns import CheckedPattern, NewPattern, PatternDetail, PatternList, PatternModel
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
    """
    is_guarded, start, severity = pattern.constraints == "on", pattern.start, pattern.severity
    registration = services.registration
    if pattern.text is not None:
        report = registration.register_pattern(
            pattern.stream, pattern.text, is_guarded=is_guarded, start=start, severity=severity
        )
    else:
        report = registration.register_definition(
            pattern.stream, pattern.definition, is_guarded=is_guarded, start=start, severity=severity
        )
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    return CheckedPattern.from_report(report)


@router.get("", summary="List the patterns")
def list_patterns(services: Served, stream: StreamFilter) -> PatternList:
    """All patterns, by name, paused ones too."""
    patterns = services.stores.registry.patterns(stream)
    return PatternList(items=[PatternModel.from_domain(pattern) for pattern in patterns])


@router.get("/{name:path}", summary="Look up a pattern")
def get_pattern(name: str, services: Served) -> PatternDetail:
    """The pattern, in words the events that end its partial matches under the constraints, and how often they did."""
    report, found = services.registration.pattern(name)
    endings = services.stores.endings.counts(stream=report.pattern.stream, pattern=report.pattern.name)
    return PatternDetail.of(report, found, endings)


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

"""Patterns: register, list, look up, change their state, delete, try."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Response, status

from api.access.auth import Calling
from api.errors import Forbidden, WrongShape
from api.locations import creation, give_location
from api.requests.filters import Now, StreamFilter, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.patterns import (
    CheckedPattern,
    DryRunModel,
    NewDryRun,
    NewPattern,
    PatternChanges,
    PatternDetail,
    PatternList,
    PatternModel,
    PatternStatistics,
    PatternVersion,
    PatternVersions,
)
from api.services import Served, Services
from api.work import bounded
from nfa import Pattern, parse_pattern
from service import USUAL_SEVERITY, Caller, OperatorDraft, PatternReport, UnknownPatternName, pattern_counts, skipped_by
from shards import shown_quiet

router = APIRouter(prefix="/patterns", tags=["patterns"], route_class=IdempotentRoute)


def named_pattern(name: str, pattern: NewPattern) -> tuple[str, NewPattern]:
    """Return the name in the path and the pattern in the body."""
    return name, pattern


@router.post(
    "",
    **creation(
        "Register a pattern",
        "The same text is already registered, or `If-Match` made it the next version.",
        CheckedPattern,
    ),
)
@bounded
def register_pattern(
    pattern: NewPattern, services: Served, caller: Calling, response: Response, preconditions: Preconditions
) -> CheckedPattern:
    """Match a pattern on later events.

    Another pattern under the same name is refused (409), except with ``If-Match``. To replace the pattern, use
    ``PUT /v1/patterns/{name}``.

    The pattern is sent as ``text`` or, in its JSON form, as ``definition``. The answer has both. If the stream's
    constraints make the pattern impossible, it is refused, and the error gives a minimal conflict as the reason.
    Register a pattern that looks for violations of the constraints with ``constraints: off``. With ``start: migrate``,
    the former version finishes its partial matches until its WITHIN has passed or another version is registered.

    Matches of a pattern with INTO become events of a derived stream, which the first such pattern declares.

    With ``state: draft``, the pattern is only checked and stored until it is activated. To activate a draft, you may
    also send it again without this member. With ``state: paused``, the pattern sees no events until it is resumed.
    """
    parsed = services.registration.read_pattern(pattern.text, pattern.definition)
    draft = replace(pattern.to_domain(parsed, preconditions), creates=preconditions.matches is None)
    report = _registered(pattern.stream, parsed, draft, services, caller)
    give_location(response, "patterns", report.pattern.name)
    answer = _answered(report, response)
    if not draft.creates:
        response.status_code = status.HTTP_200_OK
    return answer


@router.put(
    "/{name:path}",
    summary="Set a pattern",
    dependencies=[Depends(once)],
    responses={201: {"model": CheckedPattern, "description": "The name is new."}},
)
@bounded
def put_pattern(
    named: Annotated[tuple[str, NewPattern], Depends(named_pattern)],
    services: Served,
    caller: Calling,
    response: Response,
    preconditions: Preconditions,
) -> CheckedPattern:
    """Register a pattern or its next version. The body is that of ``POST /v1/patterns``.

    The name in the pattern's text must equal the name in the path.

    Omitted members have their defaults, so a request without ``severity`` may change the severity, too.
    """
    name, pattern = named
    parsed = services.registration.read_pattern(pattern.text, pattern.definition)
    if parsed.name != name:
        raise WrongShape(f"path.name: the text calls the pattern {parsed.name!r}, the request {name!r}; use one name")
    is_known = _is_known(services, name)
    draft = replace(pattern.to_domain(parsed, preconditions), severity=pattern.severity or USUAL_SEVERITY)
    report = _registered(pattern.stream, parsed, draft, services, caller)
    answer = _answered(report, response)
    response.status_code = status.HTTP_200_OK if is_known else status.HTTP_201_CREATED
    return answer


@router.patch("/{name:path}", summary="Change a pattern")
def change_pattern(
    name: str, changes: PatternChanges, services: Served, response: Response, preconditions: Preconditions
) -> PatternModel:
    """Change the severity of a pattern for new alerts. The pattern's version does not change."""
    record = services.stores.registry.pattern_operators.grade(name, changes.severity, preconditions)
    give_tag(response, record)
    return PatternModel.from_domain(record)


@router.get("", summary="List the patterns")
def list_patterns(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> PatternList:
    """List the patterns that the caller may access, by name.

    Drafts, paused, suspended and retired patterns are included.
    """
    patterns = reachable(services.stores.registry.patterns(stream), caller, stream)
    return PatternList(**part.of(patterns, "name"))


@router.get("/{name:path}/versions", summary="List the versions of a pattern")
def list_versions(name: str, services: Served, part: WantedPart) -> PatternVersions:
    """List every version of the pattern, the oldest first."""
    versions = services.stores.registry.pattern_operators.versions(name)
    last = versions[-1].version
    return PatternVersions(**part.of([PatternVersion.of(version, last) for version in versions], "version"))


@router.get("/{name:path}/versions/{version}", summary="Look up a version of a pattern")
def get_pattern_version(name: str, version: int, services: Served) -> PatternVersion:
    """Look up a version of the pattern."""
    versions = services.stores.registry.pattern_operators.versions(name)
    record = next((candidate for candidate in versions if candidate.version == version), None)
    if record is None:
        raise UnknownPatternName(f"the pattern {name!r} has no version {version}; it has 1 to {versions[-1].version}")
    return PatternVersion.of(record, versions[-1].version)


@router.get("/{name:path}/statistics", summary="Get the statistics of a pattern")
def get_statistics(name: str, services: Served) -> PatternStatistics:
    """Count the results of all versions of a pattern, including results that are no longer kept."""
    return PatternStatistics.from_domain(pattern_counts(services.stores, name))


@router.get("/{name:path}", summary="Look up a pattern")
@bounded
def get_pattern(name: str, services: Served, response: Response) -> PatternDetail:
    """Look up a pattern, and the events that terminate its partial matches under the constraints, with their counts."""
    report, inspection = services.registration.pattern(name)
    give_tag(response, report.pattern)
    endings = services.stores.results["ending"].counts(stream=report.pattern.stream, pattern=report.pattern.name)
    return PatternDetail.of(report, inspection, endings)


@router.post("/{name:path}/activate", summary="Activate a draft")
@bounded
def activate_pattern(name: str, services: Served, response: Response, preconditions: Preconditions) -> CheckedPattern:
    """Match a draft on later events. If the pattern is already active, nothing changes."""
    return _moved(services.registration.move_pattern(name, "activate", preconditions), response)


@router.post("/{name:path}/retire", summary="Retire a pattern")
@bounded
def retire_pattern(name: str, services: Served, response: Response, preconditions: Preconditions) -> CheckedPattern:
    """Stop matching a pattern permanently. Its alerts and counts remain listed."""
    return _moved(services.registration.move_pattern(name, "retire", preconditions), response)


@router.post("/{name:path}/pause", summary="Pause a pattern")
@bounded
def pause_pattern(
    name: str, services: Served, response: Response, preconditions: Preconditions, now: Now = False
) -> CheckedPattern:
    """Stop matching a pattern until it is resumed. Its partial matches are dropped."""
    skipped = skipped_by(services.stores) if now else None
    report = services.registration.move_pattern(name, "pause", preconditions, stops=now)
    return _moved(report, response).with_skipped(skipped)


@router.post("/{name:path}/resume", summary="Resume a pattern")
@bounded
def resume_pattern(name: str, services: Served, response: Response, preconditions: Preconditions) -> CheckedPattern:
    """Match a paused pattern on later events. Its version does not change.

    A pattern that was suspended because it cost too much work is resumed as its next version, with the same text.
    """
    return _moved(services.registration.move_pattern(name, "resume", preconditions), response)


@router.delete("/{name:path}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a pattern")
def delete_pattern(name: str, services: Served, preconditions: Preconditions) -> None:
    """Stop matching a pattern and remove it from the list. Its alerts are kept."""
    services.registration.delete_pattern(name, preconditions)


@router.post("/dry-run", summary="Try a pattern")
@bounded
def dry_run(wanted: NewDryRun, services: Served) -> DryRunModel:
    """Match a pattern over the newest events of a stream, with the current constraints. Nothing is stored.

    Patterns are refused for the same reasons as at registration. If the first events of a transaction are no longer in
    the log, or not among the newest events, only the rest of the transaction is matched. Open transactions stay open.
    """
    stream, is_guarded = wanted.stream or "", wanted.constraints != "off"
    suppress = None if wanted.suppress is None else wanted.suppress.model_dump(by_alias=True)
    if wanted.name is not None:
        record = services.stores.registry.pattern(wanted.name)
        pattern, stream = parse_pattern(record.text), wanted.stream or record.stream
        is_guarded = is_guarded if wanted.constraints is not None else record.is_guarded
        suppress = shown_quiet(record.body).get("suppress") if suppress is None else suppress
    else:
        pattern = services.registration.read_pattern(wanted.text, wanted.definition)
    run = services.dry_runs.run(stream, pattern, is_guarded=is_guarded, most_events=wanted.events, suppress=suppress)
    return DryRunModel(**run)


def _registered(
    stream: str, parsed: Pattern, draft: OperatorDraft, services: Services, caller: Caller
) -> PatternReport:
    if parsed.into is not None and not caller.may_touch(parsed.into.stream):
        raise Forbidden(f"the API key {caller.id} may not touch the stream {parsed.into.stream!r}, which INTO names")
    return services.registration.register(stream, parsed, draft)


def _is_known(services: Services, name: str) -> bool:
    try:
        services.stores.registry.pattern(name)
    except UnknownPatternName:
        return False
    return True


def _answered(report: PatternReport, response: Response) -> CheckedPattern:
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    give_tag(response, report.pattern)
    return CheckedPattern.from_report(report)


def _moved(report: PatternReport, response: Response) -> CheckedPattern:
    give_tag(response, report.pattern)
    return CheckedPattern.from_report(report)

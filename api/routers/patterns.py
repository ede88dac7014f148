"""Patterns: register, list, look up, delete."""

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
    constraints make impossible is refused with the reason.
    """
    if pattern.text is not None:
        report = services.registration.register_pattern(pattern.stream, pattern.text)
    else:
        report = services.registration.register_definition(pattern.stream, pattern.definition)
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    return CheckedPattern.from_report(report)


@router.get("", summary="List the patterns")
def list_patterns(services: Served, stream: StreamFilter) -> PatternList:
    """All patterns, by name."""
    patterns = services.stores.registry.patterns(stream)
    return PatternList(items=[PatternModel.from_domain(pattern) for pattern in patterns])


@router.get("/{name:path}", summary="Look up a pattern")
def get_pattern(name: str, services: Served) -> PatternDetail:
    """The pattern, and in words the events that end its partial matches under the stream's constraints."""
    return PatternDetail.of(*services.registration.pattern(name))


@router.delete("/{name:path}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a pattern")
def delete_pattern(name: str, services: Served) -> None:
    """Stop matching a pattern from this place of the log on; its alerts stay."""
    services.registration.delete_pattern(name)

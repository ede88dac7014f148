"""Dry runs: the matches that a pattern would have found."""

from __future__ import annotations

from fastapi import APIRouter

from api.schemas.dry_runs import DryRunModel, NewDryRun
from api.services import Served
from api.work import bounded
from nfa import parse_pattern
from shards import shown_quiet

router = APIRouter(prefix="/patterns", tags=["patterns"])


@router.post("/dry-run", summary="Try a pattern")
@bounded
def dry_run(wanted: NewDryRun, services: Served) -> DryRunModel:
    """Match a pattern over the newest events of a stream, with the current constraints; nothing is stored.

    Patterns are refused for the same reasons as at registration. A transaction whose beginning is no longer in the log,
    or not among these events, is matched from its middle on; open transactions stay open.
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

"""Static analysis of a stream's constraints and patterns, before the first event."""

from __future__ import annotations

from fastapi import APIRouter

from api.schemas.analysis import AnalysisModel
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/constraints", tags=["constraints"])


@router.get("/{stream}/analysis", summary="Analyse the constraint set of a stream")
@bounded
def analyse_constraints(stream: str, services: Served) -> AnalysisModel:
    """The names that the monitor distinguishes, the effect of the constraints on each pattern, and unused constraints.

    Computed for this call, from the registered patterns; with hundreds of constraints it takes seconds.
    """
    return AnalysisModel.of(*services.registration.constraint_sets.analysis(stream))

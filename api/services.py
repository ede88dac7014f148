"""The use cases and stores with which requests are answered; opened by the application's lifespan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import Depends, Request

from service import (
    Announcing,
    BacktestLibrary,
    CalendarLibrary,
    DeadLetters,
    DryRuns,
    IncidentLibrary,
    Intake,
    KeyLibrary,
    KeyRing,
    LiveLists,
    OpenCaseLibrary,
    OperatorLibrary,
    OperatorQuestions,
    Questions,
    Registration,
    Settings,
    Stores,
    TableLibrary,
    Traces,
    WebhookLibrary,
    WorkflowLibrary,
)
from shards import DOCUMENT_KINDS, DocumentKind
from streams import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The use cases and stores of the handlers."""

    settings: Settings
    stores: Stores
    registration: Registration
    operators: OperatorLibrary
    tables: TableLibrary
    calendars: CalendarLibrary
    workflows: WorkflowLibrary
    webhooks: WebhookLibrary
    incidents: IncidentLibrary
    backtests: BacktestLibrary
    intake: Intake
    announcing: Announcing
    dead_letters: DeadLetters
    dry_runs: DryRuns
    live: LiveLists
    traces: Traces
    questions: Questions
    open_cases: OpenCaseLibrary
    operator_questions: OperatorQuestions
    ring: KeyRing
    keys: KeyLibrary
    clock: Clock

    @classmethod
    def of(
        cls,
        stores: Stores,
        settings: Settings,
        clock: Clock,
        context: Callable[[], str | None] = lambda: None,
        kinds: Sequence[DocumentKind] = DOCUMENT_KINDS,
    ) -> Self:
        """The services on some stores; ``context`` gives the ``traceparent`` of the current request."""
        registration = Registration(stores, settings, clock)
        intake = Intake(stores.log, stores.registry, settings.limits, clock, context)
        ring = KeyRing(stores.keys, settings, clock)
        return cls(
            settings=settings,
            stores=stores,
            registration=registration,
            operators=OperatorLibrary(stores, clock, kinds, can_spill=not settings.keeps_states_in_redis),
            tables=(tables := TableLibrary(stores, settings, clock)),
            calendars=CalendarLibrary(tables),
            workflows=WorkflowLibrary(stores, settings, clock, registration.constraint_sets),
            webhooks=WebhookLibrary(stores, settings, clock),
            incidents=IncidentLibrary(stores, clock),
            backtests=BacktestLibrary(stores, settings, clock),
            intake=intake,
            dead_letters=DeadLetters(stores, intake, clock),
            announcing=Announcing(stores, clock),
            dry_runs=DryRuns(stores, registration),
            traces=Traces(stores, settings.limits),
            questions=(questions := Questions(stores, settings, clock)),
            open_cases=OpenCaseLibrary(stores, questions),
            operator_questions=OperatorQuestions(stores, questions),
            live=LiveLists(settings.limits.live_listeners),
            ring=ring,
            keys=KeyLibrary(stores.keys, ring, settings, clock),
            clock=clock,
        )


async def services_of(request: Request) -> Services:
    """The services of the running application."""
    services: Services = request.state.services
    return services


Served = Annotated[Services, Depends(services_of)]

"""Use cases and stores for the request handlers. The application's lifespan opens and closes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

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


class Services:
    """The use cases and stores that request handlers call.

    ``context`` returns the ``traceparent`` of the current request.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        clock: Clock,
        context: Callable[[], str | None] = lambda: None,
        kinds: Sequence[DocumentKind] = DOCUMENT_KINDS,
    ) -> None:
        self.settings = settings
        self.stores = stores
        self.clock = clock
        self.registration = Registration(stores, settings, clock)
        self.operators = OperatorLibrary(stores, clock, kinds, can_spill=not settings.keeps_states_in_redis)
        self.tables = TableLibrary(stores, settings, clock)
        self.calendars = CalendarLibrary(self.tables)
        self.workflows = WorkflowLibrary(stores, settings, clock, self.registration.constraint_sets)
        self.webhooks = WebhookLibrary(stores, settings, clock)
        self.incidents = IncidentLibrary(stores, clock)
        self.backtests = BacktestLibrary(stores, settings, clock)
        self.intake = Intake(stores.log, stores.registry, settings.limits, clock, context)
        self.dead_letters = DeadLetters(stores, self.intake, clock)
        self.announcing = Announcing(stores, clock)
        self.dry_runs = DryRuns(stores, self.registration)
        self.traces = Traces(stores, settings.limits)
        self.questions = Questions(stores, settings, clock)
        self.open_cases = OpenCaseLibrary(stores, self.questions)
        self.operator_questions = OperatorQuestions(stores, self.questions)
        self.live = LiveLists(settings.limits.live_listeners)
        self.ring = KeyRing(stores.keys, settings, clock)
        self.keys = KeyLibrary(stores.keys, self.ring, settings, clock)


async def services_of(request: Request) -> Services:
    """Return the services of the running application."""
    services: Services = request.state.services
    return services


Served = Annotated[Services, Depends(services_of)]

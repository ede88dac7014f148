"""Operations of operators that are registered as documents: one router per kind, all of the same form."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable
from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, Response, status

from api.access.auth import Calling
from api.access.direct import DirectRoute
from api.errors import WrongShape
from api.locations import creation, give_location
from api.pictures import PICTURE_HEADERS, SVG
from api.problems import ASKING_RESPONSES
from api.requests.filters import Now, StreamFilter, WantedPage, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.operators import (
    NewOperator,
    OperatorAnswerModel,
    OperatorExplanationModel,
    OperatorList,
    OperatorModel,
    OperatorQuestion,
    OperatorResults,
)
from api.services import Served, Services
from service import USUAL_SEVERITY, Action, Condition, RegisteredOperator, plot_operator, skipped_by
from shards import DocumentKind, ResultKind
from streams import indefinite

_ACTIONS: dict[Action, tuple[str, str]] = {
    "activate": (
        "Run a draft on later events. An active operator stays active.",
        "runs on later events",
    ),
    "pause": (
        "Stop an operator for later events, until it is resumed; its state is dropped.",
        "is paused",
    ),
    "resume": (
        "Run a paused or suspended operator on later events, with empty state.",
        "runs on later events",
    ),
    "retire": (
        "Stop an operator for good; its results stay listed.",
        "no longer runs",
    ),
}
"""Effect and result of each action, in words."""

_QUESTION = {"by": ["region"], "where": {"user": "ann"}, "values": ["n"], "window": "20 min"}


@cache
def operator_router(kind: DocumentKind) -> APIRouter:
    """Return a kind's router with operations under ``/<plural>``: register, list, look up, change state, delete."""
    router = APIRouter(prefix=f"/{kind.plural}", tags=["operators"], route_class=IdempotentRoute)
    _add_register(router, kind)
    _add_put(router, kind)
    for result in kind.result_kinds:
        _add_results(router, kind, result)
    _add_explanation(router, kind)
    if kind.is_plotted:
        _add_plot(router, kind)
    _add_reading(router, kind)
    for action in _ACTIONS:
        _add_move(router, kind, action)
    _add_delete(router, kind)
    return router


def _add_register(router: APIRouter, kind: DocumentKind) -> None:
    @router.post(
        "",
        **creation(f"Register {indefinite(kind.name)}", "The same document is already registered.", OperatorModel),
        response_description=f"The {kind.name} is registered.",
        name=f"register_{kind.name}",
        openapi_extra=_described(kind),
    )
    def register(
        operator: NewOperator, services: Served, response: Response, preconditions: Preconditions
    ) -> OperatorModel:
        """Run an operator on later events.

        Another document under the same name is refused (409), except with ``If-Match``. To replace the document, use
        ``PUT``. With ``state: draft``, the operator is only checked and stored. With ``state: paused``, it runs once it
        is resumed.
        """
        answer, is_new = _put_version(
            kind, operator, services, response, preconditions, creates=preconditions.matches is None
        )
        give_location(response, kind.plural, answer.name)
        if not is_new or preconditions.matches is not None:
            response.status_code = status.HTTP_200_OK
        return answer


def _add_put(router: APIRouter, kind: DocumentKind) -> None:
    @router.put(
        "/{name:path}",
        summary=f"Set {indefinite(kind.name)}",
        response_description=f"The {kind.name} runs as its next version, unless it is unchanged.",
        name=f"put_{kind.name}",
        dependencies=[Depends(once)],
        openapi_extra=_described(kind),
        responses={201: {"model": OperatorModel, "description": "The name is new."}},
    )
    def put_operator(
        name: str, operator: NewOperator, services: Served, response: Response, preconditions: Preconditions
    ) -> OperatorModel:
        """Register an operator or its next version, in the form of ``POST``. Omitted members have their defaults."""
        if operator.name != name:
            raise WrongShape(f"path.name: the name in the body is {operator.name!r}; both have to be the same")
        is_known = any(registered.name == name for registered in services.stores.registry.operators(kind.name).all())
        answer, _ = _put_version(kind, operator, services, response, preconditions, creates=False)
        response.status_code = status.HTTP_200_OK if is_known else status.HTTP_201_CREATED
        return answer


def _put_version(
    kind: DocumentKind,
    operator: NewOperator,
    services: Services,
    response: Response,
    condition: Condition,
    *,
    creates: bool,
) -> tuple[OperatorModel, bool]:
    severity = operator.severity if creates else operator.severity or USUAL_SEVERITY
    record, is_new = services.operators.put(
        kind.name, operator.document, severity=severity, state=operator.state, condition=condition, creates=creates
    )
    return _answer(record, services, response), is_new


def _add_reading(router: APIRouter, kind: DocumentKind) -> None:
    @router.get(
        "",
        summary=f"List the {kind.plural}",
        name=f"list_{kind.plural}",
        response_description=f"All {kind.plural} that the caller may touch, by name.",
    )
    def list_all(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> OperatorList:
        """List the operators of the kind that the caller may access, by name.

        Drafts, paused and retired operators are included.
        """
        operators = reachable(services.stores.registry.operators(kind.name).all(), caller, stream)
        return OperatorList(**part.of(operators, "name"))

    @router.get(
        "/{name:path}/versions",
        summary=f"List the versions of {indefinite(kind.name)}",
        name=f"list_versions_of_{kind.name}",
        response_description="Every version, the oldest first.",
    )
    def list_versions(name: str, services: Served, part: WantedPart) -> OperatorList:
        """List every version of the operator, the oldest first."""
        versions = services.stores.registry.operators(kind.name).versions(name)
        return OperatorList(**part.of(versions, "version"))

    @router.get(
        "/{name:path}",
        summary=f"Look up {indefinite(kind.name)}",
        name=f"get_{kind.name}",
        response_description=f"The {kind.name}, with its state.",
    )
    def get_one(name: str, services: Served, response: Response) -> OperatorModel:
        """Look up the current version of the operator, and its state."""
        return _answer(services.stores.registry.operators(kind.name).get(name), services, response)


def _add_explanation(router: APIRouter, kind: DocumentKind) -> None:
    @router.get(
        "/{name:path}/explanation",
        summary=f"Explain {indefinite(kind.name)}",
        name=f"explain_{kind.name}",
        response_description=f"How the {kind.name} runs, and its counts.",
    )
    async def explain(name: str, services: Served) -> OperatorExplanationModel:
        """Explain which algorithm runs and why, which events are retained and for how long, with counts."""
        explanation = await to_thread(services.operators.explain, kind.name, name)
        return OperatorExplanationModel.copying(
            explanation, indexes=await services.operator_questions.indexes(kind, name)
        )


@cache
def asking_router(kind: DocumentKind) -> APIRouter:
    """Return the router with the operation that asks operators of a kind for current values."""
    router = APIRouter(prefix=f"/{kind.plural}", tags=["operators"], route_class=DirectRoute)

    @router.post(
        "/{name:path}/ask",
        summary=f"Ask {indefinite(kind.name)}",
        name=f"ask_{kind.name}",
        response_description="The groups with their values.",
        response_model=OperatorAnswerModel,
        responses=ASKING_RESPONSES,
        openapi_extra={"requestBody": {"content": {"application/json": {"example": _QUESTION}}}},
    )
    async def ask(name: str, question: OperatorQuestion, services: Served) -> Response:
        """Compute the current values of groups over the events in the window. Any attributes may form the groups.

        Each shard answers from its state, which includes all events that were acknowledged before the question. The
        answer is exact as of the log positions in `positions`. The window ends at `time`, the current event time of the
        stream. The question does not change any results.
        """
        answer = await services.operator_questions.ask(kind, name, question.document)
        return Response(OperatorAnswerModel.json_of(answer), media_type="application/json")

    return router


def _add_plot(router: APIRouter, kind: DocumentKind) -> None:
    @router.get(
        "/{name:path}/plot.svg",
        summary=f"Plot {indefinite(kind.name)}",
        name=f"plot_{kind.name}",
        response_description="The values of each group over time, as a picture.",
        response_class=Response,
        responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
    )
    def plot(name: str, services: Served) -> Response:
        """Draw the values in the newest derived events over time, as SVG: a panel per value, a line per group.

        At most eight groups are drawn: those with most events. The colours follow the reader's light or dark mode.
        """
        picture = plot_operator(services.stores, kind, name)
        return Response(picture, media_type=SVG, headers=PICTURE_HEADERS)


def _add_results(router: APIRouter, kind: DocumentKind, result: ResultKind) -> None:
    @router.get(
        f"/{{name:path}}/results/{result.plural}",
        summary=f"List recent {result.title} of {indefinite(kind.name)}",
        name=f"list_{result.member}_of_{kind.name}",
        response_description=f"A page of {result.title} of the {kind.name}, and counters.",
    )
    def list_results(name: str, services: Served, wanted: WantedPage) -> OperatorResults:
        """List recent results of all versions of the operator, with counters."""
        stream = services.stores.registry.operators(kind.name).get(name).stream
        store = services.stores.results[result.name]
        page = store.page(**{**wanted, "stream": stream, result.subject: name})
        counts = store.counts(stream=stream, **{result.subject: name})
        return OperatorResults(items=page.items, counts=list(counts), next=page.next, after=page.after)


def _add_move(router: APIRouter, kind: DocumentKind, action: Action) -> None:
    def move(name: str, services: Served, response: Response, preconditions: Preconditions) -> OperatorModel:
        record, _ = services.operators.move(kind.name, name, action, preconditions)
        return _answer(record, services, response)

    def pause(
        name: str, services: Served, response: Response, preconditions: Preconditions, now: Now = False
    ) -> OperatorModel:
        skipped = skipped_by(services.stores) if now else None
        record, _ = services.operators.move(kind.name, name, action, preconditions, stops=now)
        return _answer(record, services, response).with_skipped(skipped)

    meaning, outcome = _ACTIONS[action]
    _post(
        router,
        f"/{{name:path}}/{action}",
        pause if action == "pause" else move,
        summary=f"{action.capitalize()} {indefinite(kind.name)}",
        description=meaning,
        name=f"{action}_{kind.name}",
        response_description=f"The {kind.name}, which {outcome}.",
    )


def _add_delete(router: APIRouter, kind: DocumentKind) -> None:
    @router.delete(
        "/{name:path}",
        status_code=status.HTTP_204_NO_CONTENT,
        summary=f"Delete {indefinite(kind.name)}",
        name=f"delete_{kind.name}",
        response_description=f"The {kind.name} no longer runs; its results stay.",
    )
    def delete(name: str, services: Served, preconditions: Preconditions) -> None:
        """Stop an operator and remove it from the list. Its results are kept."""
        services.operators.remove(kind.name, name, preconditions)


def _post(router: APIRouter, path: str, operation: Callable[..., Any], **options: str) -> None:
    router.post(path, **options)(operation)  # type: ignore[arg-type]


def _answer(record: RegisteredOperator, services: Served, response: Response) -> OperatorModel:
    give_tag(response, record)
    return OperatorModel.copying(record, warnings=services.operators.notices(record))


def _described(kind: DocumentKind) -> dict[str, Any]:
    # The kind's examples have all members.
    kind_schema = {name: value for name, value in kind.schema.items() if name != "examples"}
    schema = {"allOf": [{"$ref": "#/components/schemas/NewOperator"}, kind_schema]}
    example = {"example": kind.schema["examples"][0]} if "examples" in kind.schema else {}
    return {"requestBody": {"content": {"application/json": {"schema": schema, **example}}}}

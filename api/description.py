"""The OpenAPI description of the API: parts that all operations share are added to each operation's description."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.routing import APIRoute

from api.access.auth import SECURITY_SCHEMES
from api.problems import Problem, name_codes
from api.schemas.workflows import ModelEnvelope
from shards import RESULT_KINDS

TITLE = "Forestall"
DESCRIPTION = """Complex event processing that knows the workflow behind the events.

Send events (`POST /v1/events`), register patterns (`POST /v1/patterns`), and receive alerts: by webhooks, as
server-sent events (`GET /v1/alerts/live`) or by polling (`GET /v1/alerts`). The [manual](manual/) explains all of it.

A change of a pattern, an operator, a stream, a table or a calendar applies to later events: those after the change in
the log.

Errors are problem documents (RFC 9457) whose `code` is stable. Unknown query parameters are
rejected, as are unknown members of a body. HEAD works wherever GET does; OPTIONS, and the answer 405, list the
methods of a path in `Allow`."""
SERVERS: list[dict[str, Any]] = [{"url": "/", "description": "The service that this description comes from."}]
TAGS: list[dict[str, Any]] = [
    {"name": name, "description": description}
    for name, description in (
        ("streams", "Streams of events: their correlation key, the schemas of their types, and ends of transactions."),
        ("tables", "Reference tables that conditions look up."),
        ("calendars", "Business hours and days, for deadlines and durations in patterns."),
        ("workflows", "Process models, the constraints that follow from them, and the streams that follow them."),
        ("constraints", "Rules that every transaction of a stream keeps."),
        ("patterns", "The patterns that are matched, from draft to retirement."),
        ("operators", "Joins of streams: their life cycle is that of patterns, their results are derived events."),
        ("schemas", "JSON Schemas of the documents that the API accepts."),
        ("events", "Sending events."),
        (
            "traces",
            "Transactions: which are open; the events of one, the state of each pattern, which types may come next.",
        ),
        ("alerts", "Matches of patterns."),
        ("sinks", "Receivers beside webhooks: folders of Parquet, e-mail, Kafka topics."),
        ("incidents", "Alerts of a group as one incident: opened, acknowledged, closed."),
        ("suppressed-alerts", "Alerts that an earlier alert of their group suppresses."),
        ("results", "Results of several kinds as one feed."),
        ("derived-events", "Matches that became events of derived streams."),
        ("corrections", "Retractions of alerts that were sent early."),
        ("suspensions", "Patterns that are no longer matched: they cost too much work, or a table has too many rows."),
        ("timeouts", "Partial matches whose WITHIN has passed."),
        ("endings", "Early terminations: partial matches that could no longer complete, and why."),
        ("deviations", "Transactions that leave the constraints of their stream."),
        ("dead-letters", "Events that could not be processed, and sending them again."),
        ("webhooks", "Addresses to which alerts are sent, and the state of their deliveries."),
        ("pipeline", "The state of the pipeline."),
        ("backtests", "The results that a pattern would have had in the past."),
        ("projects", "The resources that each project has made."),
        ("keys", "API keys with scopes."),
        ("audit", "Who changed which resource, and when."),
        ("health", "Health and readiness; no key is required."),
    )
]

_SENT_HEADERS = {
    "webhook-id": "The id of the result, the same for all attempts.",
    "webhook-kind": "The kind of the body.",
    "webhook-timestamp": "When the attempt was made, in seconds since 1970.",
    "webhook-signature": "`v1,` and a signature over id, timestamp and body; several are separated by spaces.",
}
_HEADERS = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "Cache-Control": "`no-store` for changes, as answers may have secrets.",
        "ETag": "Tag of the answer, for `If-None-Match`, and of the resource, for `If-Match`.",
        "Idempotency-Replayed": "`true`: the answer to an earlier request with the same `Idempotency-Key`.",
        "Link": "The page about the code, `rel=help`.",
        "RateLimit": "The requests that are left, and until when; only with a limit of requests.",
        "RateLimit-Policy": "The limit of requests.",
        "X-Request-Id": "Id of the request, as in the log: the one that was sent, or a new one.",
    }.items()
}
_DEFAULT_DESCRIPTION = "Successful Response"  # the framework's default text


class DescribedApi(FastAPI):
    """A FastAPI application with a completed OpenAPI description.

    It adds examples, headers, problem codes, webhooks and models.
    """

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            _show_answers(document)
            _describe_outcomes(document)
            _describe_event_streams(document)
            for path, verbs in document["paths"].items():
                for verb, operation in verbs.items():
                    name_codes(path, verb, operation)
                    _describe_headers(verb, operation)
                    _make_parameters_plain(operation)
            document["components"] |= {"headers": _HEADERS, "securitySchemes": SECURITY_SCHEMES}
            document["webhooks"] = _webhooks(document)
            schemas, examples = document["components"]["schemas"], _table("examples.json")
            for model in (Problem, ModelEnvelope):
                form = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas.update(form.pop("$defs", {}))
                schemas[model.__name__] = form
            for name, form in schemas.items():
                form.update({"examples": examples[name]} if name in examples else {})
        return self.openapi_schema or {}


def _show_answers(document: dict[str, Any]) -> None:
    """Add examples to the JSON answers. The examples were recorded from a running service."""
    examples = _table("answers.json")
    for verbs in document["paths"].values():
        for operation in verbs.values():
            for status, answer in operation["responses"].items():
                content = answer.get("content", {}).get("application/json")
                if status.startswith("2") and content is not None and operation["operationId"] in examples:
                    content["example"] = examples[operation["operationId"]]


def _describe_outcomes(document: dict[str, Any]) -> None:
    outcomes = _table("outcomes.json")
    for verbs in document["paths"].values():
        for operation in verbs.values():
            for status, answer in operation["responses"].items():
                if status.startswith("2") and answer["description"] == _DEFAULT_DESCRIPTION:
                    answer["description"] = outcomes[operation["operationId"]]


def _webhooks(document: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of the messages to webhooks.

    A message has the form of an item in the list of results of its kind.
    """
    schemas, paths = document["components"]["schemas"], document["paths"]
    messages = {}
    for kind in RESULT_KINDS.values():
        ends = (f"/{kind.plural}", f"/v1/{kind.delivered_as.partition('.')[0]}s")
        listings = [paths[path]["get"] for end in ends for path in paths if path.endswith(end)]
        if not kind.delivered_as or not listings:
            continue
        page = listings[0]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        body = schemas[page]["properties"]["items"]["items"]
        message = {
            "operationId": f"receive_{kind.delivered_as.replace('.', '_')}",
            "summary": f"Receive {kind.title}",
            "description": f"Signed (Standard Webhooks), with the header `webhook-kind: {kind.delivered_as}`.",
            "tags": ["webhooks"],
            "security": [],
            "parameters": [{**_header(name), "in": "header", "name": name, "required": True} for name in _SENT_HEADERS],
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {"2XX": {"description": "It is received."}},
        }
        messages[kind.delivered_as] = {"post": message}
    return messages


def _header(name: str) -> dict[str, Any]:
    return {"description": _SENT_HEADERS[name], "schema": {"type": "string"}}


def _describe_headers(verb: str, operation: dict[str, Any]) -> None:
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    for status, answer in list(operation["responses"].items()):
        header_names = ["X-Request-Id", "RateLimit", "RateLimit-Policy", "Cache-Control"]
        if status >= "4":
            header_names.append("Link")
        elif verb == "get" and "application/json" in answer.get("content", {}):
            header_names.append("ETag")
            operation["responses"]["304"] = {"description": "The client has it already, by its `If-None-Match`."}
        elif "if-match" in names and status != "204":
            header_names.append("ETag")
        if status < "3" and "idempotency-key" in names:
            header_names.append("Idempotency-Replayed")
        references = {name: {"$ref": f"#/components/headers/{name}"} for name in header_names}
        operation["responses"][status] = {**answer, "headers": {**answer.get("headers", {}), **references}}
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _make_parameters_plain(operation: dict[str, Any]) -> None:
    """Describe optional parameters without null, because queries and headers cannot express null."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [alternative for alternative in schema.get("anyOf", ()) if alternative.get("type") != "null"]
        if len(choices) == 1:
            parameter["schema"] = {
                **{name: definition for name, definition in schema.items() if name != "anyOf"},
                **choices[0],
            }


def _describe_event_streams(document: dict[str, Any]) -> None:
    """Describe server-sent events as text, because the framework's ``itemSchema`` needs OpenAPI 3.2."""
    for verbs in document["paths"].values():
        for operation in verbs.values():
            for answer in operation["responses"].values():
                content = answer.get("content", {})
                if "text/event-stream" in content:
                    content["text/event-stream"] = {"schema": {"type": "string"}}


def _table(name: str) -> dict[str, Any]:
    entries: dict[str, Any] = orjson.loads(files(__package__).joinpath(name).read_bytes())
    return entries


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation: its function's name, which is unique."""
    return route.name

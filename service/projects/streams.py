"""Streams in a project: their declarations, schemas, workflows and constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from constraints import parse_constraints, to_document
from service.client import Client, condition, part
from service.projects.documents import Document
from service.projects.resources import Ask, Files, Form, ResourceKind, StoredResource, Wanted, warnings_at
from shards import DOCUMENT_KINDS
from streams import CHANGEABLE, ForestallError, StreamDeclaration

_SCHEMAS, _WORKFLOW = "schemas", "workflow"
_CHANGEABLE = (*CHANGEABLE, _SCHEMAS)
_USUAL = {**{name: getattr(StreamDeclaration(name="usual"), name) for name in CHANGEABLE}, _SCHEMAS: "off"}
_XML, _YAML = "application/xml", "application/yaml"


class Streams(ResourceKind):
    """The streams of a project. The form of a stream is its declaration."""

    title = "stream"
    path = "/streams"

    def read(self, document: Document, folder: Path) -> Wanted:
        members = {name: value for name, value in document.body.items() if name != _WORKFLOW}
        form = _declared({"name": document.name, **members})
        return Wanted(kind=self, name=document.name, form=form, document=document)

    def implied(self, wanted: Sequence[Wanted]) -> Iterator[Wanted]:
        """Yield the derived streams that operators feed but no document declares."""
        stream_names = {resource.name for resource in wanted if resource.kind is self}
        for resource in wanted:
            if resource.feeds and resource.feeds not in stream_names:
                stream_names.add(resource.feeds)
                form = _declared({"name": resource.feeds, "derived": True})
                yield Wanted(kind=self, name=resource.feeds, form=form, document=resource.document, is_implied=True)

    def is_as(self, stored: Form | None, wanted: Wanted) -> bool:
        """Return whether two declarations are equal.

        A derived stream that no document declares equals any derived stream.
        """
        return stored == wanted.form or (stored is not None and wanted.is_implied and stored.get("derived", False))

    def names(self, client: Client) -> list[str]:
        """Return the names of all streams except the internal streams of operators."""
        inner: set[str] = set()
        for kind in DOCUMENT_KINDS:
            for item in client.get(f"/{kind.plural}")["items"]:
                inner.update(kind.inner_streams(item["name"]))
        return [item["name"] for item in client.pages(self.path) if item["name"] not in inner]

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        return _declared(answer)

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        """Declare the stream. If the stream exists, change those members of its declaration that can be changed."""
        if stored is None:
            client.request("POST", "/streams", body={"name": wanted.name, **wanted.form}, headers=condition(None))
            return
        changes = {name: wanted.form.get(name, _USUAL[name]) for name in _CHANGEABLE}
        client.request("PATCH", stored.at, body=changes, headers=condition(stored.tag))

    def cannot_change(self, stored: StoredResource, wanted: Form) -> str:
        """Return which members of the stream would change although they are fixed, as a message for the user.

        The text is empty if there are none.
        """
        before = stored.form
        fixed = sorted(name for name in before.keys() | wanted.keys() if before.get(name) != wanted.get(name))
        members = ", ".join(name for name in fixed if name not in _CHANGEABLE)
        return members and f"{members} of a stream cannot be changed; delete the stream first, or declare another one"

    def uses(self, client: Client, name: str, stored: StoredResource) -> list[tuple[str, str]]:
        """Return the kind and name of each resource that prevents the deletion of a stream."""
        answer = client.request("DELETE", stored.at, query={"dry_run": "true"}, headers=condition(stored.tag))
        of_stream = {"constraints": (ConstraintSets.title, name), "workflow": (Following.title, name)}
        uses: list[tuple[str, str]] = []
        for item in answer["items"]:
            kind = item["kind"]
            if kind == "event-type":
                uses.append((EventTypes.title, f"{name}/{item['name']}"))
            elif item["state"] != "retired":
                uses.append(of_stream.get(kind, (kind, item["name"])))
        return uses


class EventTypes(ResourceKind):
    """The schemas of event types. The name of a resource is ``stream/type``."""

    title = "event type"
    document_kind = "event-type"

    def read(self, document: Document, folder: Path) -> Wanted:
        schema = document.own_or_beside("schema", "an event type", folder)
        if "schema_file" in document.body:
            try:
                schema = orjson.loads(schema)
            except orjson.JSONDecodeError as error:
                raise document.refuse(f"{document.body['schema_file']} is not JSON: {error}", "schema_file") from None
        name = f"{document.body['stream']}/{document.name}"
        return Wanted(kind=self, name=name, form={"schema": schema}, document=document)

    def names(self, client: Client) -> list[str]:
        type_names: list[str] = []
        for stream in client.streams.list():
            items = client.event_types.page(stream["name"])["items"]
            type_names += [f"{stream['name']}/{item['type']}" for item in items]
        return type_names

    def at(self, client: Client, name: str) -> str:
        return _event_type_at(name)

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        return {"schema": answer["json_schema"]}

    def body_of(self, wanted: Wanted) -> Any:
        return wanted.form["schema"]

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        return warnings_at(ask, _event_type_at(wanted.name))

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        return {"stream": name.partition("/")[0], **stored.form}


class Workflows(ResourceKind):
    """The workflows of a project. Each has a model, a process in it, and a mapping of its tasks to event types."""

    title = "workflow"
    path = "/workflows"

    def read(self, document: Document, folder: Path) -> Wanted:
        model = document.own_or_beside("model", "a workflow", folder)
        if "model" in document.body:
            model = orjson.dumps(model).decode()
        options = {"process": document.body.get("process"), "mapping": document.body.get("mapping", {})}
        return Wanted(kind=self, name=document.name, form={"model": model, **options}, document=document)

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        model = client.content(f"{at}/versions/{answer['version']}/source").decode()
        return {"model": model, "process": answer["process"], "mapping": answer["mapping"]}

    def body_of(self, wanted: Wanted) -> Any:
        members = {"content" if name == "model" else name: value for name, value in wanted.form.items()}
        return {name: value for name, value in members.items() if value}

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        """Return warnings about a workflow, and about the constraint sets of the streams that follow it."""
        at = f"{self.path}/{part(wanted.name)}"
        of_streams = (warnings_at(ask, _constraints_at(item["stream"])) for item in ask(at).get("streams", ()))
        return [*warnings_at(ask, at), *chain.from_iterable(of_streams)]

    def uses(self, client: Client, name: str, stored: StoredResource) -> list[tuple[str, str]]:
        """Return the streams that follow a workflow, as resources that prevent its deletion."""
        return [(Following.title, follower["stream"]) for follower in stored.answer["streams"]]

    def export(self, client: Client, name: str, stored: StoredResource, keep: Files) -> Form:
        suffix = ".model" if stored.answer["format"] == "tree" else f".{stored.answer['format']}"
        body: Form = {"model_file": keep(f"{name}{suffix}", stored.form["model"].encode())}
        return {**body, **{member: stored.form[member] for member in ("process", "mapping") if stored.form[member]}}


class Following(ResourceKind):
    """The workflow that each stream follows."""

    title = "workflow of the stream"
    document_kind = "stream"

    def wanted(self, document: Document, folder: Path) -> Iterator[Wanted]:
        """Yield the workflow that a stream's document names. Yield nothing if it names none."""
        return super().wanted(document, folder) if document.body.get(_WORKFLOW) is not None else iter(())

    def read(self, document: Document, folder: Path) -> Wanted:
        options = document.body[_WORKFLOW]
        name, mode = (options, "auto") if isinstance(options, str) else (options["name"], options.get("mode", "auto"))
        return Wanted(kind=self, name=document.name, form={"workflow": name, "mode": mode}, document=document)

    def names(self, client: Client) -> list[str]:
        return sorted(follower["stream"] for item in client.workflows.list() for follower in item["streams"])

    def at(self, client: Client, name: str) -> str:
        return f"/streams/{part(name)}/workflow"

    def form_of(self, client: Client, at: str, answer: Any) -> Form:
        return {"workflow": answer["workflow"], "mode": answer["mode"]}

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        """Make the stream follow the workflow.

        The change is conditional on the ``ETag`` of the stream's constraint set.
        """
        tag = "" if stored is None else stored.tag
        client.request("PUT", f"/streams/{part(wanted.name)}/workflow", body=wanted.form, headers=condition(tag))

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        """Return warnings about the constraint set of the stream."""
        return warnings_at(ask, _constraints_at(wanted.name))


class ConstraintSets(ResourceKind):
    """The hand-written constraint sets of streams."""

    title = "constraint set"
    path = "/constraints"
    document_kind = "constraints"

    def read(self, document: Document, folder: Path) -> Wanted:
        try:
            form = to_document(parse_constraints({"constraints": [], **document.body}).constraint_set)
        except ForestallError as error:
            raise document.refuse(error.message) from error
        return Wanted(kind=self, name=document.name, form=form, document=document)

    def is_as(self, stored: Form | None, wanted: Wanted) -> bool:
        """Return whether two constraint sets are equal. An empty set equals a missing one."""
        return stored == (wanted.form if any(wanted.form.values()) else None)

    def names(self, client: Client) -> list[str]:
        streams = [item["stream"] for item in client.pages(self.path)]
        return [stream for stream in streams if self.find(client, stream) is not None]

    def form_of(self, client: Client, at: str, answer: Any) -> Form | None:
        """Return the hand-written constraints of a stream, or None if it has none."""
        form: Form = answer["source"]
        return form if any(form.values()) else None

    def put(self, client: Client, wanted: Wanted, stored: StoredResource | None) -> None:
        tag = "" if stored is None else stored.tag
        client.request("POST", "/constraints", body={"stream": wanted.name, **wanted.form}, headers=condition(tag))

    def warnings(self, ask: Ask, wanted: Wanted) -> Sequence[str]:
        return warnings_at(ask, _constraints_at(wanted.name))

    def remove(self, client: Client, stored: StoredResource) -> None:
        stream = stored.at.rpartition("/")[2]
        client.request(
            "POST", "/constraints", query={"stream": stream}, body={"constraints": []}, headers=condition(stored.tag)
        )


def _declared(members: dict[str, Any]) -> Form:
    plain = StreamDeclaration.from_json(members).to_json()
    defaults = StreamDeclaration(name="usual", key="subject").to_json()
    form = {
        name: value
        for name, value in plain.items()
        if name == "key" or (name != "name" and value != defaults.get(name))
    }
    checks = members.get(_SCHEMAS, "off")
    return form if checks == "off" else {**form, _SCHEMAS: checks}


def _event_type_at(name: str) -> str:
    stream, _, event_type = name.partition("/")
    return f"/streams/{part(stream)}/event-types/{part(event_type)}"


def _constraints_at(stream: str) -> str:
    return f"{ConstraintSets.path}/{part(stream)}"

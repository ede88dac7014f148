"""Workflows and their versions. A version has a record, the uploaded model, and the results of the model's analysis.

Models and results can be large. Therefore they are stored apart from the record and read only when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from service.errors import UnknownWorkflow
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX
from service.stores.record_books import Change, Checks, Records, uses_of, version_of
from service.stores.records import decode, encode

WORKFLOW_MODELS_KEY = PREFIX + "workflow-models"
WORKFLOW_FINDINGS_KEY = PREFIX + "workflow-findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSummary:
    """The summary of a workflow's model.

    Attributes:
        method: How the constraints were extracted from the model.
        events: The event types of the model.
        end: The event types that end a trace.
        counts: Number of extracted constraints by kind.
        notices: Pairs of an element's id (or '') and a message, about elements that were left out.
    """

    title: str
    format: str
    method: str
    events: tuple[str, ...]
    end: tuple[str, ...]
    counts: Mapping[str, int]
    states: int | None
    without_automaton: str
    warnings: tuple[str, ...]
    notices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWorkflow:
    """A registered version of a workflow. Version numbers count from 1 for each name and are never reused.

    ``mapping`` has the event type of each task, or None for a silent task.
    """

    name: str
    version: int
    is_active: bool
    size_bytes: int
    registered_us: int
    media_type: str
    process: str | None
    mapping: Mapping[str, str | None]
    summary: WorkflowSummary

    @property
    def tag(self) -> str:
        """The entity tag, which is different for all versions of all workflows."""
        return f"{self.name}@{self.version}"


class WorkflowStore(Records[RegisteredWorkflow]):
    """The workflows, by name."""

    key = PREFIX + "workflows"
    versions_key = PREFIX + "workflow-versions"
    one = "the workflow"
    form = RegisteredWorkflow

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownWorkflow:
        message = reason or f"there is no workflow {name!r}; GET /v1/workflows lists them"
        return UnknownWorkflow(message, workflow=name, **details)

    def put(
        self,
        workflow: RegisteredWorkflow,
        model: bytes,
        findings: Mapping[str, Any],
        condition: Condition = ANY,
        required: Callable[[], Checks] = tuple,
    ) -> tuple[RegisteredWorkflow, bool]:
        """Register a workflow with its uploaded model as the next version. An equal workflow changes nothing.

        ``findings`` are the constraints and the automaton, as plain JSON. ``workflow.version`` is ignored. ``required``
        is called before each attempt to store the version, and may raise. Return the workflow after the call, and
        whether it changed.
        """

        def changed(registered: RegisteredWorkflow | None) -> Change | None:
            condition.check_record(registered if registered is not None and registered.is_active else None)
            if registered is not None and self._equals(registered, workflow, model, findings):
                return None
            record = replace(workflow, version=1 if registered is None else registered.version + 1)
            return Change(
                record=encode(**asdict(record)),
                version=record.version,
                checks=required(),
                commands=(
                    ("HSET", WORKFLOW_MODELS_KEY, _field(record), model),
                    ("HSET", WORKFLOW_FINDINGS_KEY, _field(record), encode(**findings)),
                ),
            )

        return self.apply(workflow.name, changed)

    def remove(self, name: str, condition: Condition = ANY, required: Callable[[], Checks] = tuple) -> None:
        """Delete a workflow. Its versions are retained for streams that follow them. Version numbers are not reused.

        ``required`` is called before each attempt to delete the workflow, and may raise.
        """

        def changed(stored: RegisteredWorkflow | None) -> Change:
            deleted = replace(self.require(stored, name, condition), is_active=False)
            forgotten = ("HDEL", *uses_of(self.key, name))
            return Change(record=encode(**asdict(deleted)), checks=required(), commands=(forgotten,))

        self.apply(name, changed)

    def followed(self, name: str, version: int) -> RegisteredWorkflow:
        """Return a version of a workflow, even if the workflow is deleted."""
        body = self._book.get(self.versions_key, version_of(name, version))
        return self.require(None if body is None else self.read(body, name), name)

    def model(self, record: RegisteredWorkflow) -> bytes:
        return cast("bytes", self._client.hget(WORKFLOW_MODELS_KEY, _field(record)))

    def findings(self, record: RegisteredWorkflow) -> Mapping[str, Any]:
        """Return the constraints and the automaton of a workflow, as plain JSON."""
        body = cast("bytes", self._client.hget(WORKFLOW_FINDINGS_KEY, _field(record)))
        return decode(body, f"the findings in the workflow {record.name!r}")

    def _equals(
        self, registered: RegisteredWorkflow, workflow: RegisteredWorkflow, model: bytes, findings: Mapping[str, Any]
    ) -> bool:
        if replace(workflow, version=registered.version, registered_us=registered.registered_us) != registered:
            return False
        stored = self._client.hget(WORKFLOW_FINDINGS_KEY, _field(registered))
        return self.model(registered) == model and stored == encode(**findings)


def _field(record: RegisteredWorkflow) -> str:
    return version_of(record.name, record.version)

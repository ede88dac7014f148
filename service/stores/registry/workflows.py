"""Workflows by name, with their versions: the record, the model as uploaded, and the results of its analysis.

Models and results can be large, so they are stored beside the record and read only when needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from service.errors import RegistryContended, UnknownWorkflow
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

WORKFLOWS_KEY = PREFIX + "workflows"
WORKFLOW_VERSIONS_KEY = PREFIX + "workflow-versions"
WORKFLOW_MODELS_KEY = PREFIX + "workflow-models"
WORKFLOW_FINDINGS_KEY = PREFIX + "workflow-findings"

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSummary:
    """The summary of a model: event types, those that nothing follows (``end``), numbers of constraints by kind.

    ``notices`` are (element id or '', message) about elements that were left out.
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
    """A version of a workflow; versions count from 1 for each name and never repeat.

    ``mapping`` leads from tasks to event types.
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
        """The tag that identifies the version among all versions of all workflows."""
        return f"{self.name}@{self.version}"


class WorkflowStore:
    """Stores the workflows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._commit = register(client, "registry/commit_workflow")

    def put(
        self, wanted: RegisteredWorkflow, model: bytes, findings: Mapping[str, Any], condition: Condition = ANY
    ) -> tuple[RegisteredWorkflow, bool]:
        """Register a workflow with its model as uploaded, as the next version (whatever ``wanted`` has) if it differs.

        ``findings`` are the constraints and the automaton, as plain JSON. Returns the workflow, and whether it changed.
        """
        for _ in range(_ATTEMPTS):
            current = self._current(wanted.name)
            known = None if current is None else _record(current, wanted.name)
            condition.check(None if known is None or not known.is_active else known.tag)
            record = replace(wanted, version=1 if known is None else known.version + 1)
            if known is not None and self._equals(known, record, model, findings):
                return known, False
            body = encode(**asdict(record))
            version = _field(record), model, encode(**findings)
            if self._commit(**_KEYS, name=wanted.name, before=current or b"", after=body, version=version):
                return record, True
            if self._client.hget(WORKFLOW_VERSIONS_KEY, _field(record)) == body:
                return record, True
        raise RegistryContended.over(f"the workflow {wanted.name!r}")

    def remove(self, name: str, condition: Condition = ANY) -> None:
        """Delete a workflow; its versions are kept for streams that followed them, and their numbers are not reused."""
        for _ in range(_ATTEMPTS):
            current = self._current(name)
            known = None if current is None else _record(current, name)
            if current is None or known is None or not known.is_active:
                raise _unknown(name)
            condition.check(known.tag)
            gone = encode(**asdict(replace(known, is_active=False)))
            is_gone = self._commit(**_KEYS, name=name, before=current, after=gone, version=())
            if is_gone or self._current(name) == gone:
                return
        raise RegistryContended.over(f"the workflow {name!r}")

    def get(self, name: str, version: int | None = None, *, is_deleted_too: bool = False) -> RegisteredWorkflow:
        """A version (default: current) of a workflow, perhaps of a deleted one; raises ``UnknownWorkflow``."""
        current = self._current(name)
        known = None if current is None else _record(current, name)
        if known is None or not (known.is_active or is_deleted_too):
            raise _unknown(name)
        if version in (None, known.version):
            return known
        body = cast("bytes | None", self._client.hget(WORKFLOW_VERSIONS_KEY, f"{version}@{name}"))
        if body is None:
            raise UnknownWorkflow(
                f"the workflow {name!r} has no version {version}; it has 1 to {known.version}",
                workflow=name,
                version=version,
            )
        return _record(body, name)

    def versions(self, name: str) -> list[RegisteredWorkflow]:
        """Every version of a workflow that is not deleted, the current one last."""
        fields = [f"{version}@{name}" for version in range(1, self.get(name).version + 1)]
        bodies = cast("list[bytes | None]", self._client.hmget(WORKFLOW_VERSIONS_KEY, fields))
        return [_record(body, name) for body in bodies if body is not None]

    def all(self) -> list[RegisteredWorkflow]:
        """The workflows that are not deleted, by name."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(WORKFLOWS_KEY))
        records = (_record(body, name.decode()) for name, body in sorted(found.items()))
        return [record for record in records if record.is_active]

    def model(self, record: RegisteredWorkflow) -> bytes:
        """The model as uploaded."""
        return cast("bytes", self._client.hget(WORKFLOW_MODELS_KEY, _field(record)))

    def findings(self, record: RegisteredWorkflow) -> Mapping[str, Any]:
        """The constraints and the automaton, as plain JSON."""
        body = cast("bytes", self._client.hget(WORKFLOW_FINDINGS_KEY, _field(record)))
        return decode(body, f"the findings in the workflow {record.name!r}")

    def _equals(
        self, known: RegisteredWorkflow, wanted: RegisteredWorkflow, model: bytes, findings: Mapping[str, Any]
    ) -> bool:
        """Whether a stored workflow equals a wanted one, whatever their versions and times."""
        if replace(wanted, version=known.version, registered_us=known.registered_us) != known:
            return False
        stored = self._client.hget(WORKFLOW_FINDINGS_KEY, _field(known))
        return self.model(known) == model and stored == encode(**findings)

    def _current(self, name: str) -> bytes | None:
        return cast("bytes | None", self._client.hget(WORKFLOWS_KEY, name))


_KEYS = {
    "workflows": WORKFLOWS_KEY,
    "versions": WORKFLOW_VERSIONS_KEY,
    "models": WORKFLOW_MODELS_KEY,
    "findings": WORKFLOW_FINDINGS_KEY,
}


def _field(record: RegisteredWorkflow) -> str:
    return f"{record.version}@{record.name}"


def _record(body: bytes, name: str) -> RegisteredWorkflow:
    fields = decode(body, f"the workflow {name!r}")
    members = fields["summary"]
    summary = WorkflowSummary(
        **{
            **members,
            **{part: tuple(members[part]) for part in ("events", "end", "warnings")},
            "notices": tuple((element, message) for element, message in members["notices"]),
        }
    )
    return RegisteredWorkflow(**{**fields, "summary": summary})


def _unknown(name: str) -> UnknownWorkflow:
    return UnknownWorkflow(f"there is no workflow {name!r}; GET /v1/workflows lists them", workflow=name)

"""Operators of the kinds that are registered as documents, as use cases without HTTP, with one life cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constraints import parse_constraints
from service.registering.derivations import Derivations, remove_inner
from service.registering.tables import require_lookups, tables_for
from service.runtime import Stores
from service.stores import ANY, Action, Condition, OperatorDraft, OperatorPart, RegisteredOperator, Severity
from shards import (
    DOCUMENT_KINDS,
    KINDS_BY_NAME,
    DocumentKind,
    Kind,
    OperatorRefused,
)
from streams import Clock, Definition, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorExplanation:
    """The explanation of how an operator runs: its algorithm, what it retains, and when it emits results.

    ``statistics`` has the counts of all shards after their last micro-batches; None: no shard has reported the
    operator. ``waiting`` is the number of events that wait for the time of other inputs.
    """

    sentences: Sequence[str]
    statistics: Mapping[str, int] | None
    waiting: int


class OperatorLibrary:
    """The use cases of operators; ``can_spill``: all machines reach a folder for files of states."""

    def __init__(
        self,
        stores: Stores,
        clock: Clock,
        kinds: Sequence[DocumentKind] = DOCUMENT_KINDS,
        *,
        can_spill: bool = True,
    ) -> None:
        self._can_spill = can_spill
        self._stores = stores
        self._registry = stores.registry
        self._derivations = Derivations(stores.registry)
        self._clock = clock
        self._kinds = {kind.name: kind for kind in kinds}
        self._by_plural = {kind.plural: kind.name for kind in kinds}

    def kind_of(self, plural: str) -> str | None:
        """The kind with this plural name in paths of the API."""
        return self._by_plural.get(plural)

    def put(
        self,
        kind: str,
        document: Mapping[str, Any],
        *,
        severity: Severity | None = None,
        is_draft: bool = False,
        condition: Condition = ANY,
        creates: bool = False,
    ) -> tuple[RegisteredOperator, bool]:
        """Register an operator: a different document makes the next version, an equal one changes nothing.

        Returns the operator after the call, and whether it changed. Without ``severity`` the operator keeps its
        severity, at first ``medium``. A draft is only checked and stored. With ``creates``, replacing an operator is
        refused.
        """
        reader = self._kinds[kind]
        wanted = self._read(reader, document)
        draft = OperatorDraft(
            kind=kind,
            name=wanted.name,
            inputs=wanted.inputs,
            route=wanted.inputs[0].key,
            body=wanted.body,
            severity=severity,
            keeps=lambda body: reader.keeps(body, wanted.body),
            is_draft=is_draft,
            condition=condition,
            creates=creates,
            into=_into(reader, wanted),
            parts=self._parts(reader, wanted),
        )
        first = wanted.inputs[0].stream
        feeders = draft.record(first, 0, 0).feeders
        self._derivations.check_operator(kind, wanted.name, feeders)
        if not is_draft:
            self._derivations.declare_fed(feeders)
        return self._registry.operators(kind).put(first, draft, self._clock.now_us())

    def _read(self, reader: DocumentKind, document: Mapping[str, Any]) -> Definition:
        wanted = reader.read(document, self._registry.stream)
        lookups = reader.lookups(wanted)
        require_lookups(self._stores, lookups)
        if any(one.keys is None for one in lookups):
            reader.require_rows(wanted, tables_for(self._stores, lookups))
        if not self._can_spill and reader.spills(wanted):
            raise _no_folder(wanted)
        return wanted

    def move(
        self, kind: str, name: str, action: Action, condition: Condition = ANY, *, stops: bool = False
    ) -> tuple[RegisteredOperator, bool]:
        """Move an operator to another state, for later entries of the log; returns it and whether it changed."""
        operators = self._registry.operators(kind)
        if action == "activate":
            self._derivations.declare_fed(operators.get(name).feeders)
        return operators.move(name, action, condition, self._clock.now_us(), stops=stops)

    def explain(self, kind: str, name: str) -> OperatorExplanation:
        """Explain how an operator runs, with its counts so far."""
        record, explaining = self._registry.operators(kind).get(name), self._kinds[kind]
        reports = [
            one.streams[record.stream] for one in self._stores.pipeline_status.shards() if record.stream in one.streams
        ]
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update({counted.removeprefix(f"{kind}_"): count for counted, count in report.operators.items()})
        figures, shown = explaining.figures(record.definition, counts)
        sentences = [*explaining.explain(record.definition), _since(record), *figures]
        if explaining.decider is not None and record.state == "active":
            known = self._stores.deciders.get(record.stream, explaining.decider.name)
            decisions = [(one.at_us, one.record) for one in known.decisions]
            sentences += explaining.measured(record.definition, counts, known.state, decisions)
        return OperatorExplanation(
            sentences=sentences,
            statistics=dict(shown) or None,
            waiting=sum(report.waiting or 0 for report in reports),
        )

    def notices(self, record: RegisteredOperator) -> Sequence[str]:
        """Sentences about probable mistakes in an operator's document, such as members without effect."""
        return self._kinds[record.kind].notices(record.definition, self._registry.stream, self._has_constraints)

    def _has_constraints(self, stream: str) -> bool:
        record = self._registry.constraints.find(stream)
        return record is not None and bool(parse_constraints(record.document).constraint_set.parts)

    def remove(self, kind: str, name: str, condition: Condition = ANY) -> None:
        """Delete an operator, with the streams between its parts; its results are kept."""
        operators = self._registry.operators(kind)
        between = {one.into for one in operators.get(name).parts}
        operators.remove(name, condition)
        remove_inner(self._stores, between)

    def _parts(self, kind: DocumentKind, wanted: Definition) -> tuple[OperatorPart, ...]:
        """The parts of an operator, which are operators themselves."""
        found = []
        for one in kind.parts(wanted, self._registry.stream):
            (source,) = one.inputs
            into = _into(KINDS_BY_NAME[one.kind], one)
            found.append(
                OperatorPart(
                    kind=one.kind, name=one.name, stream=source.stream, key=source.key, into=into, body=one.body
                )
            )
        return tuple(found)


def _since(record: RegisteredOperator) -> str:
    """A sentence on the time, and the version, with which an operator's state began."""
    if record.state != "active":
        return f"It is {record.state}, and holds nothing."
    if not record.is_continued:
        return f"Version {record.version} began without state at {format_time(record.since_us)}."
    return (
        f"Version {record.version} runs since {format_time(record.registered_us)}. It has kept its state since version "
        f"{record.held_from}, which began without state at {format_time(record.since_us)}."
    )


def _no_folder(wanted: Definition) -> OperatorRefused:
    return OperatorRefused(
        f"the {wanted.kind} {wanted.name!r} keeps a part of its state in files, and snapshots of this service are in "
        "Redis, so there is no folder for them: set FORESTALL_SNAPSHOTS to a folder that every machine reaches "
        "under the same path, or leave 'memory' out",
        field="memory",
    )


def _into(kind: Kind, definition: Definition) -> str:
    feed = kind.feed(definition)
    return "" if feed is None else feed.stream

"""Registration of operators as documents. All kinds of operators have one life cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from constraints import ConstraintSet, parse_constraints
from service.registering.derivations import Derivations, remove_inner
from service.registering.known_types import known_types
from service.registering.requirements import Requirements
from service.registering.strangers import unfollowed_names
from service.registering.tables import require_lookups, tables_for
from service.runtime import Stores
from service.stores import (
    ANY,
    Action,
    Checks,
    Condition,
    FirstState,
    OperatorDraft,
    OperatorPart,
    RegisteredOperator,
    Severity,
)
from shards import DOCUMENT_KINDS, KINDS_BY_NAME, DocumentKind, Kind, NameRead, OperatorRefused
from streams import Clock, Definition, StreamDeclaration, format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorExplanation:
    """How an operator runs. ``sentences`` say which algorithm it uses, since when it runs, and when it emits results.

    ``statistics`` has the counts of all shards after their last micro-batches, or is None if no shard has reported the
    operator. ``waiting`` is the number of events that wait for the time of other inputs.
    """

    sentences: Sequence[str]
    statistics: Mapping[str, int] | None
    waiting: int


class OperatorLibrary:
    """Registers and explains operators.

    If ``can_spill`` is False, operators that may keep a part of their state in files are refused.
    """

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
        """Return the kind whose plural name in the API's paths is ``plural``, or None if no kind has this name."""
        return self._by_plural.get(plural)

    def put(
        self,
        kind: str,
        document: Mapping[str, Any],
        *,
        severity: Severity | None = None,
        state: FirstState = "active",
        condition: Condition = ANY,
        creates: bool = False,
    ) -> tuple[RegisteredOperator, bool]:
        """Register an operator. A different document makes the next version, and an equal document changes nothing.

        Returns the operator after the call, and whether it changed. Without ``severity``, an operator keeps its
        severity, and a new operator gets ``medium``. The first ``state`` may be ``draft`` or ``paused``. A draft is
        only checked and stored, and a paused operator sees no events. With ``creates``, an error is raised if the
        operator exists.
        """
        reader = self._kinds[kind]
        declarations: dict[str, StreamDeclaration] = {}

        def stream(name: str) -> StreamDeclaration:
            declarations[name] = self._registry.stream(name)
            return declarations[name]

        feeds = self._registry.feeds_check()
        definition = reader.read(document, stream)
        self._check(reader, definition)
        draft = OperatorDraft(
            kind=kind,
            name=definition.name,
            inputs=definition.inputs,
            route=definition.inputs[0].key,
            body=definition.body,
            severity=severity,
            keeps=lambda body: reader.keeps(body, definition.body),
            state=state,
            condition=condition,
            creates=creates,
            into=_into(reader, definition),
            parts=self._parts(reader, definition),
        )
        first = definition.inputs[0].stream
        feeders = draft.record(first, 0, 0).feeders
        self._derivations.check_operator(kind, definition.name, feeders)
        self._derivations.declare_fed_by(first, draft)
        required = self._required(definition, feeders, feeds, declarations.values(), is_stored_only=state == "draft")
        draft = replace(draft, required=required)
        return self._registry.operators(kind).put(first, draft, self._clock.now_us())

    def _check(self, reader: DocumentKind, definition: Definition) -> None:
        self._derivations.check_input(definition)
        lookups = reader.lookups(definition)
        require_lookups(self._stores, lookups)
        if any(lookup.keys is None for lookup in lookups):
            reader.require_rows(definition, tables_for(self._stores, lookups))
        if not self._can_spill and reader.spills(definition):
            raise _no_folder(definition)

    def _required(
        self,
        definition: Definition,
        feeders: Sequence[OperatorPart],
        feeds: Checks,
        declarations: Collection[StreamDeclaration],
        *,
        is_stored_only: bool = False,
    ) -> Requirements:
        reader = self._kinds[definition.kind]

        def recheck() -> None:
            self._check(reader, definition)
            self._derivations.check_operator(definition.kind, definition.name, feeders)

        return Requirements(
            stores=self._stores,
            feeds=feeds,
            declarations=declarations,
            feeders=feeders,
            is_stored_only=is_stored_only,
            lookups=reader.lookups(definition),
            recheck=recheck,
        )

    def move(
        self, kind: str, name: str, action: Action, condition: Condition = ANY, *, stops: bool = False
    ) -> tuple[RegisteredOperator, bool]:
        """Activate, pause, resume or retire an operator, with effect on later log entries.

        A draft is activated only if it could be registered now. With ``stops``, a pause skips the backlog. Returns the
        operator, and whether it changed.
        """
        operators = self._registry.operators(kind)
        if action == "activate":
            feeds, record = self._registry.feeds_check(), operators.check_move(name, action, condition)
            if record.state == "draft":
                return operators.activate(record, self._activating(record, feeds), self._clock.now_us(), condition)
        return operators.move(name, action, condition, self._clock.now_us(), stops=stops)

    def _activating(self, draft: RegisteredOperator, feeds: Checks) -> Requirements:
        """Check a draft as ``put`` does, declare the streams that it feeds, and return its requirements."""
        read = draft.listens_to.difference(feeder.into for feeder in draft.feeders)
        declarations = [self._registry.stream(name) for name in sorted(read)]
        required = self._required(draft.definition, draft.feeders, feeds, declarations)
        required.recheck()
        self._derivations.declare_fed(draft.feeders)
        return required

    def explain(self, kind: str, name: str) -> OperatorExplanation:
        """Explain how an operator runs, with its current counts."""
        record, document_kind = self._registry.operators(kind).get(name), self._kinds[kind]
        reports = [
            shard.streams[record.stream]
            for shard in self._stores.pipeline_status.shards()
            if record.stream in shard.streams
        ]
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update({counter.removeprefix(f"{kind}_"): count for counter, count in report.operators.items()})
        figures, statistics = document_kind.figures(record.definition, counts)
        sentences = [*document_kind.explain(record.definition), _since(record), *figures]
        if document_kind.decider is not None and record.state == "active":
            decider_record = self._stores.deciders.get(record.stream, document_kind.decider.name)
            decisions = [(decision.at_us, decision.record) for decision in decider_record.decisions]
            sentences += document_kind.measured(record.definition, counts, decider_record.state, decisions)
        return OperatorExplanation(
            sentences=sentences,
            statistics=dict(statistics) or None,
            waiting=sum(report.waiting or 0 for report in reports),
        )

    def notices(self, record: RegisteredOperator) -> Sequence[str]:
        """Return notices about probable mistakes in an operator's document, such as members without effect."""
        kind = self._kinds[record.kind]
        notices = kind.notices(record.definition, self._registry.stream, self._has_constraints)
        return [*notices, *self._unfollowed([*kind.names_read(record.definition)])]

    def _unfollowed(self, names_read: Sequence[NameRead]) -> Iterator[str]:
        for stream in dict.fromkeys(read.stream for read in names_read if not read.path):
            record = self._registry.find_stream(stream)
            if record is not None and not record.declaration.derived:
                of_stream = [read for read in names_read if read.stream == stream]
                unfollowed = partial(unfollowed_names, of_stream, record.declaration, self._constraint_set(stream))
                if unfollowed(self._registry.event_types.all(stream)):
                    yield from unfollowed(known_types(self._stores, stream))

    def _has_constraints(self, stream: str) -> bool:
        return bool(self._constraint_set(stream).parts)

    def _constraint_set(self, stream: str) -> ConstraintSet:
        record = self._registry.constraints.find(stream)
        return ConstraintSet() if record is None else parse_constraints(record.document).constraint_set

    def remove(self, kind: str, name: str, condition: Condition = ANY) -> None:
        """Delete an operator and the inner streams between its inner operators. Its results are kept.

        If a deletion was interrupted, the next call completes it and then raises ``UnknownOperator``.
        """
        self._registry.operators(kind).remove(name, condition, self._remove_inner)

    def _remove_inner(self, deleted: RegisteredOperator) -> None:
        remove_inner(self._stores, {part.into for part in deleted.parts})

    def _parts(self, kind: DocumentKind, definition: Definition) -> tuple[OperatorPart, ...]:
        parts = []
        for part in kind.parts(definition, self._registry.stream):
            (source,) = part.inputs
            into = _into(KINDS_BY_NAME[part.kind], part)
            parts.append(
                OperatorPart(
                    kind=part.kind, name=part.name, stream=source.stream, key=source.key, into=into, body=part.body
                )
            )
        return tuple(parts)


def _since(record: RegisteredOperator) -> str:
    if record.state != "active":
        return f"It is {record.state}, and holds nothing."
    if not record.is_continued:
        return f"Version {record.version} began without state at {format_time(record.since_us)}."
    return (
        f"Version {record.version} runs since {format_time(record.registered_us)}. It has kept its state since version "
        f"{record.held_from}, which began without state at {format_time(record.since_us)}."
    )


def _no_folder(definition: Definition) -> OperatorRefused:
    return OperatorRefused(
        f"the {definition.kind} {definition.name!r} keeps a part of its state in files, and snapshots of this service "
        "are in Redis, so there is no folder for them: set FORESTALL_SNAPSHOTS to a folder that every machine reaches "
        "under the same path, or leave 'memory' out",
        field="memory",
    )


def _into(kind: Kind, definition: Definition) -> str:
    feed = kind.feed(definition)
    return "" if feed is None else feed.stream

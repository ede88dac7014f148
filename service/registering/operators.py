"""Operators of the kinds that are registered as documents, as use cases without HTTP: one life cycle for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.runtime import Stores
from service.stores import ANY, Action, Condition, OperatorDraft, RegisteredOperator, Severity
from shards import DOCUMENT_KINDS, DocumentKind
from streams import Clock


class OperatorLibrary:
    """The use cases.

    Args:
        stores: Where operators are registered.
        clock: Tells when.
        kinds: What can be registered.
    """

    def __init__(self, stores: Stores, clock: Clock, kinds: Sequence[DocumentKind] = DOCUMENT_KINDS) -> None:
        self._registry = stores.registry
        self._clock = clock
        self._kinds = {kind.name: kind for kind in kinds}
        self._by_plural = {kind.plural: kind.name for kind in kinds}

    def kind_of(self, plural: str) -> str | None:
        """The kind whose operators have a place of this name in the API."""
        return self._by_plural.get(plural)

    def put(
        self,
        kind: str,
        document: Mapping[str, Any],
        *,
        severity: Severity | None = None,
        is_draft: bool = False,
        condition: Condition = ANY,
    ) -> tuple[RegisteredOperator, bool]:
        """Register an operator; what says something else is its next version, the same again changes nothing.

        Args:
            kind: Name of its kind.
            document: What its kind reads.
            severity: Of its alerts; None: as before, and ``medium`` at first.
            is_draft: Whether it is only checked and written down.
            condition: On what is there.

        Returns:
            The operator as it is now, and whether it changed.

        Raises:
            OperatorRefused: The document does not describe one that can run.
            UnknownStream: A stream is not declared.
            OperatorOnOtherStream: The name is taken on another stream.
            WrongOperatorState: It is retired, or the draft is of one that runs already.
        """
        wanted = self._kinds[kind].read(document, self._registry.stream)
        draft = OperatorDraft(
            kind=kind,
            name=wanted.name,
            inputs=wanted.inputs,
            body=wanted.body,
            severity=severity,
            is_draft=is_draft,
            condition=condition,
        )
        first = wanted.inputs[0].stream
        return self._registry.operators(kind).put(first, draft, self._clock.now_us())

    def get(self, kind: str, name: str) -> RegisteredOperator:
        """One of a kind.

        Raises:
            UnknownOperator: There is none of that name.
        """
        return self._registry.operators(kind).get(name)

    def all(self, kind: str, stream: str | None = None) -> list[RegisteredOperator]:
        """All of a kind, by name, in whatever state they are."""
        return self._registry.operators(kind).all(stream)

    def versions(self, kind: str, name: str) -> list[RegisteredOperator]:
        """Every version that one has had, the current one last.

        Raises:
            UnknownOperator: There is none of that name.
        """
        return self._registry.operators(kind).versions(name)

    def move(self, kind: str, name: str, action: Action, condition: Condition = ANY) -> tuple[RegisteredOperator, bool]:
        """Lead one from its state to another, from this place of the log on.

        Returns:
            The operator as it is now, and whether it changed.

        Raises:
            UnknownOperator: There is none of that name.
            WrongOperatorState: The action does not begin in its state.
        """
        return self._registry.operators(kind).move(name, action, condition, self._clock.now_us())

    def remove(self, kind: str, name: str, condition: Condition = ANY) -> None:
        """Delete one; what it found stays.

        Raises:
            UnknownOperator: There is none of that name.
        """
        self._registry.operators(kind).remove(name, condition)

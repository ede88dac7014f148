"""Operators that are to be registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from service.stores.conditions import ANY, Condition
from service.stores.registry.registered import PATTERN, OperatorPart, RegisteredOperator
from service.stores.severities import Severity
from streams import Input, Start


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDraft:
    """An operator to be registered.

    Attributes:
        inputs: The streams and keys that it listens to; empty: the stream on which it is registered, by ``route``.
        route: Name of the further key of the first input; empty for the correlation key.
        severity: Of its alerts; None: as before, and ``medium`` at first.
        keeps: Whether it can continue with the state of an operator with another body.
        is_draft: Whether it is only stored, to run later.
        creates: Whether it may not replace another operator of its name.
    """

    kind: str
    name: str
    body: Mapping[str, Any]
    inputs: tuple[Input, ...] = ()
    route: str = ""
    severity: Severity | None = None
    keeps: Callable[[Mapping[str, Any]], bool] = lambda _: False
    start: Start = "fresh"
    is_draft: bool = False
    creates: bool = False
    condition: Condition = ANY
    into: str = ""
    parts: tuple[OperatorPart, ...] = ()

    def start_after(self, record: RegisteredOperator) -> Start:
        """The start after a running version: ``keep`` if the operator can continue with that version's state."""
        return "keep" if self.keeps(record.body) else self.start

    def is_registered_as(self, record: RegisteredOperator) -> bool:
        """Whether the operator is already registered with these members."""
        return (record.inputs, record.body, record.parts) == (self._sources(record.stream), self.body, self.parts)

    def _sources(self, stream: str) -> tuple[tuple[str, str], ...]:
        return tuple((source.stream, source.key) for source in self.inputs) or ((stream, self.route),)

    def record(self, stream: str, version: int, now_us: int) -> RegisteredOperator:
        """The record of a version."""
        return RegisteredOperator(
            kind=self.kind,
            name=self.name,
            stream=stream,
            version=version,
            is_active=True,
            registered_us=now_us,
            inputs=self._sources(stream),
            body=self.body,
            route=self.route,
            into=self.into,
            parts=self.parts,
        )


def pattern_draft(
    *,
    name: str,
    text: str,
    is_guarded: bool = True,
    start: Start = "fresh",
    quiet: Mapping[str, Any] = MappingProxyType({}),
    **members: Any,
) -> OperatorDraft:
    """A pattern to be registered.

    Partial matches of the version before are dropped (``start`` is ``fresh``), or completed by it (``migrate``).
    ``quiet``: the members ``suppress``, ``incident`` and ``resolves`` of its document. ``members``: further members of
    ``OperatorDraft``.
    """
    body = {"text": text, "is_guarded": is_guarded, **quiet}
    return OperatorDraft(kind=PATTERN, name=name, body=body, start=start, **members)

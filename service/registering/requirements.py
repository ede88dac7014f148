"""The stored records with which an operator was checked before it is registered, or before a draft is activated.

The script that stores the operator compares these records with the current ones, and refuses if any has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from service.errors import RegistryContended
from service.registering.tables import require_lookups
from service.runtime import Stores
from service.stores import Checks, OperatorPart
from streams import STREAMS_KEY, StreamDeclaration
from streams.tables import Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The declarations, constraint sets, tables and feeds with which an operator was checked.

    A call returns the records that must be unchanged when the operator is stored (``OperatorDraft.required``).

    Attributes:
        feeds: Result of ``Registry.feeds_check`` before the operator was checked.
        declarations: Declarations of the streams that the operator reads.
        documents: Document of the constraint set by stream, or None for a stream without a set.
        feeders: The operator and its inner operators that feed derived streams.
        is_stored_only: Whether the operator becomes a draft, whose fed streams need not be declared.
        recheck: Function that raises an error if the feeds or the rows of tables do not allow the operator.
    """

    stores: Stores
    feeds: Checks
    declarations: Collection[StreamDeclaration]
    documents: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    feeders: Collection[OperatorPart]
    is_stored_only: bool = False
    lookups: Collection[Lookup]
    recheck: Callable[[], object]

    def __call__(self) -> Checks:
        """Return the current records.

        They are read before they are compared, so that later changes are noticed. Raises ``RegistryContended`` if a
        stream has another declaration or constraint set, or if a fed stream accepts posted events or is removed.
        """
        registry, fed = self.stores.registry, self._fed()
        places = [
            *((STREAMS_KEY, stream) for stream in {*(declaration.name for declaration in self.declarations), *fed}),
            *((registry.constraints.key, stream) for stream in self.documents),
            *((self.stores.tables.key, table) for table in {lookup.table for lookup in self.lookups}),
        ]
        records = tuple(check for place in places for check in registry.check(*place))
        is_derived = bool(self.feeders) or any(declaration.derived for declaration in self.declarations)
        feeds = registry.feeds_check() if is_derived else self.feeds
        self._compare()
        targets = [self._target(stream) for stream in fed]
        require_lookups(self.stores, self.lookups)
        is_by_row = any(lookup.keys is None for lookup in self.lookups)
        if feeds != self.feeds or is_by_row or any(target.event_types for target in targets):
            self.recheck()
        return (*records, *feeds) if is_derived else records

    def _fed(self) -> set[str]:
        return set() if self.is_stored_only else {feeder.into for feeder in self.feeders}

    def _compare(self) -> None:
        registry = self.stores.registry
        for declaration in self.declarations:
            if registry.stream(declaration.name) != declaration:
                raise RegistryContended.over(f"the stream {declaration.name!r}")
        for stream, document in self.documents.items():
            rules = registry.constraints.find(stream)
            if (None if rules is None else rules.document) != document:
                raise RegistryContended.over(f"the constraint set of {stream!r}")

    def _target(self, stream: str) -> StreamDeclaration:
        target = self.stores.registry.find_stream(stream)
        if target is None or not target.declaration.derived:
            raise RegistryContended.over(f"the stream {stream!r}")
        return target.declaration

"""The stored records of streams and tables with which the registration of an operator was checked.

The script that stores the operator compares these records with the current ones, and refuses if any has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from service.errors import RegistryContended
from service.registering.tables import require_lookups
from service.runtime import Stores
from service.stores import Checks, OperatorDraft
from streams import STREAMS_KEY, StreamDeclaration
from streams.tables import Lookup


def requirements(
    stores: Stores, declarations: Collection[StreamDeclaration], draft: OperatorDraft, lookups: Collection[Lookup]
) -> Callable[[], Checks]:
    """Return the value of ``OperatorDraft.required``: a function that reads the records with which a draft was checked.

    The draft was checked with ``declarations`` and with the tables of ``lookups``. The streams that the operator feeds
    must be declared, unless the draft is only stored.
    """
    first = draft.inputs[0].stream if draft.inputs else next(iter(declarations)).name
    fed = () if draft.state == "draft" else {feeder.into for feeder in draft.record(first, 0, 0).feeders}
    return partial(_checks, stores, declarations, fed, lookups)


def _checks(
    stores: Stores, declarations: Iterable[StreamDeclaration], fed: Iterable[str], lookups: Collection[Lookup]
) -> Checks:
    """Return the current records of the streams and tables with which an operator was checked.

    The records are read before they are compared, so that later changes are noticed. Raises ``RegistryContended`` if a
    stream has another declaration, or if a fed stream accepts posted events or is removed.
    """
    registry = stores.registry
    places = [
        *((STREAMS_KEY, stream) for stream in {*(declaration.name for declaration in declarations), *fed}),
        *((stores.tables.key, table) for table in {lookup.table for lookup in lookups}),
    ]
    records = tuple((*place, registry.body(*place) or b"") for place in places)
    for declaration in declarations:
        if registry.stream(declaration.name) != declaration:
            raise RegistryContended.over(f"the stream {declaration.name!r}")
    for stream in fed:
        target = registry.find_stream(stream)
        if target is None or not target.declaration.derived:
            raise RegistryContended.over(f"the stream {stream!r}")
    require_lookups(stores, lookups)
    return records

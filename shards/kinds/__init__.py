"""The kinds of operators that there are."""

from collections.abc import Mapping

from shards.kinds.patterns import PatternKind
from shards.operators import Kind

KINDS: tuple[Kind, ...] = (PatternKind(),)

KINDS_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

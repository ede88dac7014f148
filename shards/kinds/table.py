"""Every kind of operator."""

from __future__ import annotations

from collections.abc import Mapping

from shards.kinds.patterns import PatternKind
from shards.operators import DocumentKind, Kind

KINDS: tuple[Kind, ...] = (PatternKind(),)

DOCUMENT_KINDS: tuple[DocumentKind, ...] = tuple(kind for kind in KINDS if isinstance(kind, DocumentKind))

KINDS_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

"""Preconditions of changes, for example that a record is unchanged since the client read it (If-Match).

A condition is checked against the same record that the change replaces, so no other change can happen in between.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import orjson

from service.errors import PreconditionFailed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ANY_TAG = "*"

_TAG_BYTES = 12


@runtime_checkable
class Tagged(Protocol):
    """A record whose entity tag is computed from the members that ``tagged`` returns."""

    def tagged(self) -> dict[str, Any]: ...


Record: TypeAlias = "DataclassInstance | Tagged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The precondition of a change, which the entity tag of the stored record must meet.

    The tag must be in ``matches`` (If-Match), unless ``matches`` is None. The tag must not be in ``none_matches``
    (If-None-Match). In both, ``*`` matches the tag of any record.
    """

    matches: tuple[str, ...] | None = None
    none_matches: tuple[str, ...] | None = None

    def check(self, tag: str | None) -> None:
        """Raise ``PreconditionFailed`` if the tag of the stored record does not meet the condition.

        ``tag`` is None if there is no record.
        """
        if self.matches is not None and (tag is None or not {ANY_TAG, tag} & set(self.matches)):
            raise PreconditionFailed(
                "the stored version is not the one that was read (If-Match): "
                + ("there is nothing" if tag is None else f'its ETag is "{tag}" now; read it again'),
                etag=tag,
            )
        if self.none_matches is not None and tag is not None and {ANY_TAG, tag} & set(self.none_matches):
            raise PreconditionFailed(f'it exists already (If-None-Match), with the ETag "{tag}"', etag=tag)

    def check_record(self, record: Record | None) -> None:
        """Raise ``PreconditionFailed`` if the stored record does not meet the condition.

        ``record`` is None if there is no record.
        """
        if self != ANY:
            self.check(None if record is None else tag_of(record))


ANY = Condition()


def tag_of(record: Record) -> str:
    """Return the entity tag of a record.

    If the record has a member ``tag``, return it. Otherwise return a digest of the record's members.
    """
    if (tag := getattr(record, "tag", None)) is not None:
        return str(tag)
    fields = record.tagged() if isinstance(record, Tagged) else asdict(record)
    return blake2b(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS), digest_size=_TAG_BYTES).hexdigest()

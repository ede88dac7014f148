"""Conditions on changes: what was read must still be there, or nothing must be there yet.

A condition is checked against the very record that a change replaces, so between check and change nobody comes in.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from service.errors import PreconditionFailed

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ANY_TAG = "*"

_TAG_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What has to hold for a change.

    Attributes:
        matches: What is there has one of these tags; ``*``: it is there at all. None: whatever it is.
        none_matches: What is there has none of these tags; ``*``: nothing is there.
    """

    matches: tuple[str, ...] | None = None
    none_matches: tuple[str, ...] | None = None

    def check(self, tag: str | None) -> None:
        """Check the tag of what is there; None where nothing is.

        Raises:
            PreconditionFailed: It does not hold.
        """
        if self.matches is not None and (tag is None or not {ANY_TAG, tag} & set(self.matches)):
            raise PreconditionFailed(
                "the stored version is not the one that was read (If-Match): "
                + ("there is nothing" if tag is None else f'its ETag is "{tag}" now; read it again'),
                etag=tag,
            )
        if self.none_matches is not None and tag is not None and {ANY_TAG, tag} & set(self.none_matches):
            raise PreconditionFailed(f'it exists already (If-None-Match), with the ETag "{tag}"', etag=tag)

    def check_record(self, record: DataclassInstance | None) -> None:
        """Check a record; None where there is none.

        Raises:
            PreconditionFailed: It does not hold.
        """
        if self != ANY:
            self.check(None if record is None else tag_of(record))


ANY = Condition()


def tag_of(record: DataclassInstance) -> str:
    """Tells a record from every other state of it."""
    fields: dict[str, Any] = asdict(record)
    return blake2b(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS), digest_size=_TAG_BYTES).hexdigest()

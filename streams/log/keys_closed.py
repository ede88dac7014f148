"""The control record by which a decider closes keys of an operator's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from streams.key_ranges import GREATEST_NUMBER, LEAST_NUMBER
from streams.log.members import Members
from streams.log.records import RecordKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedKeys:
    """The keys that an input finishes.

    Attributes:
        to: The input's closing key: no event with a key up to this one and a time after ``time_us`` is expected. None:
            the input's keys have begun again, so finished keys may come again.
        seen: The basis of the decision, for people.
    """

    input: str
    to: int | None
    time_us: int
    seen: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The finished keys as plain JSON."""
        return {"input": self.input, "to": self.to, "time": self.time_us, "seen": self.seen}


@dataclass(frozen=True, slots=True)
class KeysClosed:
    """Inputs of an operator finish keys; decided from the observations of all shards.

    The record belongs to the stream of the operator. ``refused`` says why the operator cannot continue, because it
    would hold more than it may; None: it can.
    """

    KIND: ClassVar[RecordKind] = RecordKind.KEYS_CLOSED

    closed: tuple[ClosedKeys, ...]
    refused: str | None = None

    def to_json(self) -> dict[str, Any]:
        refused = {} if self.refused is None else {"refused": self.refused}
        return {"closed": [one.to_json() for one in self.closed], **refused}

    @classmethod
    def from_json(cls, members: Members) -> Self:
        found = members.get("closed")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise members.error("closed", f"closed is {found!r}; it must be a list of objects")
        closed = tuple(_closed(Members(cls.KIND, one)) for one in found)
        return cls(closed, members.text("refused") if "refused" in members else None)


def _closed(members: Members) -> ClosedKeys:
    to, time_us = members.get("to"), members.time_us("time")
    is_whole = isinstance(to, int) and not isinstance(to, bool) and LEAST_NUMBER <= to <= GREATEST_NUMBER
    if to is not None and not is_whole:
        raise members.error("to", f"to is {to!r}; it must be a whole number of 64 bits, or null")
    if time_us is None:
        raise members.error("time", "time is None; it must be microseconds UTC")
    seen = members.json_object("seen") if "seen" in members else {}
    return ClosedKeys(input=members.text("input"), to=to, time_us=time_us, seen=seen)

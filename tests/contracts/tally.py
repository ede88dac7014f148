"""A kind of operator as small as one can be: every n-th event of a key is a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shards.errors import OperatorRefused
from shards.hosts.keyed_host import KeyedHost, KeyedOperator
from shards.operators import DocumentKind, Result, SavedHost
from shards.results import ResultKind, ResultMetric
from shards.rows import row_id
from streams import Definition, Event, Input, StreamDeclaration

TALLY = ResultKind(
    name="tally",
    plural="tallies",
    title="tallies",
    subject="tally",
    counted_by=("stream", "tally"),
    delivered_as="tally.reached",
    members=frozenset(("type", "id", "stream", "tally", "key", "n")),
    in_backtests="listed",
    metric=ResultMetric(name="tallies", meaning="Tallies that were reached.", labels=("stream", "tally")),
)


class Tally(KeyedOperator[int]):
    """Counts the events of each key; a key whose count is complete begins again."""

    def take(self, event: Event, state: int | None) -> tuple[int | None, Iterable[Result]]:
        count = (state or 0) + 1
        if count < self.definition.body["every"]:
            return count, ()
        (source,), name, number = self.definition.inputs, self.definition.name, int(event.id.removeprefix("e"))
        identity = row_id(TALLY, source.stream, name, event.key, number)
        body = {"type": TALLY.delivered_as, "id": identity, "stream": source.stream, "tally": name}
        return None, [(TALLY, identity, {**body, "key": event.key, "n": number})]


@dataclass(frozen=True)
class TallyKind(DocumentKind):
    name: ClassVar[str] = "tally"
    plural: ClassVar[str] = "tallies"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = (TALLY,)
    exercise: ClassVar[str] = "tests.contracts.tally:counted"
    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"stream": {"type": "string"}, "every": {"type": "integer", "minimum": 1}},
        "required": ["stream", "every"],
    }

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        unknown = sorted(document.keys() - {"name", "stream", "every"})
        every = document.get("every")
        if unknown or not isinstance(every, int) or every < 1:
            raise OperatorRefused(f"a tally has 'every', a number from 1, and not {unknown or every!r}")
        if "stream" not in document:
            raise OperatorRefused("a tally has 'stream', what it listens to")
        source, body = Input(declared(document["stream"]).name), {"every": every}
        return Definition(kind=self.name, name=document["name"], version=0, inputs=(source,), body=body)

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> KeyedHost:
        return KeyedHost(self.name, declaration, route, Tally, saved)


def counted() -> None:
    """The exercise of the kind, which has no kernels."""
    TallyKind().host(StreamDeclaration(name="orders"), "").finish()

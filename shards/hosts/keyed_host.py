"""The host of kinds whose operators are independent of each other.

A kind implements ``KeyedOperator``, which has one state per key, or ``Operator``, which manages its keys itself. The
host starts, stops, saves and loads operators, ends traces, and divides states when shards are divided.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import orjson

from shards.blob import sections_below
from shards.hosts.trace_ends import TraceEnds
from shards.operators import NO_OUTPUT, Host, KeyChoice, Observation, Origin, Output, Result, Running, SavedHost
from streams import (
    ControlRecordError,
    Definition,
    Event,
    EventBatch,
    Input,
    KeysClosed,
    Punctuation,
    Start,
    StreamDeclaration,
    key_hash,
)
from streams.tables import Tables

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Results(Output):
    """An output whose results are complete already. They do not depend on the position of the input in the log."""

    found: Iterable[Result]

    def results(self, origin: Origin) -> Iterator[Result]:
        return iter(self.found)


@dataclass(frozen=True, slots=True)
class Outputs(Output):
    """The outputs of several operators, in order."""

    parts: tuple[Output, ...]

    def results(self, origin: Origin) -> Iterator[Result]:
        for part in self.parts:
            yield from part.results(origin)

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        for part in self.parts:
            yield from part.derived()


class Operator(Running):
    """A running operator at one place of a shard.

    The host updates ``declaration`` when the stream is declared again.
    """

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        self.definition, self.declaration = definition, declaration

    def continue_as(self, definition: Definition) -> Output | None:
        """Switch to another version of the operator, keep the present state, and return the output of the change.

        Return None if the other version cannot use the state. The host then starts it without state.
        """
        return None

    @abstractmethod
    def load(self, saved: SavedHost) -> None:
        """Restore the state that ``dump`` returned. Raise an error if the state cannot be read."""

    def use_tables(self, tables: Tables) -> None:
        """Let lookups in reference tables read ``tables`` from now on."""

    def answer(self, question: Mapping[str, Any], until_us: int | None) -> Mapping[str, Any]:
        """Answer a user's question about the operator's state as plain JSON. The state does not change.

        ``until_us`` is the event time that the stream has reached in all shards. It is None if this time is unknown.
        """
        raise ControlRecordError(f"operators such as {self.definition.name!r} answer no questions")


class KeyedOperator(Operator, Generic[State]):
    """An operator with one state per key, as plain JSON. When the trace of a key ends, its state is dropped."""

    def __init__(self, definition: Definition, declaration: StreamDeclaration) -> None:
        super().__init__(definition, declaration)
        self._states: dict[int, State] = {}  # by hashed key

    @abstractmethod
    def take(self, event: Event, state: State | None) -> tuple[State | None, Iterable[Result]]:
        """Process an event, and return the new state of its key and the results.

        ``state`` is the state of the key so far. It is None if the key has none.
        """

    def process(self, batch: EventBatch) -> Output:
        """Process events one by one with ``take``, and return the results.

        An end event of the stream ends the trace of its key.
        """
        all_results: list[Result] = []
        is_ended = batch.is_ended
        events = iter(batch.take(np.flatnonzero(~is_ended)).to_events())
        for key, ends in zip(batch.key_hashes.tolist(), is_ended.tolist(), strict=True):
            state = self._states.pop(key, None)
            if ends:
                continue
            event = next(events)
            state, results = self.take(event, state)
            all_results += results
            if state is not None and event.type not in self.declaration.end_events:
                self._states[key] = state
        return Results(all_results)

    def advance_time(self, watermark_us: int) -> Output:
        return NO_OUTPUT

    def end_trace(self, key: str, time_us: int | None) -> Output:
        self._states.pop(key_hash(key), None)
        return NO_OUTPUT

    def finish(self) -> Output:
        self._states.clear()
        return NO_OUTPUT

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        stays = is_kept(np.fromiter(self._states, np.uint64, len(self._states))).tolist()
        self._states = {key: state for (key, state), stay in zip(self._states.items(), stays, strict=True) if stay}

    def measures(self) -> Mapping[str, int]:
        return {"keys": len(self._states)}

    def dump(self) -> SavedHost:
        return SavedHost(head={}, sections={"states": orjson.dumps([*self._states.items()])})

    def load(self, saved: SavedHost) -> None:
        self._states = dict(orjson.loads(saved.sections["states"]))


class KeyedHost(Host):
    """Host of operators that run independently of each other. ``operator`` is the function that creates an operator."""

    has_traces: ClassVar[bool] = True
    """Whether operators need the traces of the stream."""
    saved_as: ClassVar[str] = "operators"
    """The name of the operators in the saved state."""
    newest_us: int | None = None

    def __init__(
        self,
        kind: str,
        declaration: StreamDeclaration,
        route: str,
        operator: Callable[[Definition, StreamDeclaration], Operator],
        saved: SavedHost | None = None,
    ) -> None:
        self._kind, self._declaration, self._route, self._operator = kind, declaration, route, operator
        self._operators: dict[str, Operator] = {}
        self._tables = Tables()
        self._changes: tuple[Output, ...] = ()  # outputs of ``continue_as``, until ``started`` returns them
        sections = {} if saved is None else saved.sections
        for number, (name, version, text, head) in enumerate(() if saved is None else saved.head[self.saved_as]):
            source = (Input(declaration.name, route),)
            definition = Definition(kind=kind, name=name, version=version, inputs=source, body=orjson.loads(text))
            restored = operator(definition, declaration)
            restored.load(SavedHost(head=head, sections=sections_below(sections, str(number))))
            self._operators[name] = restored
        if saved is not None:
            self.newest_us = saved.head["newest_us"]
        self._traces = (
            TraceEnds(declaration, sections_below(sections, "traces")) if self.has_traces and not route else None
        )

    @property
    def names(self) -> Collection[str]:
        return self._operators.keys()

    @property
    def waits_for_time(self) -> bool:
        return any(operator.waits_for_time for operator in self._operators.values())

    @property
    def is_decided_by_end(self) -> bool:
        return any(operator.is_decided_by_end for operator in self._operators.values())

    def start(self, definition: Definition, start: Start) -> None:
        """Start an operator, or a new version of it.

        If ``start`` is ``keep``, a new version continues with the state of the old version, provided that it can use
        this state. Otherwise it starts without state.
        """
        running = self._operators.get(definition.name)
        if running is not None and running.definition.version == definition.version:
            return
        if start == "keep" and running is not None and (change := running.continue_as(definition)) is not None:
            self._changes = (*self._changes, change)
            return
        self._operators[definition.name] = self._operator(definition, self._declaration)
        self._operators[definition.name].use_tables(self._tables)

    def started(self) -> Output:
        output, self._changes = Outputs(self._changes), ()
        return output

    def stop(self, name: str) -> None:
        if name not in self._operators:
            raise ControlRecordError(f"no {self._kind} {name!r} runs on the stream {self._declaration.name!r}")
        del self._operators[name]

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply a changed declaration, end traces that exceed its idle timeout, and return the operators' outputs."""
        self._declaration = declaration
        for operator in self._operators.values():
            operator.declaration = declaration
        if self._traces is None:
            return NO_OUTPUT
        self._traces.declare(declaration)
        return NO_OUTPUT if self.newest_us is None else self._ended(self.newest_us)

    def use_tables(self, tables: Tables) -> None:
        self._tables = tables
        for operator in self._operators.values():
            operator.use_tables(tables)

    def process(self, batch: EventBatch) -> Output:
        if not len(batch):
            return NO_OUTPUT
        newest_us = self.newest_us
        self._see(int(batch.time_us.max()))
        if self._traces is not None:
            batch, _ = self._traces.marked(batch, newest_us)
        return self._all(lambda operator: operator.process(batch))

    def advance_time(self, watermark_us: int) -> Output:
        """Advance event time, and return the outputs of the operators.

        Idle traces end first, each at its own time, and then every operator receives the watermark.
        """
        self._see(watermark_us)
        ended = self._ended(watermark_us)
        passed = self._all(lambda operator: operator.advance_time(watermark_us))
        return Outputs((ended, passed)) if self._traces is not None else passed

    def end_trace(self, key: str, time_us: int | None) -> Output:
        if self._traces is None:
            return NO_OUTPUT
        self._traces.end(key)
        return self._all(lambda operator: operator.end_trace(key, time_us))

    def finish_keys(self, promise: Punctuation) -> Output:
        return self._all(lambda operator: operator.finish_keys(promise))

    def close_keys(self, record: KeysClosed) -> EventBatch | None:
        batches = [batch for operator in self._operators.values() if (batch := operator.close_keys(record)) is not None]
        return EventBatch.joined(batches) if batches else None

    def finish(self) -> Output:
        return self._all(lambda operator: operator.finish())

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        for operator in self._operators.values():
            operator.keep(is_kept, has_counts=has_counts)
        if self._traces is not None:
            self._traces.keep(is_kept)

    def measures(self) -> Mapping[str, int]:
        sums: dict[str, int] = {}
        for operator in self._operators.values():
            for name, number in operator.measures().items():
                sums[name] = sums.get(name, 0) + number
        return sums

    def observed(self) -> Iterator[Observation]:
        for operator in self._operators.values():
            yield from operator.observed()

    @property
    def files(self) -> Collection[str]:
        return [name for operator in self._operators.values() for name in operator.files]

    def verify(self) -> None:
        for operator in self._operators.values():
            operator.verify()

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Pass the question to the operator that it names, and return the answer."""
        operator = self._operators.get(question["name"])
        if operator is None:
            raise ControlRecordError(f"no {self._kind} {question['name']!r} runs on {self._declaration.name!r} here")
        return operator.answer(question["question"], question.get("until_us"))

    def dump(self) -> SavedHost:
        """Save the definitions and the states of all operators.

        The body of a definition is saved as JSON text, which keeps the order of its members.
        """
        saved = [operator.dump() for operator in self._operators.values()]
        operators: list[Any] = [
            [name, operator.definition.version, orjson.dumps(operator.definition.body).decode(), dict(state.head)]
            for (name, operator), state in zip(self._operators.items(), saved, strict=True)
        ]
        sections = {
            f"{number}/{part}": body for number, state in enumerate(saved) for part, body in state.sections.items()
        }
        traces = {} if self._traces is None else self._traces.dump()
        sections |= {f"traces/{part}": body for part, body in traces.items()}
        return SavedHost(head={self.saved_as: operators, "newest_us": self.newest_us}, sections=sections)

    def _see(self, time_us: int) -> None:
        self.newest_us = time_us if self.newest_us is None else max(self.newest_us, time_us)

    def _ended(self, now_us: int) -> Output:
        ended = None if self._traces is None else self._traces.pass_time(now_us)
        return NO_OUTPUT if ended is None else self._all(lambda operator: operator.process(ended))

    def _all(self, step: Callable[[Operator], Output]) -> Output:
        return Outputs(tuple(step(operator) for operator in self._operators.values()))

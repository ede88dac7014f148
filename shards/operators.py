"""The contract between a shard and its operators.

A shard does not know any kind of operator. It passes the events that arrive at a place to the hosts of the place, and
asks their outputs for results. A host runs all operators of one kind at one place; a kind creates and loads hosts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shards.entries import Entry
from shards.errors import OperatorSuspended, ShardError
from shards.feeds import Feed
from shards.results import ResultKind
from shards.rows import ResultRows
from streams import (
    ConstraintsOn,
    ControlRecord,
    ControlRecordError,
    Definition,
    EventBatch,
    KeysClosed,
    Punctuation,
    SpilledFiles,
    Start,
    StreamDeclaration,
)
from streams.tables import Lookup, Tables

LATENESS = "lateness"
"""The name of the decider that measures the lateness of a stream with ``lateness: auto``."""

Single: TypeAlias = tuple[ResultKind, str, dict[str, Any]]
Result: TypeAlias = Single | ResultRows
"""One result (kind, id and JSON object), or many results of one kind as columns."""

Likeness: TypeAlias = Literal["bindings", "events"]
"""How alerts of a key are compared: equal alerts bind the same events to the same aliases, or to any aliases."""

KeyChoice: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
"""A predicate over hashed keys; True for keys that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The position in the log that caused results.

    Attributes:
        newest: For each per-key matcher, at most this many of the newest early terminations are reported one by one;
            the rest are counted by reason. None: all are reported.
    """

    shard: int
    entry: Entry
    newest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A summary of the events that a shard processed in a step, for a decider.

    Attributes:
        decider: Name of the decider: a key of ``DECIDERS``, followed by ``/`` and a suffix if a stream has several
            deciders of this kind.
        summary: Plain JSON of bounded size for the decider. The member ``shard`` is added to it.
    """

    stream: str
    decider: str
    summary: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Observation:
        return cls(stream=value["stream"], decider=value["decider"], summary=value["summary"])


class Decider(Protocol):
    """Makes decisions about a stream. Missing or repeated observations may change a decision, but never a result."""

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Merge the summaries that shards returned in one step, in any order."""
        ...

    def decide(self) -> ControlRecord | None:
        """Return the next decision, or None if nothing changes. The decider treats a returned decision as made."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain JSON of bounded size."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderKind:
    """A kind of decider. ``load`` restores a decider from the JSON of ``to_json``, or creates a decider from None."""

    name: str
    load: Callable[[Mapping[str, Any] | None], Decider]


Decided: TypeAlias = tuple[int, Mapping[str, Any]]
"""A decision: its time in microseconds UTC, and the members of its control record."""


class Output:
    """A host's output for a batch, or for an advance of time; empty by default."""

    __slots__ = ()

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield results in a fixed order. The id of a result depends only on its content."""
        return iter(())

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Yield events of derived streams that keep the keys of their sources, in the order in which they were made.

        There is at most one batch per stream. The boundaries of source batches change neither the events nor their
        order. A row of the type ``streams.ENDED`` is not an event, but marks the end of the trace of its key. Each
        derived event is also a result of the kind ``derived``. A derived event with another key is a result only.
        """
        return iter(())

    def events_of(self, results: str, event_type: str) -> EventBatch | None:
        """Return results of one kind (``ResultKind.plural``) as events of a type, in the order in which they were made.

        The boundaries of source batches change neither the events nor their order. None: there are no such results.
        """
        return None


NO_OUTPUT = Output()


Renderer: TypeAlias = Callable[[Output, Origin], Iterable[Result]]
"""A function that makes the results of an output, as ``Output.results`` does."""


def own_results(output: Output, origin: Origin) -> Iterable[Result]:
    """Return the results that an output makes itself; this is the default renderer."""
    return output.results(origin)


def no_results(output: Output, origin: Origin) -> Iterable[Result]:
    """Return no results; a renderer for callers that need only the state."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedHost:
    """The saved state of a host."""

    head: Mapping[str, Any]
    sections: Mapping[str, bytes]


class Traces(NamedTuple):
    """The open traces and constraints of a stream, from a host that has followed the stream since its declaration.

    Attributes:
        followed: The constraints of traces that begin now; None: there are none.
        open_keys: Returns the hashed keys of the open traces, in any order.
    """

    followed: ConstraintsOn | None
    open_keys: Callable[[], NDArray[np.uint64]]


class Running(ABC):
    """The common interface of hosts and single operators (``shards.hosts.keyed_host``).

    The state is a function of the calls. The boundaries of batches change no result. Methods that only few kinds need
    have a default: no output, no counts.
    """

    __slots__ = ()

    @property
    def waits_for_time(self) -> bool:
        """Whether passing time decides any result, now or after a later event."""
        return False

    @property
    def is_decided_by_end(self) -> bool:
        """Whether results at the end of a finite input depend on the event time that the input has reached."""
        return self.waits_for_time

    @abstractmethod
    def process(self, batch: EventBatch) -> Output:
        """Process events in the order of the log, or in the order of time if the place sorts events."""

    @abstractmethod
    def advance_time(self, watermark_us: int) -> Output:
        """Advance event time: no event older than the watermark will follow."""

    def end_trace(self, key: str, time_us: int | None) -> Output:
        """End the trace of a key, at the newest time or an earlier one. No event of this trace will follow."""
        return NO_OUTPUT

    def finish_keys(self, promise: Punctuation) -> Output:
        """Finish a range of keys: no event with such a key and a time after that of the promise will follow."""
        return NO_OUTPUT

    def hear(self, output: Output) -> Output:
        """Process the output of another host at the same place, before any host at the place is called again."""
        return NO_OUTPUT

    def close_keys(self, record: KeysClosed) -> EventBatch | None:
        """Return events that finish the keys that a decider has closed; None if the record does not concern this host.

        The place then processes these events like others and advances time. The output is that of these calls.
        """
        return None

    def finish(self) -> Output:
        """End a finite input: no event will follow."""
        return NO_OUTPUT

    @abstractmethod
    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Keep the state of the chosen keys, and drop all other state as if its events had been in another shard.

        ``has_counts``: whether counts are kept; otherwise they restart from 0.
        """

    def measures(self) -> Mapping[str, int]:
        """Return counts for monitoring."""
        return {}

    def observed(self) -> Iterator[Observation]:
        """Return the observations since the last call, for deciders (``shards.deciding``).

        They are small and never saved.
        """
        return iter(())

    @property
    def files(self) -> Collection[str]:
        """Names of the files that store a part of the state. The result of ``dump`` names them, too."""
        return ()

    def verify(self) -> None:
        """Verify the checksums of ``files``; raises ``StateLost`` if a file is missing or damaged."""

    @abstractmethod
    def dump(self) -> SavedHost:
        """Return the whole state, for a snapshot or a handover."""


class Host(Running):
    """All operators of one kind at one place of a shard."""

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """The names of the running operators."""

    @property
    @abstractmethod
    def newest_us(self) -> int | None:
        """The event time that the host has reached; None before the first event."""

    @abstractmethod
    def start(self, definition: Definition, start: Start) -> None:
        """Start an operator. If this version already runs, it continues. A refused operator changes nothing."""

    def started(self) -> Output:
        """Return the output that the last ``start`` caused. Called after ``start``, at the same position of the log."""
        return NO_OUTPUT

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Receive the open traces of the stream, which may be older than the host. Called after ``start``.

        The arguments are those of ``Traces``.
        """

    @abstractmethod
    def stop(self, name: str) -> None:
        """Stop an operator and drop its unfinished work; refused if no such operator runs."""

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply a changed declaration, which may end open traces.

        Only ``streams.CHANGEABLE`` members differ. The place handles those that concern the order of events.
        """
        return NO_OUTPUT

    def follow(self, record: ConstraintsOn) -> None:
        """Apply constraints to traces that begin later. Refused constraints change nothing."""

    def read_tables(self, tables: Tables) -> None:
        """Set the tables for results that passing time decides.

        For results that events decide, a batch has its tables.
        """

    @property
    def traces(self) -> Traces | None:
        """The traces that the host has followed since the stream was declared; None if it follows no traces."""
        return None

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a question about the current state as plain JSON, without changing it; unknown questions are refused.

        Question and state bound the size of an answer and the work for it; past events do not matter.
        """
        raise ControlRecordError("operators of this kind answer no questions")


class Kind(ABC):
    """A kind of operator.

    Attributes:
        name: The name in definitions and in saved state; it never changes.
        result_kinds: Results of the operators besides dead letters; their names are distinct among all kinds.
        letters: Errors whose dead letters a run lists with its results; other dead letters are only counted.
        suspended: The error that ends a run in which an operator was suspended.
        is_final: Whether events that its operators derive are never retracted.
        is_resident: Whether every stream has a host of this kind from its declaration on, so that the host follows all
            traces.
        is_counted: Whether the counts of its hosts are exported as metrics.
        exercise: The exercise that compiles all kernels of its hosts (``streams.compiling``); empty: no kernels.
        hears: The kind whose results its operators read (``Host.hear``); empty: none.
    """

    name: ClassVar[str]
    hears: ClassVar[str] = ""
    result_kinds: ClassVar[tuple[ResultKind, ...]] = ()
    letters: ClassVar[tuple[type[ShardError], ...]] = ()
    suspended: ClassVar[type[OperatorSuspended]] = OperatorSuspended
    is_final: ClassVar[bool] = False
    is_resident: ClassVar[bool] = False
    is_counted: ClassVar[bool] = False
    exercise: ClassVar[str] = ""

    def feed(self, definition: Definition) -> Feed | None:
        """Return the derived stream that an operator feeds, or None. May refuse the operator."""
        return None

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        """Return the lookups in reference tables of an operator."""
        return ()

    def require_rows(self, definition: Definition, tables: Tables) -> None:
        """Refuse an operator that runs for each row of a table if the table in ``tables`` has too many rows."""

    @abstractmethod
    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """Create a host without operators, or load the saved one; refused if the saved state cannot be read."""

    def exercise_for(
        self, definitions: Sequence[Definition], declaration: StreamDeclaration, constraints: Mapping[str, Any] | None
    ) -> str:
        """Return an exercise that compiles the kernels of these operators at one place only; by default ``exercise``.

        ``constraints``: the document of the traces' constraints; None: there are none.
        """
        return self.exercise

    def is_observed(self, definition: Definition) -> bool:
        """Return whether a decider observes an operator.

        If so, a run over past events decides before its first round.
        """
        return False

    def likeness(self, first: Definition, other: Definition) -> Likeness:
        """Return how alerts of two operators over equal events are compared.

        Raises ``RoundsImpossible`` if their alerts cannot be compared.
        """
        return "bindings"

    def finishes_range(self, definition: Definition, by: str, declaration: StreamDeclaration) -> bool:
        """Return whether a punctuation with a range of ``by`` finishes keys in an operator or in one of its parts."""
        return False

    def silenced(self, definition: Definition) -> Definition:
        """Return the operator for a later round that runs it again, without results under another operator's name."""
        return definition

    def spilling_to(self, files: SpilledFiles) -> Kind:
        """Return the same kind with a store for the files of its hosts."""
        return self

    def spills(self, definition: Definition) -> bool:
        """Return whether an operator may store a part of its state in files."""
        return False


class DocumentKind(Kind):
    """A kind whose operators are registered as JSON documents.

    The API serves the kind under ``/v1/<plural>``, the command line under ``forestall <plural>``.

    Attributes:
        plural: The plural of the kind's name, as a part of a path.
        usual: Default values of the kind's own members, as the service's answers contain them.
        passing: Own members that concern a registration only; answers do not contain them.
        holds: What an operator keeps or drops when it is replaced, in words; empty: not mentioned.
        has_own_resource: Whether API and command line have operations written for this kind, in place of the generic
            ones.
        decider: The kind of decider for the streams of its operators; None: nothing is decided.
        is_asked: Whether its operators answer questions at any time (``check_question``, ``answer_of``).
        is_plotted: Whether their derived events are values of groups over time (``plotted``).
    """

    is_counted: ClassVar[bool] = True
    plural: ClassVar[str]
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    passing: ClassVar[frozenset[str]] = frozenset()
    holds: ClassVar[str] = "state"
    has_own_resource: ClassVar[bool] = False
    decider: ClassVar[DeciderKind | None] = None
    is_asked: ClassVar[bool] = False
    is_plotted: ClassVar[bool] = False

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the kind's own members. A project may store the member ``text`` in a separate file."""

    def answered(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the members of a document as the service's answers contain them."""
        return document

    def check(self, document: Mapping[str, Any]) -> None:
        """Refuse a document with invalid members, as far as this is cheap and needs no streams."""

    @abstractmethod
    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        """Read the operator that a document describes, as version 0.

        Args:
            document: The members of the document, without those common to all kinds (``state``, ``severity``).
            declared: Looks up the declaration of a stream by name; may raise.

        Raises:
            OperatorRefused: The document does not have the form, or the operator cannot run on its streams.
            ForestallError: A stream is not declared.
        """

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """Return the further operators that an operator needs, each with one input. Lists do not show them.

        ``declared``: looks up the declaration of a stream by name; may raise.
        """
        return ()

    def final_input(self, definition: Definition) -> tuple[str, str]:
        """Return the stream whose events must never be retracted, and the member that requires this.

        Both are empty if the operator accepts retractions.
        """
        return "", ""

    def keeps(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Return whether an operator can switch to another body and keep its state (``start: keep``)."""
        return False

    def explain(self, definition: Definition) -> Sequence[str]:
        """Return sentences about how an operator runs, its state and its output."""
        return ()

    def check_question(self, definition: Definition, question: Mapping[str, Any]) -> None:
        """Refuse a question that an operator cannot answer: ``OperatorRefused``, with the member as ``field``."""

    def answer_of(
        self, definition: Definition, question: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Merge the answers of all shards to a question into one, as plain JSON."""
        return {}

    def plotted(self, definition: Definition) -> tuple[Sequence[str], Sequence[str]]:
        """Return attributes of derived events: the names that identify a group, and the numbers to plot over time."""
        return (), ()

    def inner_streams(self, name: str) -> Sequence[str]:
        """Return the inner streams: derived streams between the parts of an operator, removed together with it."""
        return ()

    def advice_on_ranges(self, stream: str, key: str) -> str:
        """Return the warning that no active operator of the kind finishes ranges of a key; empty if none ever does."""
        return ""

    def figures(self, definition: Definition, counts: Mapping[str, int]) -> tuple[Sequence[str], Mapping[str, int]]:
        """Return sentences about an operator's counts, and the counts that are shown besides the sentences.

        ``counts``: counters by name, summed over the shards.
        """
        return (), counts

    def waiting(
        self, definition: Definition, counts: Mapping[str, int], state: Mapping[str, Any] | None
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the measurements, as plain JSON by alias, of each input whose keys are finished by measurement.

        ``state``: state of the decider; None: it has none yet.
        """
        return {}

    def unkeyed(self, definition: Definition, counts: Mapping[str, int]) -> Sequence[str]:
        """Return sentences about inputs that had events without a usable key. ``counts`` is as in ``figures``."""
        return ()

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        """Return sentences about members that are valid but probably a mistake, such as a member without effect.

        ``has_constraints``: whether a stream follows a workflow or has constraints.
        """
        return ()

    def measured(
        self,
        definition: Definition,
        counts: Mapping[str, int],
        state: Mapping[str, Any] | None,
        decisions: Sequence[Decided],
    ) -> Sequence[str]:
        """Return sentences about measurements and the decisions based on them; empty if nothing is decided.

        ``state``: state of the decider; None: it has none yet.
        """
        return ()


def in_columns(results: Iterable[Result]) -> Iterator[ResultRows]:
    """Yield the same results in the same order, with consecutive single results of one kind as columns."""
    for kind, group in groupby(results, lambda result: result[0] if isinstance(result, tuple) else None):
        if kind is None:
            yield from (result for result in group if isinstance(result, ResultRows))
        else:
            yield ResultRows.of(kind, [result[1:] for result in group if isinstance(result, tuple)])

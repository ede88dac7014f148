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
from shards.names_read import NameRead
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
        newest: The number of early terminations that each per-key matcher reports one by one. The newest are reported,
            and the others are counted by reason. None reports all.
    """

    shard: int
    entry: Entry
    newest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A shard's summary of the events of one micro-batch, for a decider.

    Attributes:
        decider: Name of the decider. It is a key of ``DECIDERS``, possibly followed by ``/`` and a suffix, which
            distinguishes several deciders of one kind for a stream.
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
    """Merges observations of all shards, and makes decisions about a stream.

    Lost or repeated observations may change decisions, but never results.
    """

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Merge the summaries that shards returned in one micro-batch, in any order."""
        ...

    def decide(self) -> ControlRecord | None:
        """Return the next decision, or None if nothing has to change. Each decision is returned once."""
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
    """The output of a host for a batch or for an advance of time: results, and events for derived streams.

    By default it is empty.
    """

    __slots__ = ()

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield the results as rows, in a fixed order. The id of a result depends only on its content."""
        return iter(())

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Yield the derived events that keep the keys of their source events, in the order in which they were made.

        There is at most one batch per stream. The boundaries of source batches change neither the events nor their
        order. A row of the type ``streams.ENDED`` is not an event, but marks the end of the trace of its key. Each
        derived event is also a result of the kind ``derived``. A derived event with another key is a result only, and
        reaches its stream through the log.
        """
        return iter(())

    def events_of(self, results: str, event_type: str) -> EventBatch | None:
        """Return the results of one kind as events of the type ``event_type``, or None if there are none.

        ``results`` is the plural name of the kind (``ResultKind.plural``). The events are in the order in which they
        were made, whatever the boundaries of source batches.
        """
        return None


NO_OUTPUT = Output()


Renderer: TypeAlias = Callable[[Output, Origin], Iterable[Result]]
"""A function that makes the results of an output, as ``Output.results`` does."""


def own_results(output: Output, origin: Origin) -> Iterable[Result]:
    """Return the results that an output makes itself.

    A shard uses this function unless ``ShardState.render`` sets another.
    """
    return output.results(origin)


def no_results(output: Output, origin: Origin) -> Iterable[Result]:
    """Return no results, for callers that need only the state (``ShardState.render``)."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedHost:
    """The saved state of a host."""

    head: Mapping[str, Any]
    sections: Mapping[str, bytes]


class Traces(NamedTuple):
    """The open traces and constraints of a stream, from a host that has followed the stream since its declaration.

    Attributes:
        followed: The constraints of traces that begin now, or None if there are none.
        open_keys: Returns the hashed keys of the open traces, in any order.
    """

    followed: ConstraintsOn | None
    open_keys: Callable[[], NDArray[np.uint64]]


class Running(ABC):
    """The common interface of hosts and single operators (``shards.hosts.keyed_host``).

    The state is a function of the calls. The boundaries of batches change no result. Methods that only few kinds need
    have a default without output or counts.
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
        """Process events and return the output.

        The events are in the order of the log, or in the order of time if the place sorts events.
        """

    @abstractmethod
    def advance_time(self, watermark_us: int) -> Output:
        """Advance event time, and return the output. No event older than the watermark will follow."""

    def end_trace(self, key: str, time_us: int | None) -> Output:
        """End the trace of a key at ``time_us`` (None: the newest time), and return the output.

        No event of this trace will follow.
        """
        return NO_OUTPUT

    def finish_keys(self, promise: Punctuation) -> Output:
        """Finish a range of keys, and return the output.

        No event with one of these keys and a time after ``promise.time_us`` will follow.
        """
        return NO_OUTPUT

    def hear(self, output: Output) -> Output:
        """Process the output of another host at the same place, directly after the other host's call."""
        return NO_OUTPUT

    def close_keys(self, record: KeysClosed) -> EventBatch | None:
        """Return events that finish the keys closed by a decider, or None if the record is for another host.

        The call itself makes no output. The place passes the returned events to ``process``, and then advances time.
        """
        return None

    def finish(self) -> Output:
        """End a finite input, and return the last output. No event will follow."""
        return NO_OUTPUT

    @abstractmethod
    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Keep the state of the chosen keys. Drop all other state, as if its events had been in another shard.

        Counts are kept if ``has_counts`` is true, and otherwise restart from 0.
        """

    def measures(self) -> Mapping[str, int]:
        """Return counts for monitoring."""
        return {}

    def observed(self) -> Iterator[Observation]:
        """Yield the observations (summaries of processed events) since the last call, for deciders.

        Observations are small and never saved.
        """
        return iter(())

    @property
    def files(self) -> Collection[str]:
        """Names of the files that store a part of the state. The result of ``dump`` names them, too."""
        return ()

    def verify(self) -> None:
        """Verify the checksums of ``files``. Raise ``StateLost`` if a file is missing or damaged."""

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
        """The event time that the host has reached, or None before the first event."""

    @abstractmethod
    def start(self, definition: Definition, start: Start) -> None:
        """Start an operator. If this version already runs, it continues. A refused operator changes nothing."""

    def started(self) -> Output:
        """Return the output that ``start`` caused. The shard calls this right after ``start``."""
        return NO_OUTPUT

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Receive the open traces and the constraints of the stream. The place calls this after ``start``.

        The traces may be older than the host. The arguments are the members of ``Traces``.
        """

    @abstractmethod
    def stop(self, name: str) -> None:
        """Stop an operator and drop its unfinished work. Refuse an operator that does not run."""

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply a changed declaration, which may end open traces, and return the output.

        Only ``streams.CHANGEABLE`` members differ. The place handles the members that concern the order of events.
        """
        return NO_OUTPUT

    def follow(self, record: ConstraintsOn) -> None:
        """Apply constraints to traces that begin from now on. Refused constraints change nothing."""

    def use_tables(self, tables: Tables) -> None:
        """Let lookups of results that passing time decides read ``tables`` from now on.

        Results that events decide use the tables of their batch instead.
        """

    @property
    def traces(self) -> Traces | None:
        """The traces that the host has followed since the stream was declared, or None if it follows no traces."""
        return None

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a question about the current state as plain JSON. The state does not change.

        Unknown questions are refused. The work and the size of an answer are limited by the question and the state.
        They do not depend on the number of past events.
        """
        raise ControlRecordError("operators of this kind answer no questions")


class Kind(ABC):
    """A kind of operator.

    Attributes:
        name: The name in definitions and in saved state; it never changes.
        result_kinds: Results of the operators besides dead letters. Their names are distinct among all kinds.
        letters: Errors whose dead letters a run lists with its results. All other dead letters are only counted.
        suspended: The error that ends a run in which an operator was suspended.
        is_final: Whether the derived events of its operators are never retracted.
        is_resident: Whether every stream has a host of this kind from its declaration on, so that the host follows all
            traces.
        is_counted: Whether the counts of its hosts are exported as metrics.
        exercise: The exercise that compiles all kernels of its hosts (``streams.compiling``). It is empty without
            kernels.
        hears: The kind whose results its operators read (``Host.hear``). It is empty if they read none.
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
        """Return the feed into the derived stream that an operator feeds, or None.

        The kind may refuse the operator here.
        """
        return None

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        """Return an operator's lookups in reference tables."""
        return ()

    def require_rows(self, definition: Definition, tables: Tables) -> None:
        """Refuse an operator that runs for each row of a table, if its table in ``tables`` has too many rows."""

    @abstractmethod
    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """Create a host without operators, or load the saved host. An unreadable state is refused."""

    def exercise_for(
        self, definitions: Sequence[Definition], declaration: StreamDeclaration, constraints: Mapping[str, Any] | None
    ) -> str:
        """Return an exercise: the name of a function that, when called, compiles the kernels of these operators.

        By default it compiles all kernels of the kind (``exercise``). The operators run at one place of the stream.
        ``constraints`` is the document of the constraints that the traces follow, or None.
        """
        return self.exercise

    def is_observed(self, definition: Definition) -> bool:
        """Return whether a decider observes an operator.

        A run over past events makes such an operator's decisions before its first round.
        """
        return False

    def likeness(self, first: Definition, other: Definition) -> Likeness:
        """Return by which members two operators' alerts are compared, after both have read the same events.

        Raises ``RoundsImpossible`` if their alerts cannot be compared.
        """
        return "bindings"

    def finishes_range(self, definition: Definition, by: str, declaration: StreamDeclaration) -> bool:
        """Return whether a punctuation with a range of ``by`` finishes keys in an operator or in one of its parts."""
        return False

    def silenced(self, definition: Definition) -> Definition:
        """Return an operator without the results that name another operator, for a second run over the same events."""
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
        passing: Own members that concern a registration only. Answers do not contain them.
        holds: What an operator keeps or drops when it is replaced, in words. If it is empty, texts do not mention it.
        has_own_resource: Whether API and command line have operations written for this kind, in place of the generic
            ones.
        decider: The kind of decider for the streams of its operators, or None if nothing is decided.
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
        """JSON Schema of the members that only this kind has.

        A project may store the member ``text`` in a separate file.
        """

    def answered(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the members of a document as the service's answers contain them."""
        return document

    def check(self, document: Mapping[str, Any]) -> None:
        """Refuse a document with invalid members. Only checks that are cheap and need no streams are made here."""

    @abstractmethod
    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        """Read the operator that a document describes, as version 0.

        Args:
            document: The members of the document, without those common to all kinds (``state``, ``severity``).
            declared: Returns the declaration of a stream by its name.

        Raises:
            OperatorRefused: The document does not have the form, or the operator cannot run on its streams.
            ForestallError: A stream is not declared.
        """

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """Return the further operators that an operator needs, its parts.

        Each has one input, and is not listed for users.

        ``declared`` returns the declaration of a stream by its name, and raises an error for an unknown stream.
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
        """Refuse a question that an operator cannot answer. ``OperatorRefused`` names the wrong member in ``field``."""

    def answer_of(
        self, definition: Definition, question: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Merge the answers of all shards to a question into one answer, which is plain JSON."""
        return {}

    def plotted(self, definition: Definition) -> tuple[Sequence[str], Sequence[str]]:
        """Return attributes of derived events: the names that identify a group, and the numbers to plot over time."""
        return (), ()

    def inner_streams(self, name: str) -> Sequence[str]:
        """Return the names of the inner streams that connect the parts of an operator.

        They are removed with the operator.
        """
        return ()

    def advice_on_ranges(self, stream: str, key: str) -> str:
        """Return why a punctuation with a range of ``key`` has no effect on this kind, for a warning.

        The caller has found no active operator that finishes the range. The text is empty if the kind never finishes
        ranges.
        """
        return ""

    def figures(self, definition: Definition, counts: Mapping[str, int]) -> tuple[Sequence[str], Mapping[str, int]]:
        """Return sentences about an operator's counts, and the counts that are shown in addition.

        ``counts`` are sums over all shards, by name.
        """
        return (), counts

    def waiting(
        self, definition: Definition, counts: Mapping[str, int], state: Mapping[str, Any] | None
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the measurements of each input with ``wait: auto``, whose keys a decider finishes, by alias.

        ``state`` is the state of the decider, or None if it has none yet.
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

        ``has_constraints`` returns whether a stream follows a workflow or has constraints.
        """
        return ()

    def names_read(self, definition: Definition) -> Iterable[NameRead]:
        """Return the event types and attributes that an operator reads of its streams, for notices about misspellings.

        Patterns return none, because their notices have positions in the text (``nfa.unknown_types``).
        """
        return ()

    def measured(
        self,
        definition: Definition,
        counts: Mapping[str, int],
        state: Mapping[str, Any] | None,
        decisions: Sequence[Decided],
    ) -> Sequence[str]:
        """Return sentences about a decider's measurements for an operator, and about the decisions based on them.

        There are none if nothing is decided. ``state`` is the state of the decider, or None if it has none yet.
        """
        return ()


def in_columns(results: Iterable[Result]) -> Iterator[ResultRows]:
    """Yield the same results in the same order. Consecutive single results of one kind are combined to columns."""
    for kind, group in groupby(results, lambda result: result[0] if isinstance(result, tuple) else None):
        if kind is None:
            yield from (result for result in group if isinstance(result, ResultRows))
        else:
            yield ResultRows.of(kind, [result[1:] for result in group if isinstance(result, tuple)])

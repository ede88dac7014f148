"""The contract between a shard and its operators.

A shard knows no kind of operator. It hands the events that arrive at a place to the hosts of the place, and asks their
outputs for results. A host runs all operators of one kind at one place; a kind creates and loads hosts.
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
"""The name of the decider of a stream that measures its lateness (``lateness: auto``)."""

Single: TypeAlias = tuple[ResultKind, str, dict[str, Any]]
Result: TypeAlias = Single | ResultRows
"""Kind, id and JSON object of one result, or many results of one kind as columns."""

Likeness: TypeAlias = Literal["bindings", "events"]
"""Whether equal alerts of a key bind the same events to the same aliases, or to any aliases."""

KeyChoice: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
"""A predicate over hashed keys: true for the keys that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place in the log from which results come.

    Attributes:
        newest: For each per-key matcher, at most this many of the newest early terminations are reported one by one;
            the others are counted by reason. None: all are reported.
    """

    shard: int
    entry: Entry
    newest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A summary of what a shard observed in a step.

    Attributes:
        decider: Name of the decider: a key of ``DECIDERS``, followed by ``/`` and a suffix if a stream has several
            deciders of this kind.
        summary: Plain JSON of bounded size, read by the decider; the number of the ``shard`` is added.
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
    """Decides about a stream. Missing or repeated observations may change a decision, but never a result."""

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Merge what shards observed in one step, in any order."""
        ...

    def decide(self) -> ControlRecord | None:
        """The next decision, or None if nothing changes. The decider takes a returned decision as made."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The state as plain JSON of bounded size."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderKind:
    """A kind of decider; ``load`` restores a decider from the JSON form of ``to_json``, or creates one from None."""

    name: str
    load: Callable[[Mapping[str, Any] | None], Decider]


Decided: TypeAlias = tuple[int, Mapping[str, Any]]
"""A decision: its time in microseconds UTC, and the members of its record."""


class Output:
    """A host's output for some events, or for passing time; empty by default."""

    __slots__ = ()

    def results(self, origin: Origin) -> Iterator[Result]:
        """Results in a fixed order; an id depends only on the content of its result."""
        return iter(())

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Events of derived streams that keep the keys of their sources, in the order in which they were made.

        At most one batch per stream. The boundaries of source batches change neither the events nor their order. A row
        of the type ``streams.ENDED`` is not an event: it marks the end of the trace of its key. Each derived event is
        also a result of the kind ``derived``; a derived event with another key is a result only.
        """
        return iter(())

    def events_of(self, results: str, event_type: str) -> EventBatch | None:
        """The results of one kind (``ResultKind.plural``) as events of a type, in the order in which they were made.

        The boundaries of source batches change neither the events nor their order. None: there are none.
        """
        return None


NO_OUTPUT = Output()


Renderer: TypeAlias = Callable[[Output, Origin], Iterable[Result]]
"""Makes the results of an output, as ``Output.results`` does."""


def own_results(output: Output, origin: Origin) -> Iterable[Result]:
    """The results that an output makes itself; this is the default renderer."""
    return output.results(origin)


def no_results(output: Output, origin: Origin) -> Iterable[Result]:
    """No results of an output; a renderer for callers that need only the state."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedHost:
    """The saved state of a host."""

    head: Mapping[str, Any]
    sections: Mapping[str, bytes]


class Traces(NamedTuple):
    """The traces of a stream that a host has followed from the declaration on.

    Attributes:
        followed: The constraints of traces that begin now; None: there are none.
        open_keys: Returns the hashed keys of the open traces, in any order.
    """

    followed: ConstraintsOn | None
    open_keys: Callable[[], NDArray[np.uint64]]


class Running(ABC):
    """The interface that a host and a single operator (``shards.hosts.keyed_host``) share.

    The state is a function of the calls. How events are cut into batches changes no result. Methods that only some
    kinds need have a default: no output, no counts.
    """

    __slots__ = ()

    @property
    def waits_for_time(self) -> bool:
        """Whether passing time decides any result, now or after the next event."""
        return False

    @property
    def is_decided_by_end(self) -> bool:
        """Whether results at the end of a finite input depend on the time that the input has reached."""
        return self.waits_for_time

    @abstractmethod
    def process(self, batch: EventBatch) -> Output:
        """Process events in the order of the log, or in order of time if the place sorts events."""

    @abstractmethod
    def advance_time(self, watermark_us: int) -> Output:
        """Pass event time: no event from before the watermark will follow."""

    def end_trace(self, key: str, time_us: int | None) -> Output:
        """End the trace of a key, at the newest time or an earlier one; no event of this trace will follow."""
        return NO_OUTPUT

    def finish_keys(self, promise: Punctuation) -> Output:
        """Finish a range of keys: of these keys, no event later than the time of the promise will follow."""
        return NO_OUTPUT

    def hear(self, output: Output) -> Output:
        """Process the output of another host at the same place, before any host at the place is called again."""
        return NO_OUTPUT

    def close_keys(self, record: KeysClosed) -> EventBatch | None:
        """Events that finish the keys that a decider has closed; None: the record does not concern this host.

        The place then processes these events like others, and passes time; these calls return the output.
        """
        return None

    def finish(self) -> Output:
        """End a finite input: no event will follow."""
        return NO_OUTPUT

    @abstractmethod
    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Keep the chosen keys, and forget all others as if their events had been in another shard.

        ``has_counts``: keep the counts so far; otherwise they become 0.
        """

    def measures(self) -> Mapping[str, int]:
        """Counts for monitoring."""
        return {}

    def observed(self) -> Iterator[Observation]:
        """Observations for a decider (``shards.deciding``) since the last call; small, and never saved."""
        return iter(())

    @property
    def files(self) -> Collection[str]:
        """Names of the files that hold a part of the state; ``dump`` names them, too."""
        return ()

    def verify(self) -> None:
        """Compare the checksums of ``files``; ``StateLost`` if one is missing or damaged."""

    @abstractmethod
    def dump(self) -> SavedHost:
        """The whole state, for a snapshot or a handover."""


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
        """Start an operator; a version that already runs continues. A refused operator changes nothing."""

    def started(self) -> Output:
        """The output that the last ``start`` caused; called after ``start``, for the same position of the log."""
        return NO_OUTPUT

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """Take over the open traces of the stream, whose declaration may precede the host; called after ``start``.

        The arguments are those of ``Traces``.
        """

    @abstractmethod
    def stop(self, name: str) -> None:
        """Stop an operator; its unfinished work is dropped. Refused if no such operator runs."""

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Apply a changed declaration, which may end open traces.

        Only ``streams.CHANGEABLE`` members differ. The place keeps the order of events.
        """
        return NO_OUTPUT

    def follow(self, record: ConstraintsOn) -> None:
        """Apply constraints to traces that begin later. Refused constraints change nothing."""

    def read_tables(self, tables: Tables) -> None:
        """Set the tables for results that time decides; batches bring the tables for results that events decide."""

    @property
    def traces(self) -> Traces | None:
        """The traces that the host has followed since the stream was declared; None: it follows none."""
        return None

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """The current state of some operators as plain JSON; unknown questions are refused. No state changes.

        The size of an answer and the work for it are bounded by the question and the state, and never by past events.
        """
        raise ControlRecordError("operators of this kind answer no questions")


class Kind(ABC):
    """A kind of operator.

    Attributes:
        name: As in definitions and in saved state; never changes.
        result_kinds: Results of the operators besides dead letters; their names are distinct among all kinds.
        letters: Errors whose dead letters a run lists with its results; other dead letters are only counted.
        suspended: The error that ends a run in which an operator was suspended.
        is_final: Whether no event that its operators derive is ever retracted.
        is_resident: Whether every stream has a host from its declaration on, which then knows the open traces.
        is_counted: Whether the metrics have the measures of its hosts.
        exercise: The exercise that compiles all kernels of its hosts (``streams.compiling``); empty: they have none.
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
        """The derived stream that an operator feeds; None: it feeds none. May refuse the operator."""
        return None

    def lookups(self, definition: Definition) -> Collection[Lookup]:
        """The lookups in reference tables of an operator."""
        return ()

    def require_rows(self, definition: Definition, tables: Tables) -> None:
        """Refuse the rows in ``tables`` if they are too many for an operator that runs for each row."""

    @abstractmethod
    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """A host without operators, or the saved one; refused if the saved state cannot be read."""

    def exercise_for(
        self, definitions: Sequence[Definition], declaration: StreamDeclaration, constraints: Mapping[str, Any] | None
    ) -> str:
        """The exercise that compiles only the kernels for some operators at one place; by default ``exercise``.

        ``constraints``: the document of the traces' constraints; None: there are none.
        """
        return self.exercise

    def is_observed(self, definition: Definition) -> bool:
        """Whether a decider observes an operator; a run over past events then decides before the first round."""
        return False

    def likeness(self, first: Definition, other: Definition) -> Likeness:
        """What makes alerts of two operators equal, if they run over equal events.

        ``RoundsImpossible``: their alerts cannot be compared.
        """
        return "bindings"

    def finishes_range(self, definition: Definition, by: str, declaration: StreamDeclaration) -> bool:
        """Whether a punctuation with a range of ``by`` finishes keys in an operator, or in a part of one."""
        return False

    def silenced(self, definition: Definition) -> Definition:
        """The operator for a later round that runs it again: nothing is reported under another operator's name."""
        return definition

    def spilling_to(self, files: SpilledFiles) -> Kind:
        """The same kind with a store for the files of its hosts."""
        return self

    def spills(self, definition: Definition) -> bool:
        """Whether an operator may have a part of its state in files."""
        return False


class DocumentKind(Kind):
    """A kind whose operators are registered as JSON documents.

    The API has it under ``/v1/<plural>``, the command line under ``forestall <plural>``.

    Attributes:
        plural: The word for several operators, as a part of a path.
        usual: Default values of own members, as the service's answers contain them.
        passing: Own members that concern a registration only; answers do not contain them.
        holds: What an operator keeps or drops when it is replaced, in words; empty: not mentioned.
        has_own_resource: Whether API and command line have operations written for the kind, in place of those that all
            kinds get.
        decider: The kind of decider for its operators, on their streams; None: nothing is decided.
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
        """JSON Schema of the kind's own members; a project may keep a member ``text`` in a file of its own."""

    def answered(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The members of a document as the service's answers contain them."""
        return document

    def check(self, document: Mapping[str, Any]) -> None:
        """Refuse a document with invalid members, as far as the check is cheap and needs no streams."""

    @abstractmethod
    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        """The operator that a document describes, as version 0.

        Args:
            document: Its members, without the members common to all kinds (``state``, ``severity``).
            declared: Looks up the declaration of a stream by name; may raise.

        Raises:
            OperatorRefused: The document does not have the form, or the operator cannot run on its streams.
            ForestallError: A stream is not declared.
        """

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """The operators that make up an operator besides itself, each with one input; lists do not show them.

        ``declared``: looks up the declaration of a stream by name; may raise.
        """
        return ()

    def final_input(self, definition: Definition) -> tuple[str, str]:
        """The stream whose events must never be retracted, and the member that requires this; empty: any stream."""
        return "", ""

    def keeps(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether an operator can continue with another body and keep its state (``start: keep``)."""
        return False

    def explain(self, definition: Definition) -> Sequence[str]:
        """Sentences on how an operator runs, its state and its output."""
        return ()

    def check_question(self, definition: Definition, question: Mapping[str, Any]) -> None:
        """Refuse a question that an operator cannot answer (``OperatorRefused``; ``field`` is the member)."""

    def answer_of(
        self, definition: Definition, question: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The answer to a question, from the answers of all shards, as plain JSON."""
        return {}

    def plotted(self, definition: Definition) -> tuple[Sequence[str], Sequence[str]]:
        """Names of attributes of derived events: those that name the groups, and the numbers to plot over time."""
        return (), ()

    def inner_streams(self, name: str) -> Sequence[str]:
        """The inner streams: derived streams between the parts of an operator, removed together with it."""
        return ()

    def advice_on_ranges(self, stream: str, key: str) -> str:
        """The warning that no active operator of the kind finishes ranges of a key; empty: the kind never does."""
        return ""

    def figures(self, definition: Definition, counts: Mapping[str, int]) -> tuple[Sequence[str], Mapping[str, int]]:
        """Sentences on an operator's counts, and the counts that are shown besides the sentences.

        ``counts``: counters by name, summed over the shards.
        """
        return (), counts

    def waiting(
        self, definition: Definition, counts: Mapping[str, int], state: Mapping[str, Any] | None
    ) -> Mapping[str, Mapping[str, Any]]:
        """For each input whose keys the operator finishes by measurement, by alias: the measurements, as plain JSON.

        ``state``: state of the decider; None: it has none yet.
        """
        return {}

    def unkeyed(self, definition: Definition, counts: Mapping[str, int]) -> Sequence[str]:
        """Sentences on inputs that had events without a usable key; ``counts`` as for ``figures``."""
        return ()

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        """Sentences on members of a document that are legal but probably a mistake, such as a member without effect.

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
        """Sentences on what was measured for the operator and decided about it; empty if nothing is decided.

        ``state``: state of the decider; None: it has none yet.
        """
        return ()


def in_columns(results: Iterable[Result]) -> Iterator[ResultRows]:
    """The same results in the same order; consecutive single results of one kind become columns."""
    for kind, group in groupby(results, lambda result: result[0] if isinstance(result, tuple) else None):
        if kind is None:
            yield from (result for result in group if isinstance(result, ResultRows))
        else:
            yield ResultRows.of(kind, [result[1:] for result in group if isinstance(result, tuple)])

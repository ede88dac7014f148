"""The contract between a shard and what runs in it.

A shard knows no kind of operator. It hands what a place takes in to the hosts that sit there, and asks their outputs
for results. A host runs all operators of one kind at one place; a kind says how hosts are made and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shards.deciding import Observation
from shards.entries import Entry
from shards.feeds import Feed
from shards.results import ResultKind
from shards.rows import FoundRows
from streams import (
    ConstraintsOn,
    Definition,
    EventBatch,
    KeysClosed,
    Punctuation,
    SpilledFiles,
    Start,
    StreamDeclaration,
)

Single: TypeAlias = tuple[ResultKind, str, dict[str, Any]]
Result: TypeAlias = Single | FoundRows
"""Kind, id, JSON object; or many of one kind as columns."""

KeyChoice: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
"""Which of some hashes of keys stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What results come from.

    Attributes:
        shard: Where they are found.
        entry: The last entry of the log that had a part in them.
        newest: Of each key the newest so many early terminations are reported one by one, and the others counted by
            their reasons; None: all are reported.
    """

    shard: int
    entry: Entry
    newest: int | None = None


Told: TypeAlias = tuple[int, Mapping[str, Any]]
"""A decision: when it was made, microseconds UTC, and the members of its record."""


class Output(Protocol):
    """What a host made of some events, or of time passing."""

    def results(self, origin: Origin) -> Iterator[Result]:
        """Results with ids that depend on what they say only, in a fixed order."""
        ...

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        """Events of derived streams that have the keys of what they are made of, in the order of their making.

        At most one batch per stream. How the events that they are made of are cut changes neither them nor their order.
        Rows of the type ``streams.ENDED`` are no events: no more events of their key come, so its trace ends there.
        Those with other keys are results of the kind ``derived``; these are, too.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedHost:
    """The state of a host as it is saved.

    Attributes:
        head: Small things, as plain JSON.
        sections: Large ones, by name.
    """

    head: Mapping[str, Any]
    sections: Mapping[str, bytes]


class Host(Protocol):
    """All operators of one kind at one place of a shard.

    Its state is a function of the calls. How events are cut into batches changes no result.
    """

    @property
    def names(self) -> Collection[str]:
        """The operators that run."""
        ...

    @property
    def waits_for_time(self) -> bool:
        """Whether time that passes decides anything, now or with the next event."""
        ...

    @property
    def newest_us(self) -> int | None:
        """How far time has come for it; None before the first event."""
        ...

    def start(self, definition: Definition, start: Start) -> None:
        """Start an operator; a version that is running already continues.

        Raises:
            ForestallError: The definition is refused; nothing has changed.
        """
        ...

    def stop(self, name: str) -> None:
        """Stop an operator; what it has in work is dropped.

        Raises:
            ForestallError: No such operator runs.
        """
        ...

    def declare(self, declaration: StreamDeclaration) -> Output:
        """Take a changed declaration over from here on; open traces may end by it.

        Only ``streams.CHANGEABLE`` members are others. The place sees to the order of events.
        """
        ...

    def follow(self, record: ConstraintsOn) -> None:
        """Let traces that begin later follow these constraints.

        Raises:
            ForestallError: They are refused; nothing has changed.
        """
        ...

    def process(self, batch: EventBatch) -> Output:
        """Take events in, in the order of the log, or of time where the place orders them."""
        ...

    def advance_time(self, watermark_us: int) -> Output:
        """No event before a time comes any more."""
        ...

    def end_trace(self, key: str, time_us: int | None) -> Output:
        """No event of a key comes any more; its trace ends at the newest time, or at an earlier one."""
        ...

    def finish(self) -> Output:
        """No event comes any more."""
        ...

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget every other key, as if its events had gone elsewhere; ``has_counts``: go on from the counts so far."""
        ...

    def measures(self) -> Mapping[str, int]:
        """Numbers for operations."""
        ...

    def dump(self) -> SavedHost:
        """The whole state."""
        ...


# What only some hosts do. These protocols do not extend ``Host``: ``isinstance`` evaluates the properties of a protocol
# before Python 3.12, and those of a host may cost as much as its operators.


@runtime_checkable
class ChangingHost(Protocol):
    """A host whose operators may go on as another version."""

    def started(self) -> Output:
        """What follows from the last ``start``, at its place of the log; called behind it."""
        ...


@runtime_checkable
class AnsweringHost(Protocol):
    """A host that answers questions about its state."""

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """What its operators hold now, as plain JSON; the state stays as it is.

        The size of an answer and the work for it are bounded by the question and the state, and never by the events of
        the past.

        Raises:
            ForestallError: The question is not of a form that the kind knows.
        """
        ...


@runtime_checkable
class FinishingHost(Protocol):
    """A host to which it matters that many keys are finished."""

    def finish_keys(self, promise: Punctuation) -> Output:
        """No event of a range of keys comes any more that is later than the time of the promise."""
        ...


@runtime_checkable
class FollowingHost(Protocol):
    """A host that has followed the traces of a stream from its declaration on."""

    @property
    def followed(self) -> ConstraintsOn | None:
        """The constraints that traces follow which begin now; None: there are none."""
        ...

    def open_keys(self) -> NDArray[np.uint64]:
        """Hashed keys of the traces that are open, in any order."""
        ...


@runtime_checkable
class LearningHost(Protocol):
    """A host that begins later than the stream, and has to know what was before."""

    def learn(self, followed: ConstraintsOn | None, open_keys: Callable[[], NDArray[np.uint64]]) -> None:
        """What a host knows that has followed the stream; called when an operator has started.

        Args:
            followed: The constraints that traces follow which begin now.
            open_keys: Gives the hashed keys of the traces that are open.
        """
        ...


@runtime_checkable
class SpillingHost(Protocol):
    """A host a part of whose state is in files, which what ``dump`` gives names."""

    @property
    def files(self) -> Collection[str]:
        """Their names."""
        ...

    def verify(self) -> None:
        """Compare their checksums.

        Raises:
            StateLost: One is missing or damaged.
        """
        ...


@runtime_checkable
class ObservingHost(Protocol):
    """A host that observes something which shards cannot decide by themselves (``shards.deciding``)."""

    def observed(self) -> Iterator[Observation]:
        """What it observed since the last call; small, and no part of the saved state."""
        ...


@runtime_checkable
class DecidedHost(Protocol):
    """A host for whose operators it is decided which keys are finished."""

    def close_keys(self, record: KeysClosed) -> EventBatch:
        """The events by which the host is to be told so; its place puts them into the order of its other events.

        What follows at once is in the next output, which the place asks for.
        """
        ...


class Kind(Protocol):
    """A kind of operator."""

    @property
    def name(self) -> str:
        """As in definitions and in saved state; never changes."""
        ...

    @property
    def result_kinds(self) -> tuple[ResultKind, ...]:
        """What its operators report besides dead letters; their names are distinct among all kinds."""
        ...

    @property
    def is_resident(self) -> bool:
        """Whether every stream has a host from its declaration on, as it has to know traces that are open already."""
        ...

    def feed(self, definition: Definition) -> Feed | None:
        """The derived stream that an operator makes events of; None: it makes none.

        Raises:
            ForestallError: The definition is refused.
        """
        ...

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> Host:
        """A host without operators, or the one that was saved.

        Raises:
            ForestallError: The saved state cannot be read.
        """
        ...


@runtime_checkable
class SpillingKind(Kind, Protocol):
    """A kind whose hosts have a part of their state in files."""

    def spilling_to(self, files: SpilledFiles) -> Kind:
        """The same kind, with other files."""
        ...

    def spills(self, definition: Definition) -> bool:
        """Whether an operator may have a part of its state in files."""
        ...


@runtime_checkable
class DocumentKind(Kind, Protocol):
    """A kind whose operators are registered as JSON documents; patterns have a language instead.

    The API has it under ``/v1/<plural>``, the command line under ``forestall <plural>``.
    """

    @property
    def plural(self) -> str:
        """What people call several of it, as a part of a path."""
        ...

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the members that are its own."""
        ...

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        """The operator that a document describes, as version 0.

        Args:
            document: Its members but those that all kinds have (``state``, ``severity``).
            declared: The declaration of a stream by its name; may raise.

        Raises:
            OperatorRefused: The document is not of the form, or cannot run on its streams.
            ForestallError: A stream is not declared.
        """
        ...


@runtime_checkable
class CompoundKind(DocumentKind, Protocol):
    """A kind whose operators consist of others, which are where they are: each on one stream, and in no list."""

    def parts(self, definition: Definition, declared: Callable[[str], StreamDeclaration]) -> Sequence[Definition]:
        """What an operator consists of besides itself, with one input each.

        Args:
            definition: What ``read`` gave.
            declared: The declaration of a stream by its name; may raise.

        Raises:
            ForestallError: A stream is not declared.
        """
        ...


@runtime_checkable
class ChangingKind(DocumentKind, Protocol):
    """A kind whose operators may go on as another version, with what they hold (``start: keep``)."""

    def keeps(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether one with a body can go on as one with another."""
        ...


@runtime_checkable
class ExplainingKind(DocumentKind, Protocol):
    """A kind that can say why its operators run as they do."""

    def explain(self, definition: Definition) -> Sequence[str]:
        """How an operator runs, what it keeps and what it emits, in sentences."""
        ...

    def figures(self, definition: Definition, counts: Mapping[str, int]) -> tuple[Sequence[str], Mapping[str, int]]:
        """What the counts of all shards say, in sentences, and those counts that are shown beside them.

        Args:
            definition: The operator.
            counts: By name; sums over the shards.
        """
        ...


@runtime_checkable
class NotingKind(DocumentKind, Protocol):
    """A kind that knows what of a document is legal and probably not meant, such as members that can do nothing."""

    def notices(
        self,
        definition: Definition,
        declared: Callable[[str], StreamDeclaration],
        has_constraints: Callable[[str], bool],
    ) -> Sequence[str]:
        """What is legal and probably not meant, in sentences.

        Args:
            definition: The operator.
            declared: The declaration of a stream by its name; may raise.
            has_constraints: Whether a stream follows a workflow or has constraints.
        """
        ...


@runtime_checkable
class MeasuredKind(ExplainingKind, Protocol):
    """A kind with operators for which something is decided by what shards measure (``shards.deciding``)."""

    @property
    def decider(self) -> str:
        """The name of the decider, on the stream of the operator."""
        ...

    def measured(
        self, definition: Definition, counts: Mapping[str, int], state: Mapping[str, Any] | None, told: Sequence[Told]
    ) -> Sequence[str]:
        """What was measured and decided, in sentences; none where nothing is decided for the operator.

        Args:
            definition: The operator.
            counts: As for ``figures``.
            state: Of the decider; None: there is none yet.
            told: Its newest decisions, oldest first.
        """
        ...


def in_columns(results: Iterable[Result]) -> Iterator[FoundRows]:
    """The same results in the same order, single ones of one kind together."""
    for kind, some in groupby(results, lambda found: found[0] if isinstance(found, tuple) else None):
        if kind is None:
            yield from (found for found in some if isinstance(found, FoundRows))
        else:
            yield FoundRows.of(kind, [found[1:] for found in some if isinstance(found, tuple)])

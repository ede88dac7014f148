"""The library of backtests, with which clients of a service request, look up and cancel backtests."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from constraints import ConstraintSet, parse_constraints
from nfa import Prune, lookups_in, parse_pattern, require_rows
from service.backtests.questions import Question, TriedPattern, ends_in
from service.backtests.sources import allowed_path
from service.errors import BacktestRefused, PatternOnOtherStream, PatternTooLong
from service.registering.tables import past_tables, require_lookups
from service.runtime import Stores
from service.settings import Settings
from service.stores import Backtest, Page
from shards import SUPPRESSION, read_suppression, route_of, routed, suppressed_only
from streams import Clock, StreamDeclaration, key_text
from streams.tables import Lookup

Pruning: TypeAlias = Literal["on", "off", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternChoice:
    """The choice of a pattern for a backtest, which is either a new text or the ``name`` of a registered pattern.

    Attributes:
        text: Text in the pattern language, or None for a registered pattern.
        version: Version of the registered pattern, or None for the current version.
        suppress: Suppression, as in a pattern's document. It replaces the suppression of a registered pattern.
    """

    text: str | None = None
    name: str | None = None
    version: int | None = None
    suppress: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestDraft:
    """A backtest to be queued.

    Attributes:
        pattern: The tested pattern.
        against: The pattern with which the tested pattern is compared, or None.
        path: File or folder of the history, relative to the setting ``backtest_dir``, or None for the event log.
        pruning: Whether constraints prune partial matches: ``on``, ``off``, or ``compare`` to run both.
        is_open: Whether traces continue after the history. None means yes for the log, and no for files.
    """

    stream: str
    pattern: PatternChoice
    against: PatternChoice | None = None
    path: str | None = None
    pruning: Pruning = "on"
    is_open: bool | None = None


class BacktestLibrary:
    """Queues, looks up and cancels backtests."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock

    def ask(self, draft: BacktestDraft) -> Backtest:
        """Queue a backtest with the stream's current declaration, patterns and constraints."""
        declaration = self._stores.registry.stream(draft.stream)
        if draft.path is not None:
            allowed_path(self._settings.backtest_dir, draft.path)
        is_open = draft.path is None if draft.is_open is None else draft.is_open
        constraint_set = self._constraints(draft, declaration)
        question = Question(
            declaration=declaration,
            patterns=(self._pattern(draft.pattern, declaration),),
            against=() if draft.against is None else (self._pattern(draft.against, declaration),),
            constraint_set=constraint_set,
            prune=Prune.OFF if draft.pruning == "off" else None,
            compares_pruning=draft.pruning == "compare",
            is_open=is_open,
        )
        lookups: set[Lookup] = set()
        for tried in (*question.patterns, *question.against):
            parsed = parse_pattern(tried.text)
            ends_in(question, tried).check(parsed)
            lookups |= lookups_in(parsed)
        require_lookups(self._stores, lookups)
        tables = past_tables(self._stores, lookups)
        for tried in (*question.patterns, *question.against):
            require_rows(parse_pattern(tried.text), tables)
        question = replace(question, tables=tuple(tables.to_json()))
        backtest = Backtest(
            id=f"bt_{uuid.uuid4().hex}",
            stream=draft.stream,
            question=question.to_document(),
            path=draft.path,
            created_us=self._clock.now_us(),
        )
        self._stores.backtests.add(backtest)
        return backtest

    def get(self, backtest_id: str) -> tuple[Backtest, dict[str, Any] | None]:
        """Return a backtest and its summary, which is None until the backtest is done."""
        backtest = self._stores.backtests.get(backtest_id)
        return backtest, self._stores.backtests.summary(backtest_id) if backtest.status == "done" else None

    def alerts(self, backtest_id: str, *, after: str = "0", limit: int = 100) -> Page:
        """Return a page of a backtest's alerts, sorted by end time. Before the backtest is done, there are none."""
        self._stores.backtests.get(backtest_id)
        return self._stores.backtests.alerts(backtest_id, after=after, limit=limit)

    def delete(self, backtest_id: str) -> None:
        """Cancel a backtest if it is queued or running, otherwise remove it."""
        fields = {"status": "cancelled", "finished_us": self._clock.now_us()}
        if self._stores.backtests.advance(backtest_id, ("queued", "running"), **fields) is None:
            self._stores.backtests.remove(backtest_id)

    def _constraints(self, draft: BacktestDraft, declaration: StreamDeclaration) -> ConstraintSet | None:
        record = self._stores.registry.constraints.find(draft.stream)
        if record is None and draft.pruning == "compare":
            raise BacktestRefused(
                f"the stream {declaration.name!r} has no constraints, so there is no pruning to compare"
            )
        return None if record is None else parse_constraints(record.document).constraint_set

    def _pattern(self, choice: PatternChoice, declaration: StreamDeclaration) -> TriedPattern:
        tried = self._registered(choice, declaration) if choice.text is None else self._written(choice.text)
        parsed = parse_pattern(tried.text)
        if route := route_of(parsed, declaration):
            raise BacktestRefused(
                f"the pattern {tried.name!r} is matched by the further key {route!r}; backtests match by the "
                f"correlation key {key_text(declaration.key)} only"
            )
        if choice.suppress is not None:
            tried = replace(tried, suppression=read_suppression(choice.suppress, routed(parsed, declaration)))
        return replace(tried, budget=self._settings.pattern_work.budget)

    def _written(self, text: str) -> TriedPattern:
        limit = self._settings.limits.max_pattern_chars
        if len(text) > limit:
            raise PatternTooLong(f"the pattern has {len(text)} characters; at most {limit} are read", limit=limit)
        return TriedPattern(name=parse_pattern(text).name, text=text)

    def _registered(self, choice: PatternChoice, declaration: StreamDeclaration) -> TriedPattern:
        record = self._stores.registry.pattern_operators.version(choice.name or "", choice.version)
        if record.stream != declaration.name:
            raise PatternOnOtherStream(
                f"the pattern {record.name!r} is registered on the stream {record.stream!r}, not {declaration.name!r}",
                stream=record.stream,
            )
        return TriedPattern(
            name=record.name,
            text=record.text,
            version=record.version,
            is_guarded=record.is_guarded,
            suppression=suppressed_only(record.body.get(SUPPRESSION)),
        )

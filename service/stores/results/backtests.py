"""The stored backtests, each with its question, its progress and its result.

A backtest has a record, which is changed by compare-and-set, a summary, and a list of alerts. Summary and alerts are
written before the record becomes ``done``. So a backtest that is ``done`` has a complete result, even if a process dies
in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import orjson

from service.errors import TooManyBacktests, UnknownBacktest
from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, Page, require_cursor
from service.stores.record_books import Change, Records, surplus
from service.stores.records import decode, encode

ORDER_KEY = PREFIX + "backtests:order"
NUMBER_KEY = PREFIX + "backtests:number"
LEASE_KEY = PREFIX + "backtests:lease"
BACKTEST_KEY = PREFIX + "backtest:"

BacktestStatus: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]
OVER: tuple[BacktestStatus, ...] = ("done", "failed", "cancelled")

_CHUNK_ALERTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The record of a backtest.

    Attributes:
        question: The question, in the form of ``service.backtests.questions``.
        path: File or folder to read, relative to the configured folder, or None to read the event log.
        progress: Finished share of the work, from 0 to 1.
    """

    id: str
    stream: str
    question: Mapping[str, Any]
    path: str | None
    created_us: int
    status: BacktestStatus = "queued"
    progress: float = 0.0
    attempts: int = 0
    started_us: int | None = None
    finished_us: int | None = None
    error: Mapping[str, str] | None = None

    @property
    def is_over(self) -> bool:
        return self.status in OVER


class BacktestStore(Records[Backtest]):
    """The backtests, by id.

    If there are more than ``kept`` backtests after a backtest is added, the oldest ended backtests are removed.
    """

    key = PREFIX + "backtests"
    one = "the backtest"
    form = Backtest

    def __init__(self, client: Client, *, kept: int = 100) -> None:
        super().__init__(client)
        self._kept = kept
        self._lease = register(client, "locks/take_lease")

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownBacktest:
        return UnknownBacktest(f"there is no backtest {name!r}; GET /v1/backtests lists them", id=name)

    def add(self, backtest: Backtest) -> None:
        """Queue a backtest. If the store is full of backtests that have not ended, raise ``TooManyBacktests``."""
        stored = self.all()
        ended = surplus(stored[::-1], self._kept, lambda candidate: candidate.is_over)
        if ended is None:
            raise TooManyBacktests(
                f"{len(stored)} backtests are already waiting; wait for some, or cancel some (DELETE /v1/backtests/ID)",
                limit=self._kept,
            )
        for outdated in ended:
            self.remove(outdated.id)
        self.insert(backtest.id, backtest, ("ZADD", ORDER_KEY, self._client.incr(NUMBER_KEY), backtest.id))

    def all(self) -> list[Backtest]:
        """Return all backtests, newest first."""
        by_id = {backtest.id: backtest for backtest in super().all()}
        ids = cast("list[bytes]", self._client.zrevrange(ORDER_KEY, 0, -1))
        return [by_id[name.decode()] for name in ids if name.decode() in by_id]

    def advance(self, backtest_id: str, expected: Sequence[BacktestStatus], **fields: Any) -> Backtest | None:
        """Change members of a backtest and return the result. If its status is not in ``expected``, return None."""

        def changed(stored: Backtest | None) -> Change | None:
            record = self.require(stored, backtest_id)
            is_expected = record.status in expected
            return Change(record=encode(**asdict(replace(record, **fields)))) if is_expected else None

        changed_form, is_changed = self.apply(backtest_id, changed)
        return changed_form if is_changed else None

    def keep_result(self, backtest_id: str, summary: Mapping[str, Any], alerts: Sequence[Mapping[str, Any]]) -> None:
        """Store the result of a backtest. It replaces the result of an earlier attempt."""
        key = BACKTEST_KEY + backtest_id
        with self._client.pipeline(transaction=True) as commands:
            commands.delete(f"{key}:alerts")
            for start in range(0, len(alerts), _CHUNK_ALERTS):
                commands.rpush(f"{key}:alerts", *map(orjson.dumps, alerts[start : start + _CHUNK_ALERTS]))
            commands.set(f"{key}:summary", encode(**summary))
            commands.execute()

    def summary(self, backtest_id: str) -> dict[str, Any] | None:
        """Return the summary of a backtest, or None if it has no result yet."""
        stored = cast("bytes | None", self._client.get(f"{BACKTEST_KEY}{backtest_id}:summary"))
        return None if stored is None else decode(stored, f"the summary of the backtest {backtest_id!r}")

    def alerts(self, backtest_id: str, *, after: str = "0", limit: int = 100) -> Page:
        """Return a page of a backtest's alerts after a cursor, in the order in which they were stored."""
        require_cursor(after, NUMBER)
        first = int(after)
        key = f"{BACKTEST_KEY}{backtest_id}:alerts"
        bodies = cast("list[bytes]", self._client.lrange(key, first, first + limit))
        alerts = [orjson.loads(body) for body in bodies[:limit]]
        end = str(first + len(alerts))
        return Page(items=alerts, after=end, next=end if len(bodies) > limit else None)

    def remove(self, backtest_id: str) -> None:
        key = BACKTEST_KEY + backtest_id
        with self._client.pipeline(transaction=True) as commands:
            commands.zrem(ORDER_KEY, backtest_id)
            commands.hdel(self.key, backtest_id)
            commands.delete(f"{key}:alerts", f"{key}:summary")
            commands.execute()

    def lease(self, holder: str, life_ms: int) -> bool:
        """Acquire or renew the lease for running backtests, and return whether ``holder`` has the lease."""
        return bool(self._lease(lease=LEASE_KEY, holder=holder, life_ms=life_ms))

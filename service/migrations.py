"""Migrations of the store: steps that a process runs when it starts, one process at a time.

A release that changes the format of stored data appends a ``Migration`` to ``MIGRATIONS``. The format number of the
store is the number of migrations plus one.

If a process is killed during a step, the next process runs the step again from its beginning. So a step must be safe to
repeat after it was executed in part or completely.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from service.errors import BackupRefused, StoreNewer, StoreUnavailable
from service.stores import FIRST_FORMAT, Client, Keyspace, StoreFormat, move_to_blocks

_PAUSE_S, _PATIENCE_S = 0.1, 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A step from one store format to the next. At least every 30 s, ``apply`` must call the function that it gets."""

    name: str
    apply: Callable[[Client, Callable[[], None]], None]


MIGRATIONS: tuple[Migration, ...] = (Migration(name="alerts are stored in blocks", apply=move_to_blocks),)
NEWEST_FORMAT = FIRST_FORMAT + len(MIGRATIONS)


def pending(client: Client, migrations: Sequence[Migration] = MIGRATIONS) -> Sequence[Migration]:
    """Return the steps that the store still needs.

    Raises ``StoreNewer`` if a newer release wrote the store, and ``BackupRefused`` if a restoration was interrupted.
    """
    if Keyspace(client).is_restoring():
        raise BackupRefused(
            "a backup was being restored and is not complete: run forestall restore again, and start the service then"
        )
    stored_format, newest = StoreFormat(client).read(), FIRST_FORMAT + len(migrations)
    if stored_format is None:
        return ()
    if stored_format > newest:
        raise StoreNewer(
            f"the stored data has format {stored_format}, of a newer release; this one reads {newest} at most. Run "
            "that release, or restore a backup from before the store was brought up to date",
            found=stored_format,
            newest=newest,
        )
    return migrations[stored_format - FIRST_FORMAT :]


def bring_up_to_date(
    client: Client,
    migrations: Sequence[Migration] = MIGRATIONS,
    *,
    now: Callable[[], float] = time.monotonic,
    patience_s: float = _PATIENCE_S,
) -> None:
    """Run the steps that the store still needs, or wait while another process runs them.

    ``migrations`` lists all steps since the first format. Raises ``StoreNewer`` and changes nothing if a newer release
    wrote the store. Raises ``StoreUnavailable`` if another process takes longer than ``patience_s``.
    """
    deadline = now() + patience_s
    while pending(client, migrations) or StoreFormat(client).read() is None:
        if _take_steps(client, migrations):
            return
        if now() > deadline:
            raise StoreUnavailable(
                f"another process has been bringing the store up to date for {patience_s:g} s; see its log"
            )
        time.sleep(_PAUSE_S)


def _take_steps(client: Client, migrations: Sequence[Migration]) -> bool:
    """Run the steps that the store still needs. If another process holds the lock, run none and return False."""
    log = structlog.get_logger(__name__)
    with StoreFormat(client).locked() as lock:
        if lock is None:
            return False
        if StoreFormat(client).read() is None:
            lock.advance(FIRST_FORMAT + len(migrations))
        steps = pending(client, migrations)
        for number, step in enumerate(steps, FIRST_FORMAT + len(migrations) - len(steps) + 1):
            log.info("migration-begun", name=step.name, format=number)
            step.apply(client, lock.renew)
            lock.advance(number)
            log.info("migration-done", name=step.name, format=number)
    return True

"""Records are JSON objects in hashes; one script changes a record together with everything that depends on it.

A change is computed from the record that was read, and committed only if this record is still stored; otherwise the
change is computed again. The same script appends to the log the control records that announce the change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast
from uuid import uuid4

import orjson

from service.errors import NotFound, RegistryContended
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.records import encode, read_record
from service.stores.routes import require_not_removed, users_key
from streams import ControlRecord, ScriptValue, encode_control, stops_key

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ATTEMPTS = 50
_CALL_MS = 60_000

_Form = TypeVar("_Form", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """A change's effect on the log: a control record, and the route by which an operator listens.

    ``control`` is None if nothing is appended. ``user`` is the operator whose ``route`` is stored, an empty route for
    the correlation key; if ``user`` is empty, no route changes.
    """

    stream: str
    control: ControlRecord | None
    user: str = ""
    route: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a record, with everything else changed by the same script.

    Attributes:
        record: The new record; empty: the record is removed.
        version: The version number under which the record is also stored; 0: the change makes no version.
        log: Effects on the log, in order.
        checks: Further (hash, field, value) triples that must still be stored; an empty value: no record.
        stops: Whether the control records also apply to events of the backlog.
        spared: The shard that has already suspended the operator and gets no stop, if any.
    """

    record: bytes
    version: int = 0
    log: tuple[LogChange, ...] = ()
    commands: tuple[tuple[ScriptValue, ...], ...] = ()
    checks: tuple[tuple[str, str, bytes], ...] = ()
    stops: bool = False
    spared: int | None = None


Changing: TypeAlias = Callable[[bytes | None], Change | None]


class RecordBook:
    """Current records by hash and field, and their versions.

    ``append`` is ``LayoutStore.append``; None: no change may have an effect on the log.
    """

    def __init__(self, client: Client, append: Callable[..., Any] | None = None) -> None:
        self.client = client
        self._append = append
        self._commit = register(client, "registry/commit")

    def apply(self, key: str, field: str, change: Changing, title: str, versions_key: str = "") -> tuple[bytes, bool]:
        """Compute and commit a change; if another writer came first, compute and commit the change again.

        If ``change`` returns None, the record is kept. Returns the record after the call, and whether it changed;
        ``title`` names the record in errors.

        A script whose reply was lost is sent again. It then finds the key of this call, which the commit has set.
        """
        call = f"{PREFIX}change:{uuid4().hex}"
        for _ in range(_ATTEMPTS):
            current = self.get(key, field)
            computed = change(current)
            if computed is None:
                assert current is not None, "only an existing record can stay as it is"
                return current, False
            places = [(key, field)]
            if computed.version:
                places.append((versions_key, version_of(field, computed.version)))
            commands = [_command_of(place, computed.record) for place in places] + list(computed.commands)
            checks = [(key, field, current or b""), *computed.checks]
            commit = partial(self._call_script, call, computed, checks, commands)
            reply = commit() if self._append is None else self._append(commit)
            for log_change in computed.log:
                require_not_removed(log_change.stream, reply)
            if reply:
                return computed.record, True
        raise RegistryContended.over(title)

    def get(self, key: str, field: str) -> bytes | None:
        """The current record of a field; None if there is none."""
        return cast("bytes | None", self.client.hget(key, field))

    def all(self, key: str) -> list[tuple[str, bytes]]:
        """Every current record with its field, sorted by field."""
        records = cast("dict[bytes, bytes]", self.client.hgetall(key))
        return sorted((field.decode(), body) for field, body in records.items())

    def versions(self, key: str, field: str, last: int) -> list[bytes]:
        """The kept versions of a record, from the first up to ``last``."""
        fields = [version_of(field, version) for version in range(1, last + 1)]
        bodies = cast("list[bytes | None]", self.client.hmget(key, fields))
        return [body for body in bodies if body is not None]

    def _call_script(
        self,
        call: str,
        change: Change,
        checks: Sequence[Sequence[ScriptValue]],
        commands: Sequence[Sequence[ScriptValue]],
        *,
        shards: Sequence[str] = (),
        shard_count: int | str = "",
    ) -> Any:
        """Run the script for a change; returns its reply.

        ``call``: the key of this call; ``checks``: records that must be unchanged; ``shards``: keys of the log's
        shards, none if the log stays unchanged.
        """
        routes = [
            (users_key(log_change.stream), log_change.stream, log_change.user, log_change.route)
            for log_change in change.log
            if log_change.user
        ]
        controls = [
            (log_change.stream, log_change.control.KIND.value, encode_control(log_change.control))
            for log_change in change.log
            if log_change.control is not None
        ]
        stops = [("" if shard == change.spared else stops_key(shard),) for shard in range(len(shards) * change.stops)]
        word_lists = [[word for row in part for word in row] for part in (checks, routes, controls, stops)]
        stop = [[stream, kind, body.decode()] for stream, kind, body in controls] if change.stops else []
        return self._commit(
            call=call,
            call_ms=_CALL_MS,
            shards=shards,
            shard_count=shard_count,
            stop=orjson.dumps(stop),
            words=[word for part in (*word_lists, *commands) for word in (len(part), *part)],
        )


def version_of(field: str, version: int) -> str:
    """The hash field of one version of a record."""
    return f"{version}@{field}"


def _command_of(place: tuple[str, str], record: bytes) -> tuple[ScriptValue, ...]:
    return ("HSET", *place, record) if record else ("HDEL", *place)


class Records(ABC, Generic[_Form]):
    """The records of one kind by name, each read as the dataclass ``form``; a subclass declares the kind.

    ``key``: the hash of the current records; ``prefix``: how their fields begin, if several kinds share the hash;
    ``versions_key``: the hash of all versions, if they are kept; ``one``: the noun for a record in messages. A record
    whose ``is_active`` is false counts as deleted; a later record of the name continues its version numbers.
    """

    key: str
    versions_key = ""
    prefix = ""
    one: str
    form: type[_Form]

    def __init__(self, place: Client | RecordBook) -> None:
        self._book = place if isinstance(place, RecordBook) else RecordBook(place)
        self._client = self._book.client

    @abstractmethod
    def unknown(self, name: str, reason: str = "", **details: Any) -> NotFound:
        """The error for a name without a record, or without the requested version."""

    def read(self, body: bytes, name: str) -> _Form:
        return read_record(self.form, body, f"{self.one} {name!r}")

    def stored(self, name: str) -> _Form | None:
        """The stored record of a name, even if deleted; None if none is stored."""
        body = self._book.get(self.key, self.prefix + name)
        return None if body is None else self.read(body, name)

    def find(self, name: str) -> _Form | None:
        """The record of a name; None if none is stored or it is deleted."""
        record = self.stored(name)
        return record if _is_active(record) else None

    def get(self, name: str) -> _Form:
        """The record with a name; raises the error of ``unknown``."""
        return self.require(self.stored(name), name)

    def require(self, record: _Form | None, name: str, condition: Condition = ANY) -> _Form:
        """The given record, if it meets ``condition``; raises the error of ``unknown`` if it is None or deleted."""
        if record is None or not _is_active(record):
            raise self.unknown(name)
        condition.check_record(record)
        return record

    def ever(self) -> list[_Form]:
        """All records, sorted by name, including deleted ones."""
        bodies = self._book.all(self.key)
        start = len(self.prefix)
        return [self.read(body, field[start:]) for field, body in bodies if field.startswith(self.prefix)]

    def all(self) -> list[_Form]:
        """All records that are not deleted, sorted by name."""
        return [record for record in self.ever() if _is_active(record)]

    def version(self, name: str, version: int | None = None) -> _Form:
        """A version of a record, by default the current one."""
        current: Any = self.get(name)
        if version in (None, current.version):
            return cast(_Form, current)
        body = self._book.get(self.versions_key, version_of(self.prefix + name, version or 0))
        if body is None:
            reason = f"{self.one} {name!r} has no version {version}; it has 1 to {current.version}"
            raise self.unknown(name, reason, version=version)
        return self.read(body, name)

    def versions(self, name: str) -> list[_Form]:
        """The versions of a record that are kept, the current one last."""
        current: Any = self.get(name)
        bodies = self._book.versions(self.versions_key, self.prefix + name, current.version)
        return [self.read(body, name) for body in bodies]

    def insert(self, name: str, record: _Form, *commands: tuple[ScriptValue, ...]) -> None:
        """Store a new record, and run ``commands`` in the same script; an existing record stays unchanged."""
        new = Change(record=encode(**asdict(record)), commands=commands)
        self.apply(name, lambda stored: new if stored is None else None)

    def change(self, name: str, change: Callable[[_Form], _Form], condition: Condition = ANY) -> _Form:
        """Replace a record by the result of ``change``, and return it; ``change`` may run again, and may raise."""

        def changed(stored: _Form | None) -> Change:
            return Change(record=encode(**asdict(change(self.require(stored, name, condition)))))

        return self.apply(name, changed)[0]

    def apply(self, name: str, change: Callable[[_Form | None], Change | None]) -> tuple[_Form, bool]:
        """Change the stored record, even a deleted one; returns the record after the call, and whether it changed."""

        def changed(body: bytes | None) -> Change | None:
            return change(None if body is None else self.read(body, name))

        title, field = f"{self.one} {name!r}", self.prefix + name
        body, is_new = self._book.apply(self.key, field, changed, title, self.versions_key)
        return self.read(body, name), is_new

    def drop(self, name: str, condition: Condition = ANY, *commands: tuple[ScriptValue, ...]) -> None:
        """Remove a record, and run ``commands`` in the same script."""

        def changed(body: bytes | None) -> Change:
            self.require(None if body is None else self.read(body, name), name, condition)
            return Change(record=b"", commands=commands)

        self._book.apply(self.key, self.prefix + name, changed, f"{self.one} {name!r}")


def _is_active(record: object) -> bool:
    return record is not None and getattr(record, "is_active", True)


def surplus(records: Sequence[_Form], kept: int, is_over: Callable[[_Form], bool]) -> list[_Form] | None:
    """The oldest records with ``is_over`` to remove so that another fits; None if too few records are over."""
    excess = max(0, len(records) - kept + 1)
    ended = [record for record in records if is_over(record)][:excess]
    return ended if len(ended) == excess else None

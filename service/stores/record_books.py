"""Record books, which store records as JSON objects in Redis hashes and change them with optimistic locking.

A change is computed from the record that was read. One script commits the change, everything that depends on the
record, and the control records for the event log. If another writer has changed the record meanwhile, the script does
nothing and the change is computed again from the new record.
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

USES_KEY = PREFIX + "uses"

_ATTEMPTS = 50
_CALL_MS = 60_000

_Form = TypeVar("_Form", bound="DataclassInstance")

Checks: TypeAlias = tuple[tuple[str, str, bytes], ...]
"""Records that a change requires: (hash, field, value), where an empty value requires that there is no record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """The effect of a change on the event log of one stream.

    Attributes:
        control: The control record to append, or None to append nothing.
        user: Name of the operator whose route changes, or empty if no route changes.
        route: Name of the further key by which the operator reads the stream, or empty for the correlation key.
    """

    stream: str
    control: ControlRecord | None
    user: str = ""
    route: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a record, with all other changes that the same script commits.

    Attributes:
        record: The new record, or empty to remove the record.
        version: The version number under which a copy of the record is stored, or 0 to store no version.
        log: Effects on the event log, in order.
        commands: Further Redis commands to run in the script.
        checks: Further records that must be stored unchanged.
        stops: Whether the control records take effect before the backlog, so that its events are not matched.
        spared: A shard that has already suspended the operator and therefore needs no stop, or None.
    """

    record: bytes
    version: int = 0
    log: tuple[LogChange, ...] = ()
    commands: tuple[tuple[ScriptValue, ...], ...] = ()
    checks: Checks = ()
    stops: bool = False
    spared: int | None = None


Changing: TypeAlias = Callable[[bytes | None], Change | None]


class RecordBook:
    """Reads and changes records in Redis hashes, and keeps their versions.

    ``append`` is ``LayoutStore.append``. If it is None, no change may have an effect on the event log.
    """

    def __init__(self, client: Client, append: Callable[..., Any] | None = None) -> None:
        self.client = client
        self._append = append
        self._commit = register(client, "registry/commit")

    def apply(self, key: str, field: str, change: Changing, title: str, versions_key: str = "") -> tuple[bytes, bool]:
        """Change a record, and return the record after the call and whether it changed.

        ``change`` computes the change from the current record, or returns None to keep the record. If another writer
        intervenes, ``change`` is called again. After several attempts, raise ``RegistryContended``. ``title`` names the
        record in this error.

        If the reply of the script is lost, the client runs the script again. The second run changes nothing, because
        the first run has set a key for this call.
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
        """Return the current record of a field, or None if there is no record."""
        return cast("bytes | None", self.client.hget(key, field))

    def check(self, key: str, field: str) -> Checks:
        """Return a check that fails after a change or removal of a record, or if a missing record is stored."""
        return ((key, field, self.get(key, field) or b""),)

    def use_check(self, key: str, field: str) -> Checks:
        """Return a check that fails after the registration of another operator that uses the record (``counted``)."""
        return self.check(*uses_of(key, field))

    def all(self, key: str) -> list[tuple[str, bytes]]:
        """Return all current records of a hash as pairs of field and record, sorted by field."""
        records = cast("dict[bytes, bytes]", self.client.hgetall(key))
        return sorted((field.decode(), body) for field, body in records.items())

    def versions(self, key: str, field: str, last: int) -> list[bytes]:
        """Return the retained versions of a record, from the first version up to the version ``last``."""
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
        """Commit a change in one script, with its checks and commands, and return the reply of the script.

        ``call`` identifies this commit, so that a second run of the script changes nothing. ``shards`` are the keys of
        the log's shards in Redis, or empty if this book cannot change the log.
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
    """Return the hash field under which a version of a record is stored."""
    return f"{version}@{field}"


def counted(checks: Checks) -> tuple[tuple[ScriptValue, ...], ...]:
    """Return the commands that increase the use count of each record in ``checks`` when an operator is registered.

    A check of a use count itself (``use_check``) increases this count, so that of two such registrations at the same
    time, the second one is checked again.
    """
    places = ((key, field) if key == USES_KEY else uses_of(key, field) for key, field, _ in checks)
    return tuple(("HINCRBY", *place, 1) for place in places)


def uses_of(key: str, field: str) -> tuple[str, str]:
    """Return the hash and the field of a record's use count."""
    return USES_KEY, f"{key} {field}"


def _command_of(place: tuple[str, str], record: bytes) -> tuple[ScriptValue, ...]:
    return ("HSET", *place, record) if record else ("HDEL", *place)


class Records(ABC, Generic[_Form]):
    """The named records of one kind. Each subclass sets the attributes for its kind.

    A record whose ``is_active`` is false counts as deleted. It is still stored, so that a later record of the same name
    continues its version numbers.

    Attributes:
        key: Redis hash of the current records.
        versions_key: Redis hash of all versions, or empty if versions are not stored.
        prefix: Prefix of the fields in the hashes, if several kinds share them.
        one: Noun for a record in messages, for example "the table".
        form: Dataclass of the records.
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
        """Return the error for an unknown name, or for a name without the requested version."""

    def read(self, body: bytes, name: str) -> _Form:
        return read_record(self.form, body, f"{self.one} {name!r}")

    def stored(self, name: str) -> _Form | None:
        """Return the record of a name, even if it is deleted, or None if the name was never used."""
        body = self._book.get(self.key, self.prefix + name)
        return None if body is None else self.read(body, name)

    def find(self, name: str) -> _Form | None:
        """Return the record of a name, or None if there is no record or it is deleted."""
        record = self.stored(name)
        return record if _is_active(record) else None

    def get(self, name: str) -> _Form:
        """Return the record of a name. If there is no record or it is deleted, raise the error of ``unknown``."""
        return self.require(self.stored(name), name)

    def require(self, record: _Form | None, name: str, condition: Condition = ANY) -> _Form:
        """Return a record that exists and meets ``condition``.

        If ``record`` is None or deleted, raise the error of ``unknown``. If it does not meet ``condition``, raise
        ``PreconditionFailed``.
        """
        if record is None or not _is_active(record):
            raise self.unknown(name)
        condition.check_record(record)
        return record

    def ever(self) -> list[_Form]:
        """Return all records, sorted by name, including deleted records."""
        bodies = self._book.all(self.key)
        start = len(self.prefix)
        return [self.read(body, field[start:]) for field, body in bodies if field.startswith(self.prefix)]

    def all(self) -> list[_Form]:
        """Return all records that are not deleted, sorted by name."""
        return [record for record in self.ever() if _is_active(record)]

    def version(self, name: str, version: int | None = None) -> _Form:
        """Return a version of a record, by default the current version."""
        current: Any = self.get(name)
        if version in (None, current.version):
            return cast(_Form, current)
        body = self._book.get(self.versions_key, version_of(self.prefix + name, version or 0))
        if body is None:
            reason = f"{self.one} {name!r} has no version {version}; it has 1 to {current.version}"
            raise self.unknown(name, reason, version=version)
        return self.read(body, name)

    def versions(self, name: str) -> list[_Form]:
        """Return the retained versions of a record, the current version last."""
        current: Any = self.get(name)
        return self.versions_until(name, current.version)

    def versions_until(self, name: str, last: int) -> list[_Form]:
        """Return the retained versions of a record, which may be deleted, from the first up to the version ``last``."""
        bodies = self._book.versions(self.versions_key, self.prefix + name, last)
        return [self.read(body, name) for body in bodies]

    def use_check(self, name: str) -> Checks:
        """Return a check that fails after another registration that uses the record of a name."""
        return self._book.use_check(self.key, self.prefix + name)

    def current_check(self, name: str) -> Checks:
        """Return a check that fails after a change of a record. If there is no record or it is deleted, raise."""
        body = self._book.get(self.key, self.prefix + name) or b""
        self.require(self.read(body, name) if body else None, name)
        return ((self.key, self.prefix + name, body),)

    def insert(self, name: str, record: _Form, *commands: tuple[ScriptValue, ...]) -> None:
        """Store a new record, and run ``commands`` in the same script. If a record exists, change nothing."""
        new = Change(record=encode(**asdict(record)), commands=commands)
        self.apply(name, lambda stored: new if stored is None else None)

    def change(
        self,
        name: str,
        change: Callable[[_Form], _Form],
        condition: Condition = ANY,
        required: Callable[[], Checks] = tuple,
    ) -> _Form:
        """Replace a record by the result of ``change``, and return the new record.

        ``change`` and ``required`` may raise. If another writer intervenes, both are called again.
        """

        def changed(stored: _Form | None) -> Change:
            checks = required()
            return Change(record=encode(**asdict(change(self.require(stored, name, condition)))), checks=checks)

        return self.apply(name, changed)[0]

    def apply(self, name: str, change: Callable[[_Form | None], Change | None]) -> tuple[_Form, bool]:
        """Change the record of a name as ``RecordBook.apply`` does. ``change`` gets a deleted record, too."""

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
    """Return the records to remove before one more record is added to a store of at most ``kept`` records.

    ``records`` are all records, oldest first. The oldest of them for which ``is_over`` is true are returned. If there
    are too few of these, return None.
    """
    excess = max(0, len(records) - kept + 1)
    ended = [record for record in records if is_over(record)][:excess]
    return ended if len(ended) == excess else None

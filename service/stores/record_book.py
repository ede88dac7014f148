"""Changes of the registry: each is one atomic script that writes records and appends the control record to every shard.

A change is computed from the record that was read and lands only if that is still there; otherwise it is computed
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from service.errors import RegistryContended
from service.stores.connection import Client, register
from service.stores.event_log import EventLog
from service.stores.layout import FITTING
from service.stores.routes import REROUTING, ROUTES_KEY, users_key
from streams import LAYOUT_KEY, ControlRecord, encode_control, log_key

_ATTEMPTS = 5

# KEYS: current records, all versions, routes in use, who uses them, the layout, then every shard. ARGV: field, the
# record it replaces or '', the new record, field among the versions, kind, stream and body of the control record (no
# kind: there is none), '1' where the field is a pattern whose route may change, that route or '', the number of shards.
_COMMIT = (
    REROUTING
    + FITTING
    + """
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
local unfit = misfit(KEYS[5], ARGV[10])
if unfit then return unfit end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[4], ARGV[3])
if ARGV[8] == '1' then rerouted(KEYS[3], KEYS[4], ARGV[6], ARGV[1], ARGV[9]) end
for i = 6, ARGV[5] == '' and 5 or #KEYS do
  redis.call('XADD', KEYS[i], '*', 'kind', ARGV[5], 'stream', ARGV[6], 'body', ARGV[7])
end
return 1
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A new record and the control record that tells the pipeline.

    Attributes:
        record: As it is stored.
        version: Of what it is about.
        stream: Where it belongs.
        control: What the log says; None: it has no need to know.
        route: Of a pattern, the route that its events take from here on; empty for none of its own. None elsewhere.
    """

    record: bytes
    version: int
    stream: str
    control: ControlRecord | None
    route: str | None = None


Changing: TypeAlias = Callable[[bytes | None], Change | None]


class RecordBook:
    """Current records by field, and every version of them.

    Args:
        client: Where they are.
        log: Where control records go.
    """

    def __init__(self, client: Client, log: EventLog) -> None:
        self._client = client
        self._log = log
        self._commit = register(client, _COMMIT)

    def apply(self, key: str, versions_key: str, field: str, change: Changing) -> tuple[bytes, bool]:
        """Compute a change and commit it; again when another writer came first. None leaves the record as it is.

        A script whose reply was lost is sent again and finds its own record in place of the one it was to replace. So
        where the very version that was wanted is there, the change has landed.

        Returns:
            The record as it is now, and whether it changed.

        Raises:
            LogResharding: The log is being divided anew.
            RegistryContended: Others keep changing it.
        """
        for _ in range(_ATTEMPTS):
            current = self.get(key, field)
            wanted = change(current)
            if wanted is None:
                assert current is not None, "only an existing record can stay as it is"
                return current, False
            version_field = version_of(field, wanted.version)
            arguments: list[str | bytes | int] = [field, current or b"", wanted.record, version_field]
            arguments += _told(wanted)
            arguments += ["" if wanted.route is None else "1", wanted.route or ""]
            keys = [key, versions_key, ROUTES_KEY, users_key(wanted.stream), LAYOUT_KEY]

            def commit(shards: int, keys: list[str] = keys, arguments: list[str | bytes | int] = arguments) -> Any:
                return self._commit([*keys, *map(log_key, range(shards))], [*arguments, shards])

            if self._log.layout.fitted(commit):
                return wanted.record, True
            if self._client.hget(versions_key, version_field) == wanted.record:
                return wanted.record, True
        raise RegistryContended(f"{field!r} keeps being changed by others; try again")

    def get(self, key: str, field: str) -> bytes | None:
        """A current record."""
        return cast("bytes | None", self._client.hget(key, field))

    def all(self, key: str) -> list[tuple[str, bytes]]:
        """Every current record, by field."""
        records = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return sorted((field.decode(), body) for field, body in records.items())

    def versions(self, key: str, field: str, last: int) -> list[bytes]:
        """Every version of a record up to the last."""
        fields = [version_of(field, version) for version in range(1, last + 1)]
        bodies = cast("list[bytes | None]", self._client.hmget(key, fields))
        return [body for body in bodies if body is not None]


def _told(change: Change) -> list[str | bytes | int]:
    if change.control is None:
        return ["", change.stream, ""]
    return [change.control.KIND.value, change.stream, encode_control(change.control)]


def version_of(field: str, version: int) -> str:
    """Field of one version of a record."""
    return f"{version}@{field}"

"""The layout of the log, that is, the number of its shards and its generation.

A process divides events among the shards of its cached layout, and passes the number of shards to the script that
appends them. If the number has changed, the script does nothing and the process reads the layout again. While the log
is being resharded, the script does nothing either. So no event is appended to a wrong shard.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from service.errors import LogResharding, RecordFormatError, RegistryContended
from service.stores.connection import PREFIX, Client, register
from service.stores.log.pipeline_status import SHARDS_KEY, report_of
from service.stores.records import FORMAT_VERSION
from shards import OutputRow
from streams import DERIVED_PROMISES_KEY, LAYOUT_KEY, ControlRecord, encode_control, log_key

DERIVED_MARKS_KEY = PREFIX + "derived:marks"

_RESHARDED = 2  # format of a resharded log, whose states older releases could not find
_FORMATS = (FORMAT_VERSION, _RESHARDED)
_ATTEMPTS = 10
_MOVED, _RESHARDING = b"moved", b"resharding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of a log.

    Attributes:
        identity: Random id of the log, which distinguishes it from all other logs.
        generation: 0 before the first resharding, then the number of shards after the last resharding.
        former: Earlier numbers of shards, oldest first.
        unfinished: The number of shards that a resharding has begun to make and has not made. 0: no resharding is
            unfinished.
    """

    shards: int
    identity: str
    generation: int = 0
    former: tuple[int, ...] = ()
    unfinished: int = 0

    @property
    def former_generations(self) -> tuple[int, ...]:
        """The earlier generations of the layout, oldest first."""
        return (0, *self.former[1:]) if self.former else ()

    def homes(self, hashed_key: int) -> list[int]:
        """Return the shards that may have events of a key: its shard in the current and in each former layout."""
        return list(dict.fromkeys(hashed_key % shards for shards in (*self.former, self.shards)))


class LayoutStore:
    """Reads and changes the layout of the log. The layout is cached until a script reports a change.

    ``token`` is the token that ``hold`` has returned, or empty if this object does not hold the log.
    """

    def __init__(self, client: Client, shards: int) -> None:
        self.token = ""
        self._client = client
        self._initial_shards = shards
        self._open = register(client, "log/open_layout")
        self._release = register(client, "log/release_layout")
        self._switch = register(client, "log/switch_layout")
        self._cached: Layout | None = None

    def exists(self) -> bool:
        """Return whether the log exists. A service creates its log at the first start."""
        return bool(self._client.exists(LAYOUT_KEY))

    def known(self) -> Layout:
        """Return the cached layout. If it is not cached yet, read it, which creates a missing log."""
        if self._cached is None:
            self._cached = self.read()
        return self._cached

    def read(self) -> Layout:
        """Read the current layout. If the log does not exist, create it.

        If the log has a format that this release does not support, raise ``RecordFormatError``.
        """
        reply = self._open(format=FORMAT_VERSION, shards=self._initial_shards, identity=uuid.uuid4().hex)
        form, shards, identity, generation, former, unfinished = reply
        if int(form) not in _FORMATS:
            raise RecordFormatError(
                f"the event log has format {int(form)}; this release reads {' and '.join(map(str, _FORMATS))}",
                found=int(form),
            )
        self._cached = Layout(
            shards=int(shards),
            identity=identity.decode(),
            generation=int(generation or 0),
            former=tuple(map(int, (former or b"").split())),
            unfinished=int(unfinished or 0),
        )
        return self._cached

    def fitted(self, append: Callable[[int], Any]) -> Any:
        """Call ``append`` with the current number of shards, and return its reply.

        ``append`` runs a script and returns the script's reply. If the script reports that the number has changed, call
        ``append`` again with the new number. If the log is being resharded, raise ``LogResharding``.
        """
        for _ in range(_ATTEMPTS):
            reply = append(self.known().shards)
            if reply == _RESHARDING:
                raise _resharding()
            if reply != _MOVED:
                return reply
            self.read()
        raise RegistryContended("the number of shards is being changed; try again")

    def append(self, script: Callable[..., Any], **arguments: Any) -> Any:
        """Call a script that appends to every shard, and return its reply. Errors and retries are as in ``fitted``.

        ``arguments`` are the script's keys and arguments other than the shards.
        """

        def append(shards: int) -> Any:
            places = [log_key(shard) for shard in range(shards)]
            return script(shards=places, shard_count=shards, **arguments)

        return self.fitted(append)

    def require(self, reply: object) -> None:
        """Raise ``LogResharding`` if a script replied that the log is being resharded or has another layout."""
        if reply in (_RESHARDING, _MOVED):
            raise _resharding()

    def require_settled(self) -> None:
        """Raise ``LogResharding`` if the log is being resharded."""
        if self.is_held():
            raise _resharding()

    def is_held(self) -> bool:
        """Return whether a process holds the log, or was killed while it held the log."""
        return self._client.hexists(LAYOUT_KEY, "resharding")

    def hold(self, shards: int = 0) -> str:
        """Prevent all appends to the log until ``release`` or ``switch`` is called with the returned token.

        If another process holds the log, its token becomes invalid. ``shards`` is recorded as ``Layout.unfinished``
        until ``switch`` is called; 0 keeps the recorded number.
        """
        token = uuid.uuid4().hex
        self._client.hset(LAYOUT_KEY, items=["resharding", token, *(("unfinished", shards) if shards else ())])
        self.token = token
        return token

    def release(self, token: str) -> None:
        """Permit appends again, under the unchanged layout. If another process holds the log, this has no effect."""
        if token == self.token:
            self.token = ""
        self._release(token=token)

    def switch(self, token: str, rows: Sequence[OutputRow]) -> Layout:
        """Switch the log to another number of shards, release it, and return the new layout.

        ``token`` is the result of ``hold``. ``rows`` has a row of the kind ``stats`` for each new shard. The shard
        continues after the row's position. If another process holds the log, raise ``LogResharding``.
        """
        before, shards = self.known().shards, len(rows)
        is_switched = self._switch(
            reports=SHARDS_KEY,
            derived_marks=DERIVED_MARKS_KEY,
            derived_promises=DERIVED_PROMISES_KEY,
            token=token,
            format=_RESHARDED,
            shards_before=before,
            shards=shards,
            starts=[part for row in sorted(rows, key=lambda row: row.shard) for part in (row.position, report_of(row))],
        )
        if not is_switched and self.read().generation != shards:
            raise _resharding()  # neither this attempt nor an earlier one, whose reply was lost, has switched
        return self.read()


def arguments_of(control: ControlRecord | None) -> dict[str, str | bytes]:
    """Return ``kind`` and ``body`` for a script that appends a control record. For None, both are empty."""
    if control is None:
        return {"kind": "", "body": ""}
    return {"kind": control.KIND.value, "body": encode_control(control)}


def _resharding() -> LogResharding:
    return LogResharding(
        "the log is being divided into more shards and accepts nothing until that is done; send the same again "
        "later. If forestall reshard was killed, run it again: it starts over, and the log continues; with the current "
        "number of shards, it only lets the log continue"
    )

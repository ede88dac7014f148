"""The layout of the log: the number of its shards, and how it is changed.

A process that appends divides events among the shards that it knows, and passes their number to the script. The script
does nothing if the number has changed, or while the log is being resharded; then the process reads the layout again. So
no entry is appended to a wrong shard, however old the layout in a process's memory.
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
    """The layout of a log; ``identity`` distinguishes the log from all others.

    ``generation`` is 0 for the original shards, otherwise the number of shards after the last resharding. ``former``
    has the earlier numbers of shards, oldest first.
    """

    shards: int
    identity: str
    generation: int = 0
    former: tuple[int, ...] = ()

    @property
    def former_generations(self) -> tuple[int, ...]:
        """The generations before this one."""
        return (0, *self.former[1:]) if self.former else ()

    def homes(self, hashed_key: int) -> list[int]:
        """The shards that may hold events of a key, without repetition: its shards under former layouts first."""
        return list(dict.fromkeys(hashed_key % shards for shards in (*self.former, self.shards)))


class LayoutStore:
    """The layout of the log, cached until a script reports a change; ``token``: set while this object holds the log."""

    def __init__(self, client: Client, shards: int) -> None:
        self.token = ""
        self._client = client
        self._initial_shards = shards
        self._open = register(client, "log/open_layout")
        self._release = register(client, "log/release_layout")
        self._switch = register(client, "log/switch_layout")
        self._cached: Layout | None = None

    def known(self) -> Layout:
        """The cached layout; before it is cached, the result of ``read``, which creates a missing log."""
        if self._cached is None:
            self._cached = self.read()
        return self._cached

    def read(self) -> Layout:
        """The present layout; raises ``RecordFormatError`` for a log in a format that this release does not know."""
        reply = self._open(format=FORMAT_VERSION, shards=self._initial_shards, identity=uuid.uuid4().hex)
        form, shards, identity, generation, former = reply
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
        )
        return self._cached

    def fitted(self, append: Callable[[int], Any]) -> Any:
        """Call ``append``, which runs a script, with the present number of shards, and return the script's reply.

        Raises ``LogResharding`` while the log is being resharded; then nothing was appended.
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
        """Call a script that appends to every shard, by ``fitted``; ``arguments``: further keys and arguments."""

        def append(shards: int) -> Any:
            places = [log_key(shard) for shard in range(shards)]
            return script(shards=places, shard_count=shards, **arguments)

        return self.fitted(append)

    def require(self, reply: object) -> None:
        """Check a script's reply; raises ``LogResharding`` if the log is being resharded or its layout has changed."""
        if reply in (_RESHARDING, _MOVED):
            raise _resharding()

    def require_settled(self) -> None:
        """Check that the log is not being resharded; raises ``LogResharding``."""
        if self._client.hexists(LAYOUT_KEY, "resharding"):
            raise _resharding()

    def hold(self) -> str:
        """Prevent appends until ``release`` or ``switch`` is called with the returned token; ends any other hold."""
        token = uuid.uuid4().hex
        self._client.hset(LAYOUT_KEY, "resharding", token)
        self.token = token
        return token

    def release(self, token: str) -> None:
        """Allow appending again, under the unchanged layout; has no effect if another process holds the log."""
        if token == self.token:
            self.token = ""
        self._release(token=token)

    def switch(self, token: str, rows: Sequence[OutputRow]) -> Layout:
        """Switch the log to another number of shards, and release it.

        ``token`` is the result of ``hold``; ``LogResharding`` if another process holds the log. ``rows`` has for each
        new shard a row of the kind ``stats``; the shard continues after the row's position.
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
            raise _resharding()  # unless the reply was lost: then the layout shows the switch
        return self.read()


def arguments_of(control: ControlRecord | None) -> dict[str, str | bytes]:
    """The arguments ``kind`` and ``body`` of a script that appends a control record; both are empty for None."""
    if control is None:
        return {"kind": "", "body": ""}
    return {"kind": control.KIND.value, "body": encode_control(control)}


def _resharding() -> LogResharding:
    return LogResharding(
        "the log is being divided into more shards and accepts nothing until that is done; send the same again "
        "later. If forestall reshard was killed, run it again: it starts over, and the log continues"
    )

"""How the log is laid out: the number of its shards, and how it is changed.

A caller that appends has divided events among the shards that it knew. Every script that appends is given their
number and does nothing if it has changed, or while the log is being divided again; the caller then reads the layout. So
no entry goes to a shard that is not its own, however old the layout is that a process remembers.
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
from streams import LAYOUT_KEY

DERIVED_MARKS_KEY = PREFIX + "derived:marks"
DERIVED_PROMISES_KEY = PREFIX + "derived:promises"

_RESHARDED = 2  # format of a log that was divided anew: older releases do not know where its states begin
_FORMATS = (FORMAT_VERSION, _RESHARDED)
_ATTEMPTS = 10
_MOVED, _RESHARDING = b"moved", b"resharding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the log is laid out.

    Attributes:
        shards: Their number.
        identity: Tells this log from all others; given when it was first opened.
        generation: 0 for the shards that the log was opened with; else the number of those that it was divided into.
        former: The numbers of shards that it had before, oldest first.
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
        """The shards that hold the events of a key: those that it had before first, each once."""
        return list(dict.fromkeys(hashed_key % shards for shards in (*self.former, self.shards)))


class LayoutStore:
    """The layout of one log, remembered until a script says that there is another.

    Args:
        client: Where the log is.
        shards: Their number when the log is new.

    Attributes:
        token: While this store holds the log, what lets its process append derived events; else empty.
    """

    def __init__(self, client: Client, shards: int) -> None:
        self.token = ""
        self._client = client
        self._wanted_shards = shards
        self._open = register(client, "log/open_layout")
        self._release = register(client, "log/release_layout")
        self._switch = register(client, "log/switch_layout")
        self._known: Layout | None = None

    def known(self) -> Layout:
        """The layout as this process knows it; of a log that is there from now on.

        Raises:
            RecordFormatError: The log was written in a format that this release does not know.
            StoreUnavailable: Redis does not answer.
        """
        if self._known is None:
            self._known = self.read()
        return self._known

    def read(self) -> Layout:
        """The layout as it is now.

        Raises:
            RecordFormatError: The log was written in a format that this release does not know.
        """
        found = self._open(
            layout=LAYOUT_KEY, format=FORMAT_VERSION, shards=self._wanted_shards, identity=uuid.uuid4().hex
        )
        form, shards, identity, generation, former = found
        if int(form) not in _FORMATS:
            raise RecordFormatError(
                f"the event log has format {int(form)}; this release reads {' and '.join(map(str, _FORMATS))}",
                found=int(form),
            )
        self._known = Layout(
            shards=int(shards),
            identity=identity.decode(),
            generation=int(generation or 0),
            former=tuple(map(int, (former or b"").split())),
        )
        return self._known

    def fitted(self, append: Callable[[int], Any]) -> Any:
        """What a script that appends returns for the current number of shards.

        Args:
            append: Calls it for so many shards; it returns what ``misfit`` says, or its own.

        Raises:
            LogResharding: The log is being divided anew; nothing was appended.
        """
        for _ in range(_ATTEMPTS):
            reply = append(self.known().shards)
            if reply == _RESHARDING:
                raise _resharding()
            if reply != _MOVED:
                return reply
            self.read()
        raise RegistryContended("the number of shards is being changed; try again")

    def require(self, reply: object) -> None:
        """Check what a script says that may append under the known layout only.

        Args:
            reply: What the script returned.

        Raises:
            LogResharding: The log is being divided anew, or was since this process read its layout.
        """
        if reply in (_RESHARDING, _MOVED):
            raise _resharding()

    def require_settled(self) -> None:
        """Check that the log is not being divided anew.

        Raises:
            LogResharding: It is.
        """
        if self._client.hexists(LAYOUT_KEY, "resharding"):
            raise _resharding()

    def hold(self) -> str:
        """Let nothing be appended until ``release`` or ``switch``; who held it before holds it no more.

        Returns:
            A token for these.
        """
        token = uuid.uuid4().hex
        self._client.hset(LAYOUT_KEY, "resharding", token)
        self.token = token
        return token

    def release(self, token: str) -> None:
        """Let entries be appended again, with the layout as it is; nothing happens where another holds the log."""
        if token == self.token:
            self.token = ""
        self._release(layout=LAYOUT_KEY, token=token)

    def switch(self, token: str, rows: Sequence[OutputRow]) -> Layout:
        """Divide the log into other shards from here on, and release it.

        Args:
            token: That of ``hold``.
            rows: Of every shard from now on a row of the kind ``stats``: it goes on behind that position.

        Raises:
            LogResharding: Another has the log on hold.
        """
        before, shards = self.known().shards, len(rows)
        is_switched = self._switch(
            layout=LAYOUT_KEY,
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
            raise _resharding()  # a reply that was lost is no failure: the layout says so
        return self.read()


def _resharding() -> LogResharding:
    return LogResharding(
        "the log is being divided into more shards and accepts nothing until that is done; send the same again "
        "later. If forestall reshard was killed, run it again: it starts over, and the log continues"
    )

"""The pipeline's sign of life."""

from __future__ import annotations

from typing import cast

from service.stores.connection import PREFIX, Client

HEARTBEAT_KEY = PREFIX + "pipeline:heartbeat"
STARTING_KEY = PREFIX + "pipeline:starting"
FAILURE_KEY = PREFIX + "pipeline:failure"

_STARTING_S = 30


class Heartbeat:
    """When the pipeline last said that it is well."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def beat(self, now_us: int) -> None:
        """The pipeline is well now."""
        self._client.set(HEARTBEAT_KEY, now_us)

    def clear(self) -> None:
        """The pipeline begins anew: earlier signs count no more."""
        self._client.delete(HEARTBEAT_KEY, STARTING_KEY)

    def busy(self, doing: str) -> None:
        """The pipeline starts, or a micro-batch takes long; forgotten unless repeated within half a minute.

        Args:
            doing: In words, such as "starting Spark".
        """
        self._client.set(STARTING_KEY, doing.encode(), ex=_STARTING_S)

    def is_doing(self) -> str | None:
        """What the pipeline is busy with while it does not beat; None: unknown."""
        value = cast("bytes | None", self._client.get(STARTING_KEY))
        return None if value is None else value.decode()

    def failed(self, reason: str) -> None:
        """Remember why the pipeline ended, until it is well again."""
        self._client.set(FAILURE_KEY, reason.encode())

    def recovered(self) -> None:
        """Forget why the pipeline ended, and what it was busy with."""
        self._client.delete(FAILURE_KEY, STARTING_KEY)

    def failure(self) -> str | None:
        """Why the pipeline ended last; None: it has been well since."""
        value = cast("bytes | None", self._client.get(FAILURE_KEY))
        return None if value is None else value.decode()

    def last_us(self) -> int | None:
        """Microseconds UTC of the last sign; None when there never was one."""
        value = cast("bytes | None", self._client.get(HEARTBEAT_KEY))
        return None if value is None else int(value)

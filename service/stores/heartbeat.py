"""The pipeline's heartbeat in Redis, and the reason of the pipeline's failure."""

from __future__ import annotations

from typing import cast

from service.stores.connection import PREFIX, Client

HEARTBEAT_KEY = PREFIX + "pipeline:heartbeat"
STARTING_KEY = PREFIX + "pipeline:starting"
FAILURE_KEY = PREFIX + "pipeline:failure"

_STARTING_S = 30


class Heartbeat:
    """Stores the pipeline's heartbeat, its task while it starts, and the reason why the last pipeline ended."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def beat(self, now_us: int) -> None:
        """Note that the pipeline is healthy."""
        self._client.set(HEARTBEAT_KEY, now_us)

    def clear(self) -> None:
        """Delete the heartbeat of an earlier pipeline, because a new one begins."""
        self._client.delete(HEARTBEAT_KEY, STARTING_KEY)

    def busy(self, doing: str) -> None:
        """Store the pipeline's current task ("starting Spark"); expires unless repeated within half a minute."""
        self._client.set(STARTING_KEY, doing.encode(), ex=_STARTING_S)

    def is_doing(self) -> str | None:
        """The pipeline's current task while it has no heartbeat; None: unknown."""
        value = cast("bytes | None", self._client.get(STARTING_KEY))
        return None if value is None else value.decode()

    def failed(self, reason: str) -> None:
        """Store why the pipeline ended, until it is healthy again."""
        self._client.set(FAILURE_KEY, reason.encode())

    def recovered(self) -> None:
        """Delete the reason of the pipeline's last end, and its current task."""
        self._client.delete(FAILURE_KEY, STARTING_KEY)

    def failure(self) -> str | None:
        """The reason of the pipeline's last end; None if it has recovered since."""
        value = cast("bytes | None", self._client.get(FAILURE_KEY))
        return None if value is None else value.decode()

    def last_us(self) -> int | None:
        """Time of the last heartbeat, microseconds UTC; None before the first."""
        value = cast("bytes | None", self._client.get(HEARTBEAT_KEY))
        return None if value is None else int(value)

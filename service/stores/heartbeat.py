"""The pipeline's heartbeat in Redis, and the reason for the pipeline's last failure."""

from __future__ import annotations

from typing import cast

from service.stores.connection import PREFIX, Client

HEARTBEAT_KEY = PREFIX + "pipeline:heartbeat"
STARTING_KEY = PREFIX + "pipeline:starting"
FAILURE_KEY = PREFIX + "pipeline:failure"

STARTING_S = 30


class Heartbeat:
    """Stores the pipeline's heartbeat, its current start-up task, and the reason for its last failure."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def beat(self, now_us: int) -> None:
        """Store the current time as the heartbeat of a healthy pipeline."""
        self._client.set(HEARTBEAT_KEY, now_us)

    def clear(self) -> None:
        """Delete the heartbeat and the start-up task of the last pipeline before a new pipeline starts."""
        self._client.delete(HEARTBEAT_KEY, STARTING_KEY)

    def busy(self, doing: str) -> None:
        """Store the pipeline's current start-up task (such as "starting Spark"), which expires in half a minute."""
        self._client.set(STARTING_KEY, doing.encode(), ex=STARTING_S)

    def is_doing(self) -> str | None:
        """Return the pipeline's current start-up task, or None if it is unknown."""
        value = cast("bytes | None", self._client.get(STARTING_KEY))
        return None if value is None else value.decode()

    def failed(self, reason: str) -> None:
        """Store the reason for the pipeline's failure, until the pipeline is healthy again."""
        self._client.set(FAILURE_KEY, reason.encode())

    def recovered(self) -> None:
        """Delete the reason for the last failure, and the start-up task, because the pipeline is healthy again."""
        self._client.delete(FAILURE_KEY, STARTING_KEY)

    def failure(self) -> str | None:
        """Return the reason for the pipeline's last failure, or None if the pipeline has recovered since."""
        value = cast("bytes | None", self._client.get(FAILURE_KEY))
        return None if value is None else value.decode()

    def last_us(self) -> int | None:
        """Return the time of the last heartbeat in microseconds UTC, or None before the first heartbeat."""
        value = cast("bytes | None", self._client.get(HEARTBEAT_KEY))
        return None if value is None else int(value)

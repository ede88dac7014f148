"""The worst gap of a shard under continuous tasks: the longest time without progress although the log has new entries.

A gap counts only while at least one task is alive.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event as Flag
from threading import Thread
from typing import cast

import redis

from pipeline.continuous.keys import LOADED_KEY, MEMBERS_KEY
from pipeline.records import EPOCHS_KEY
from pipeline.sources.log_reading import POSITIONS_KEY
from streams import LAYOUT_KEY, TASKS_OWNERS_KEY, log_key, position_order

_EVERY_S = 0.05
_BLIND_S = 0.5  # seconds without a sample, because the server was down; then gaps start again


class ShardGaps:
    """Samples the positions and the log ends of all shards in a thread.

    A gap counts while at least one task is connected and has loaded the state of a shard that it owns.

    Args:
        url: A function that returns the URL of the Redis server, which may change.

    Attributes:
        worst_s: The worst gap, by the cause that was current when the gap grew.
        cause: The current cause, such as the kind of the last killed process.
    """

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        # By shard: its position, and the time since which the log has had entries after this position.
        self._since: dict[int, tuple[bytes, float]] = {}
        self._sampled = 0.0
        self._over = Flag()
        self._thread = Thread(target=self._run, name="shard-gaps", daemon=True)
        self.worst_s: defaultdict[str, float] = defaultdict(float)
        self.cause = "none"

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            with suppress(redis.RedisError), redis.Redis.from_url(self._url(), socket_timeout=2.0) as server:
                shards = int(cast("bytes", server.hget(LAYOUT_KEY, "shards")))
                while not self._over.wait(_EVERY_S):
                    self._sample(server, range(shards))

    def _sample(self, server: redis.Redis, shards: Sequence[int]) -> None:
        reading = server.pipeline(transaction=False)
        for key in (POSITIONS_KEY, EPOCHS_KEY, LOADED_KEY, TASKS_OWNERS_KEY):
            reading.hgetall(key)
        reading.zrange(MEMBERS_KEY, 0, -1)
        reading.client_list(_type="normal")
        for shard in shards:
            reading.xrevrange(log_key(shard), count=1)
        positions, epochs, loaded, owners, members, clients, *lasts = reading.execute()
        connected = {client["name"].encode() for client in clients} & set(members)
        lives = any(loaded.get(one) == epochs.get(one) and owners.get(one) in connected for one in loaded)
        now = time.monotonic()
        if now > self._sampled + _BLIND_S or not lives:
            self._since.clear()
        self._sampled = now
        for shard, last in zip(shards, lasts, strict=True):
            at = positions.get(b"position:%d" % shard, b"0-0")
            known, since = self._since.get(shard, (at, now))
            has_news = bool(last) and position_order(last[0][0].decode()) > position_order(at.decode())
            since = since if has_news and known == at else now
            self._since[shard] = at, since
            self.worst_s[self.cause] = max(self.worst_s[self.cause], now - since)

"""Leases of shards, which determine the task that advances a shard, and its epoch."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import cast

import redis

from pipeline.continuous.keys import LOADED_KEY, MEMBERS_KEY, WAKE_KEY
from pipeline.records import EPOCHS_KEY
from streams import TASKS_JOB_KEY, TASKS_OWNERS_KEY, ScriptInput, read_script

LIFE_S = 5.0
"""Seconds after its last heartbeat at which a task counts as dead."""

CONNECTED_S = 4.0
"""Seconds within which tasks reconnect to a restarted server."""

_CLIENT_NAME = re.compile(rb" name=(\S+)")
_BEAT_S = 2.0
_ENDED_S = 0.02


class Leases:
    """The leases of one task, the ``member``, on shards. A shard's lease has an epoch, which rises with each new owner.

    ``server`` is a connection that has the member's name (``CLIENT SETNAME``).
    """

    def __init__(self, server: redis.Redis, job: str, member: str, shards: int, life_s: float = LIFE_S) -> None:
        self._script = read_script("pipeline.continuous", "lease")
        self._run = server.register_script(self._script.text)
        self._server = server
        self._member_inputs: dict[str, ScriptInput] = {
            "id": job,
            "member": member,
            "life_ms": round(life_s * 1_000),
            "shards": shards,
        }
        self.member = member

    def renew(self, states: Mapping[int, int] = MappingProxyType({})) -> dict[int, int] | None:
        """Renew the leases. Return the epoch of each shard that the task now owns, or None if the job has to stop.

        ``states`` has, for each loaded state, the shard and the epoch under which the state was loaded.
        """
        keys, args = self._script.bind(
            {
                "job": TASKS_JOB_KEY,
                "epochs": EPOCHS_KEY,
                "owners": TASKS_OWNERS_KEY,
                "members": MEMBERS_KEY,
                "loaded": LOADED_KEY,
                "wake": WAKE_KEY,
                "states": [part for state in states.items() for part in state],
                **self._member_inputs,
            }
        )
        reply = cast("list[int] | None", self._run(keys, args))
        return None if reply is None else dict(zip(reply[::2], reply[1::2], strict=True))

    def leave(self) -> None:
        """End the membership, so that other tasks take the shards."""
        self._server.zrem(MEMBERS_KEY, self.member)
        wake(self._server)


class Beats:
    """Sends a member's heartbeat from another thread, so that a step may take longer than a lease is valid."""

    def __init__(self, server: redis.Redis, member: str) -> None:
        self._server = server
        self._member = member
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="beats", daemon=True)
        self._thread.start()

    def _repeat(self) -> None:
        while not self._over.wait(_BEAT_S):
            with suppress(redis.RedisError):  # the task meets the same error itself
                seconds, micros = self._server.time()
                self._server.zadd(MEMBERS_KEY, {self._member: seconds * 1_000 + micros // 1_000}, xx=True)

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def fence(server: redis.Redis, shards: int) -> None:
    """End all jobs. The server then refuses the steps that their tasks are about to write."""
    server.delete(TASKS_JOB_KEY)
    raise_epochs(server, shards)


def raise_epochs(server: redis.Redis, shards: int) -> None:
    """Raise the epochs of all leases. Steps in progress are then refused, and the owners load the shards again."""
    changes = server.pipeline()
    for shard in range(shards):
        changes.hincrby(EPOCHS_KEY, str(shard), 1)
    changes.execute()


def begin_job(server: redis.Redis, job: str) -> None:
    """Begin a new job whose tasks take all shards. Tasks of an earlier job stop, and their steps are refused."""
    changes = server.pipeline()
    changes.set(TASKS_JOB_KEY, job)
    changes.delete(TASKS_OWNERS_KEY, MEMBERS_KEY, LOADED_KEY)
    changes.execute()


def end_job(server: redis.Redis, job: str) -> None:
    """Ask the tasks of a job to finish their steps and to end."""
    if server.get(TASKS_JOB_KEY) == job.encode():
        server.delete(TASKS_JOB_KEY)
        wake(server)


def wake(server: redis.Redis) -> None:
    """Make idle tasks renew their leases now."""
    server.xadd(WAKE_KEY, {"member": ""}, maxlen=1, approximate=False)


def remove_unconnected(server: redis.Redis, least_uptime_s: float = 0.0) -> list[str]:
    """Remove the members that have no connection to Redis, and return them. Other tasks then take their shards.

    No member is removed while the server's uptime is below ``least_uptime_s``, because members reconnect after a
    restart.
    """
    reading = server.pipeline(transaction=False)
    reading.zrange(MEMBERS_KEY, 0, -1)
    reading.execute_command("CLIENT", "LIST", "TYPE", "normal")  # type: ignore[no-untyped-call]  # text: only names are needed
    members, clients = cast("tuple[list[bytes], bytes]", reading.execute())
    removed = sorted(name.decode() for name in set(members).difference(_CLIENT_NAME.findall(clients)))
    if not removed or server.info("server")["uptime_in_seconds"] < least_uptime_s:
        return []
    server.zrem(MEMBERS_KEY, *removed)
    wake(server)
    return removed


def has_begun(server: redis.Redis) -> bool:
    """Check whether any task of the job has taken shards."""
    return bool(server.exists(TASKS_OWNERS_KEY))


def await_end(server: redis.Redis, patience_s: float) -> None:
    """Wait until the job has no members, or ``patience_s`` have passed."""
    deadline = time.monotonic() + patience_s
    while server.zcard(MEMBERS_KEY) and time.monotonic() < deadline:
        remove_unconnected(server)
        time.sleep(_ENDED_S)


def are_all_owned(server: redis.Redis, shards: int, *, are_loaded: bool) -> bool:
    """Check whether each shard has a living owner.

    With ``are_loaded``, the owner must also have loaded the shard's state.
    """
    reading = server.pipeline(transaction=False)
    reading.hgetall(EPOCHS_KEY)
    reading.hgetall(LOADED_KEY)
    reading.hgetall(TASKS_OWNERS_KEY)
    reading.zrange(MEMBERS_KEY, 0, -1)
    epochs, loaded, owners, members = reading.execute()
    names = [str(shard).encode() for shard in range(shards)]
    is_loaded = all(loaded.get(name) is not None and loaded[name] == epochs.get(name) for name in names)
    return (is_loaded or not are_loaded) and all(owners.get(name) in members for name in names)

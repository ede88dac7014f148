"""The connection to Redis. A failed command is retried with backoff, and finally raises ``StoreUnavailable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import BusyLoadingError, OutOfMemoryError, ReadOnlyError, RedisError, ResponseError
from redis.retry import Retry

from service.errors import StoreFull, StoreUnavailable
from streams import (
    APPENDED_KEY,
    DERIVED_PROMISES_KEY,
    LAYOUT_KEY,
    NOTED_KEY,
    ROUTES_KEY,
    STREAM_TIMES_KEY,
    STREAMS_KEY,
    TASKS_JOB_KEY,
    ScriptInput,
    read_script,
)

PREFIX = "forestall:"

_LOG_KEYS = {
    "appended": APPENDED_KEY,
    "job": TASKS_JOB_KEY,
    "layout": LAYOUT_KEY,
    "noted": NOTED_KEY,
    "promises": DERIVED_PROMISES_KEY,
    "routes": ROUTES_KEY,
    "streams": STREAMS_KEY,
    "times": STREAM_TIMES_KEY,
}
_CONNECT_TIMEOUT_S = 2.0
_ANSWER_TIMEOUT_S = 10.0
_BACKOFF_BASE_S = 0.05
_BACKOFF_CAP_S = 0.5
_UNAVAILABLE = (redis.ConnectionError, redis.TimeoutError, BusyLoadingError, ReadOnlyError)
_FULL = "OOM command not allowed"  # in scripts, servers before Redis 7 report this text within another error
_UNWRITTEN = "MISCONF"  # the server rejects writes because it cannot write its files


class Client(redis.Redis):
    """A thread-safe Redis client whose commands raise ``StoreUnavailable`` if all retries fail.

    If the server has reached its ``maxmemory``, a command raises the subclass ``StoreFull``.
    """

    def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except _UNAVAILABLE as error:
            raise StoreUnavailable(
                f"Redis rejects the command {str(args[0])!r} now ({error}); try again in a moment"
            ) from error
        except ResponseError as error:
            if _UNWRITTEN in str(error):
                raise StoreUnavailable(
                    f"Redis rejects the command {str(args[0])!r}, as it cannot write its files ({error}); free space "
                    "on its disk"
                ) from error
            if not isinstance(error, OutOfMemoryError) and _FULL not in str(error):
                raise
            raise StoreFull(
                f"Redis has reached its maxmemory and rejects the command {str(args[0])!r}; raise maxmemory, "
                f"or free memory: it holds alerts and the log"
            ) from error


def connect(url: str, *, retries: int = 3) -> Client:
    """Return a client for ``url`` (``redis://``, ``rediss://`` or ``unix://``), which connects at its first command.

    If the connection fails, the command is sent again up to ``retries`` times, with growing pauses of at most half a
    second. Therefore every script of this package must be idempotent.
    """
    try:
        client = Client.from_url(
            url,
            protocol=2,
            retry=Retry(ExponentialWithJitterBackoff(cap=_BACKOFF_CAP_S, base=_BACKOFF_BASE_S), retries),
            socket_connect_timeout=_CONNECT_TIMEOUT_S,
            socket_timeout=_ANSWER_TIMEOUT_S,
        )
        return cast(Client, client)
    except ValueError as error:
        raise StoreUnavailable(f"the Redis URL cannot be read: {error}") from error


def register(client: Client, name: str, **keys: str) -> Callable[..., Any]:
    """Return a function that runs the script ``scripts/<name>.lua``.

    The function takes the script's keys and arguments as keyword arguments. The keys in ``keys`` and the keys of the
    event log are the default values. A call with a missing or unknown keyword raises ``TypeError``. If the server has
    not loaded the script yet, the client sends the script's text.
    """
    script = read_script("service.stores", f"scripts/{name}")
    run = client.register_script(script.text)
    defaults = {key_name: key for key_name, key in {**_LOG_KEYS, **keys}.items() if key_name in script.names}

    def call(**inputs: ScriptInput) -> Any:
        return run(*script.bind({**defaults, **inputs}))

    return call


def is_answering(client: Client) -> bool:
    """Return whether the server is up and has loaded its data."""
    try:
        client.ping()
    except StoreUnavailable:
        return False
    return True


def server_folder(client: Client) -> str | None:
    """Return the data folder of the client's server, or None if the server does not report its configuration."""
    try:
        return str(client.config_get("dir").get("dir"))
    except (StoreUnavailable, RedisError):
        return None

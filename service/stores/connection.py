"""The connection to Redis; commands are retried with backoff, and finally raise ``StoreUnavailable``."""

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
_UNWRITTEN = "MISCONF"  # the server cannot write its files, and rejects writes meanwhile


class Client(redis.Redis):
    """A Redis client whose commands raise ``StoreUnavailable`` if all retries fail; safe to share between threads.

    A command raises ``StoreFull``, a subclass, if the server has reached its ``maxmemory``.
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
    """A client for ``url`` (``redis://``, ``rediss://`` or ``unix://``); connects at the first command.

    A command whose connection fails is sent again up to ``retries`` times, with growing pauses of at most half a
    second, so every script of this package must be able to run twice without harm.
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
    """The script ``scripts/<name>.lua`` as a function of its keys and arguments, which are passed by name.

    Calls may omit the keys in ``keys``, and the keys of the event log, which are the same for all scripts. The text of
    the script is sent to a server without the script. A missing or unknown name raises ``TypeError``.
    """
    script = read_script("service.stores", f"scripts/{name}")
    run = client.register_script(script.text)
    defaults = {key_name: key for key_name, key in {**_LOG_KEYS, **keys}.items() if key_name in script.names}

    def call(**inputs: ScriptInput) -> Any:
        return run(*script.bind({**defaults, **inputs}))

    return call


def is_answering(client: Client) -> bool:
    """Whether the server is up and has loaded its data."""
    try:
        client.ping()
    except StoreUnavailable:
        return False
    return True


def server_folder(client: Client) -> str | None:
    """The data folder of the client's server; None if the server does not report it."""
    try:
        return str(client.config_get("dir").get("dir"))
    except (StoreUnavailable, RedisError):
        return None

"""Outbound connections for webhooks, which are opened to permitted addresses only.

Addresses are checked below HTTP, where a connection is opened, so that every connection is to a checked address. TLS
still verifies the certificate for the host's name. Redirects, proxies from the environment and cookies are not used.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import httpcore

from service.targets import Resolver, TargetRules, permitted_addresses, resolve

_MOST_ADDRESSES_TRIED = 4


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """A network backend that connects to permitted addresses only.

    Host names are resolved in ``threads``, because resolution may be slow.
    """

    def __init__(self, rules: TargetRules, resolver: Resolver, threads: ThreadPoolExecutor) -> None:
        self._rules = rules
        self._resolver = resolver
        self._threads = threads
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of the host.

        If an address of the host is not permitted, raise ``WebhookRefused``. If no address accepts the connection,
        raise ``httpcore.ConnectError`` or ``ConnectTimeout``.
        """
        loop = asyncio.get_running_loop()
        addresses = await loop.run_in_executor(
            self._threads, permitted_addresses, host, port, self._rules, self._resolver
        )
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses[:_MOST_ADDRESSES_TRIED]:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raise ``httpcore.ConnectError``, because webhooks must not connect to sockets of this machine."""
        raise httpcore.ConnectError("webhooks go to hosts, not to sockets of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class Outbound:
    """An asynchronous context manager that opens a new connection to a permitted address for each request.

    Connections are not reused, for three reasons. The address is checked for each attempt. No request uses a
    connection that the receiver is about to close. And requests to one host do not wait for an idle connection, as they
    would in a pool. By default, certificates must be issued by public authorities.
    """

    def __init__(
        self,
        rules: TargetRules,
        *,
        connections: int,
        resolver: Resolver = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._threads = ThreadPoolExecutor(max_workers=min(connections, 64), thread_name_prefix="resolver")
        self.pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=connections,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(rules, resolver, self._threads),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.pool.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)

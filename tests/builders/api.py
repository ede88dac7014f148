"""Test helpers: the application on a real port of this machine."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import unquote

import httpx
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette

from api import create_app
from api.protocol import protocol_with
from api.stopping import watch_stop
from api.validators import declared_tag
from tests.builders.service import settings_for

_START_S = 300.0


class _Server(uvicorn.Server):
    """A uvicorn server that sets an event once it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()


_DESCRIBING = threading.Lock()  # clients of several threads may ask for the description first


@cache
def unserved_app() -> FastAPI:
    """An application for tests of its routes and of its description, which take seconds to make."""
    return create_app(settings_for("redis://127.0.0.1:1/0"))


@cache
def _described_codes() -> list[tuple[re.Pattern[str], dict[str, dict[str, list[str]]]]]:
    """The paths of the description, the most special first, with the codes of problems by method and status."""
    paths = unserved_app().openapi()["paths"]
    described = []
    for path in sorted(paths, key=lambda path: (path.count("{"), -len(path))):
        pattern = re.sub(r"\\{\w+\\}", "(.+)" if path.endswith("}") or "{name}" in path else "([^/]+)", re.escape(path))
        codes = {
            verb.upper(): {status: answer.get("x-codes", []) for status, answer in one["responses"].items()}
            for verb, one in paths[path].items()
        }
        described.append((re.compile(pattern), codes))
    return described


def check_code(answer: httpx.Response) -> None:
    """Check, as a hook of a client, that the description has the code of a problem for its operation and status."""
    if answer.status_code < 400 or answer.headers.get("content-type") != "application/problem+json":
        return
    with _DESCRIBING:
        described = _described_codes()
    for path, codes in described:
        statuses = codes.get(answer.request.method)
        if statuses is not None and path.fullmatch(unquote(answer.request.url.path)):
            answer.read()
            code, status = answer.json()["code"], str(answer.status_code)
            assert status not in statuses or code in statuses[status], (
                answer.request.method,
                path.pattern,
                status,
                code,
            )
            return


def tag(answer: httpx.Response) -> str:
    """The tag of an answer as conditional changes compare it, without the digest of its body."""
    return f'"{declared_tag(answer.headers["etag"].strip(chr(34)))}"'


@contextmanager
def serving(app: Starlette, port: int = 0, read_timeout_s: float = 30.0) -> Iterator[str]:
    """Serve an application on loopback (port 0: free) in a thread while the block runs; yields its URL."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # so that asyncio does not delay small packets
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        http = protocol_with(read_timeout_s)
        server = _Server(uvicorn.Config(app, http=http, log_config=None, access_log=False, lifespan="on", ws="none"))
        watch_stop(app, server)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="api")
        thread.start()
        try:
            if not server.is_listening.wait(_START_S):
                raise TimeoutError("the application does not start; its log says why")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

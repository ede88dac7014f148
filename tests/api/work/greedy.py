"""An application whose operations want too much; made in worker processes."""

import asyncio
import os
import signal
import time

from fastapi import FastAPI, Response

MIB = 1024 * 1024
held: list[bytearray] = []


def make(settings):
    app = FastAPI()

    @app.get("/id")
    def tell_id():
        return os.getpid()

    @app.get("/sleep")
    async def sleep(mib: int = 0):
        held.append(bytearray(mib * MIB))
        await asyncio.sleep(3600)

    @app.get("/spin")
    def spin():
        while True:
            time.sleep(0)

    @app.get("/memory")
    def take_memory(mib: int, *, is_kept: bool = False):
        block = bytearray(mib * MIB)
        if is_kept:
            held.append(block)
        return len(block)

    @app.get("/answer")
    def answer(count: int):
        return Response(b"x" * count)

    @app.get("/bug")
    def fail():
        raise ValueError("a bug")

    @app.get("/death")
    def die(status: int):
        os.kill(os.getpid(), -status) if status < 0 else os._exit(status)

    return app


def make_killed(settings):
    os.kill(os.getpid(), signal.SIGKILL)

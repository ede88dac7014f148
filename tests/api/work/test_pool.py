"""Worker processes end what is beyond a limit, and nothing else."""

import asyncio
import importlib
import os
import signal
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from api.errors import TooBusy, WorkFailed
from api.work import Job, WorkPool
from api.work.jobs import Limit
from api.work.worker import data_bytes
from tests.builders.service import settings_for
from tests.builders.waiting import until

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def greedy_is_found(monkeypatch):
    """Workers import the application by its name, on the path of this process."""
    monkeypatch.syspath_prepend(Path(__file__).parent)


def job(target):
    path, _, query = target.partition("?")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    return Job(scope=scope, state={}, body=b"")


@asynccontextmanager
async def pool(**limits):
    """A pool of one process, unless more are wanted."""
    work = {"processes": 1, "max_memory_bytes": 256 * MIB, **limits}
    make = importlib.import_module("greedy").make
    async with WorkPool(make, settings_for("redis://127.0.0.1:1", work=work)) as made:
        yield made


def answers(*targets, **limits):
    async def ask():
        async with pool(**limits) as workers:
            return [await workers.answer(job(target)) for target in targets]

    return asyncio.run(ask())


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_answers_again_and_again_and_ends_with_the_pool():
    first, second = answers("/id", "/id")
    assert (first.status, first.body) == (second.status, second.body)
    assert first.status == 200
    assert int(first.body) != os.getpid()
    assert not is_running(int(first.body))


@pytest.mark.parametrize("target", ["/sleep", "/spin"])
def test_what_takes_too_long_is_killed_and_another_process_goes_on(target):
    before, beyond, after = answers("/id", target, "/id", max_time_s=2.0)
    assert beyond.beyond is Limit.TIME
    assert after.status == 200
    assert after.body != before.body
    assert not is_running(int(before.body))


def test_what_needs_too_much_memory_is_ended_and_another_process_goes_on():
    within, beyond, after = answers("/memory?mib=100", "/memory?mib=300", "/id")
    assert within.body == str(100 * MIB).encode()
    assert beyond.beyond is Limit.MEMORY
    assert after.status == 200


def test_a_process_that_kept_much_gives_way():
    first, kept, after = answers("/id", "/memory?mib=200&is_kept=true", "/id")
    assert kept.is_last
    assert kept.status == 200
    assert first.body != after.body


def test_an_answer_that_is_too_large_is_not_sent():
    within, beyond, after = answers("/answer?count=1000", "/answer?count=1001", "/id", max_answer_bytes=1000)
    assert len(within.body) == 1000
    assert (beyond.beyond, beyond.body) == (Limit.ANSWER, b"")
    assert after.status == 200


def test_a_bug_is_an_answer_too_and_the_process_goes_on():
    first, bug, after = answers("/id", "/bug", "/id")
    assert bug.status == 500
    assert first.body == after.body


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/death?status=0", "a worker process failed"),
        ("/death?status=1", "a worker process failed"),
        ("/death?status=134", "a worker process failed"),
        (f"/death?status=-{signal.SIGKILL}", r"signal 9 \(Killed\) ended a worker process"),
        (f"/death?status=-{signal.SIGSEGV}", r"signal 11 \(Segmentation fault\) ended"),
    ],
)
def test_a_process_that_dies_within_its_limits_is_a_bug(target, reason):
    async def ask():
        async with pool() as workers:
            with pytest.raises(WorkFailed, match=reason):
                await workers.answer(job(target))
            return await workers.answer(job("/id"))

    assert asyncio.run(ask()).status == 200


def test_a_process_that_is_killed_with_much_memory_wanted_too_much(monkeypatch):
    def kill_at_200_mib(process):
        if process not in begin_bytes:
            time.sleep(0.5)  # a slow first measure still precedes the request, which takes its memory at once
        size = data_bytes(process)
        if size - begin_bytes.setdefault(process, size) > 199 * MIB:
            os.kill(process, signal.SIGKILL)
        return size

    begin_bytes = {}
    monkeypatch.setattr("api.work.pool.data_bytes", kill_at_200_mib)
    killed, after = answers("/sleep?mib=200", "/id")
    assert killed.beyond is Limit.MEMORY
    assert after.status == 200


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_an_idle_process_that_has_died_is_replaced(signum):
    async def ask():
        async with pool() as workers:
            before = await workers.answer(job("/id"))
            os.kill(int(before.body), signum)
            until(lambda: not is_running(int(before.body)), "the death of the process")
            return before, await workers.answer(job("/id"))

    before, after = asyncio.run(ask())
    assert (after.status, after.beyond) == (200, None)
    assert after.body != before.body


def test_a_process_that_cannot_start_is_a_bug_and_never_too_much_work():
    async def ask():
        make = importlib.import_module("greedy").make_killed
        settings = settings_for("redis://127.0.0.1:1", work={"processes": 1})
        async with WorkPool(make, settings) as workers:
            with pytest.raises(WorkFailed):
                await workers.answer(job("/id"))

    asyncio.run(ask())


def test_so_many_wait_and_no_more():
    async def ask():
        async with pool(max_waiting=1) as workers:
            tasks = [asyncio.create_task(workers.answer(job("/sleep"))) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(TooBusy) as caught:
                await workers.answer(job("/id"))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return caught.value, await workers.answer(job("/id"))

    error, after = asyncio.run(ask())
    assert error.details == {"limit": 1, "setting": "FORESTALL_WORK__MAX_WAITING"}
    assert after.status == 200


def test_what_is_cancelled_is_killed():
    async def ask():
        async with pool() as workers:
            before = await workers.answer(job("/id"))
            task = asyncio.create_task(workers.answer(job("/spin")))
            await asyncio.sleep(0.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            is_left = is_running(int(before.body))
            return is_left, await workers.answer(job("/id"))

    is_left, after = asyncio.run(ask())
    assert not is_left
    assert after.status == 200

"""One at a time, and whatever becomes of a process, its backtest ends with a word about it."""

import os
import signal
import sys
from threading import Event

import pytest

from service.backtests.worker import MOST_ATTEMPTS, Worker
from service.stores import Backtest
from tests.builders.waiting import until

pytestmark = pytest.mark.redis

WAITING = "import time; time.sleep(600)"


def worker_of(stores, clock, code=WAITING):
    return Worker(stores, clock, (sys.executable, "-c", code))


def add(stores, number):
    backtest = Backtest(id=f"bt_{number}", stream="orders", question={}, path=None, created_us=number)
    stores.backtests.add(backtest)
    return backtest.id


def step_until(worker, condition):
    until(lambda: condition() or worker.step(), "a backtest", pause_s=0.02)


def statuses(stores):
    return {backtest.id: backtest.status for backtest in stores.backtests.all()}


def test_the_oldest_runs_and_the_others_wait(stores, clock):
    worker = worker_of(stores, clock)
    for number in range(3):
        add(stores, number)
    for _ in range(3):
        worker.step()
    assert statuses(stores) == {"bt_0": "running", "bt_1": "queued", "bt_2": "queued"}
    worker.close()
    assert statuses(stores)["bt_0"] == "queued"


def test_two_workers_run_one_backtest(stores, clock):
    first, second = worker_of(stores, clock), worker_of(stores, clock)
    add(stores, 0), add(stores, 1)
    for _ in range(3):
        first.step(), second.step()
    assert sorted(statuses(stores).values()) == ["queued", "running"]
    first.close(), second.close()


@pytest.mark.parametrize(
    ("code", "reason"), [("import sys; sys.exit(3)", "status 3"), ("import os; os.kill(os.getpid(), 9)", "SIGKILL")]
)
def test_a_process_that_dies_has_failed_with_its_cause_and_the_next_begins(stores, clock, code, reason):
    worker = worker_of(stores, clock, code)
    names = [add(stores, 0), add(stores, 1)]
    step_until(worker, lambda: set(statuses(stores).values()) == {"failed"})
    for name in names:
        error = stores.backtests.get(name).error
        assert error["code"] == "backtest-interrupted"
        assert reason in error["detail"]


def test_a_cancelled_backtest_loses_its_process(stores, clock):
    worker = worker_of(stores, clock)
    name = add(stores, 0)
    worker.step()
    pid = worker._process.pid
    stores.backtests.advance(name, ("running",), status="cancelled")
    worker.step()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert statuses(stores) == {name: "cancelled"}


def test_a_removed_backtest_loses_its_process(stores, clock):
    worker = worker_of(stores, clock)
    name = add(stores, 0)
    worker.step()
    stores.backtests.remove(name)
    worker.step()
    assert worker._process is None


def test_what_a_killed_worker_left_is_begun_once_more_and_then_has_failed(stores, clock, client):
    name = add(stores, 0)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        worker = worker_of(stores, clock)
        worker.step()
        assert (stores.backtests.get(name).status, stores.backtests.get(name).attempts) == ("running", attempt)
        worker._process.send_signal(signal.SIGKILL)  # as the parent watch would; no process is notified
        worker._process.wait()
        client.delete("forestall:backtests:lease")
    worker_of(stores, clock).step()
    found = stores.backtests.get(name)
    assert found.status == "failed"
    assert "interrupted 2 times" in found.error["detail"]


def test_each_round_is_a_sign_of_life(stores, clock):
    rounds: list[int] = []
    stop = Event()

    def note():
        rounds.append(1)
        if len(rounds) == 3:
            stop.set()

    worker_of(stores, clock).run(stop, note)
    assert len(rounds) == 3

import threading
import time
from types import SimpleNamespace
from typing import cast

from service.errors import StoreUnavailable
from service.process import beside
from service.processes.start_report import StartReport
from service.stores.heartbeat import STARTING_KEY, Heartbeat
from streams.compiling import CompileProgress
from tests.builders.waiting import until


def test_compiling_is_said_in_place_of_what_goes_on_beside_it(stores):
    report = StartReport(stores.heartbeat)
    report.begin("starting Spark")
    assert stores.heartbeat.is_doing() == "starting Spark"
    report.compiling(CompileProgress(0, None))
    assert stores.heartbeat.is_doing() == "compiling kernels"
    report.begin("waiting for the machines of the cluster")
    report.compiling(CompileProgress(12, 40))
    assert stores.heartbeat.is_doing() == "compiling kernels, 12 of 40"
    report.compiling(CompileProgress(40, 40))
    assert stores.heartbeat.is_doing() == "waiting for the machines of the cluster"


def test_it_is_repeated_and_forgotten_when_nobody_repeats_it(stores, client):
    report = StartReport(stores.heartbeat)
    with beside(report.repeat, "start-report"):
        report.begin("starting Spark")
        client.delete(STARTING_KEY)
        until(stores.heartbeat.is_doing, "the report")
    assert 0 < client.ttl(STARTING_KEY) <= 30
    stores.heartbeat.clear()
    assert stores.heartbeat.is_doing() is None


def test_a_report_that_is_lost_stops_nothing():
    class Away:
        def busy(self, doing):
            raise StoreUnavailable("Redis does not answer")

    report = StartReport(cast(Heartbeat, Away()))
    report.begin("starting Spark")
    report.compiling(CompileProgress(1, 2))
    assert report._phase == "starting Spark"


def test_a_micro_batch_that_takes_long_is_reported(stores, monkeypatch):
    seconds = [100.0]
    clock = SimpleNamespace(monotonic=lambda: seconds[0])  # of this module only: servers in threads read the other
    monkeypatch.setattr("service.processes.start_report.time", clock)
    report = StartReport(stores.heartbeat)
    report.begin("matching the events that wait")
    report.beat(1)
    stores.heartbeat.clear()
    report.begin("matching")
    assert stores.heartbeat.is_doing() is None
    seconds[0] = 195.0
    report.begin("matching")
    assert stores.heartbeat.is_doing() == "the events that wait have been matched for 95 s"


def test_a_phase_without_progress_ends_the_process(stores, monkeypatch):
    seconds, ends = [0.0], []
    monkeypatch.setattr("service.processes.start_report.time", SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr("service.processes.start_report._REPORTED_EVERY_S", 0.01)
    ended = threading.Event()

    def end(status):
        ends.append((status, seconds[0], stores.heartbeat.failure()))
        ended.set()

    report = StartReport(stores.heartbeat, end=end)
    report.begin("starting Spark", 60.0)
    seconds[0] = 59.0
    report.compiling(CompileProgress(1, 2))
    with beside(report.repeat, "start-report"):
        seconds[0] = 118.0
        assert not ended.wait(0.2)
        report.begin("loading the states of the shards")
        seconds[0] = 1_000.0
        assert not ended.wait(0.2)
        report.begin("loading kernels", 60.0)
        seconds[0] = 1_061.0
        assert ended.wait(300)
    assert ends[0] == (1, 1_061.0, "loading kernels has taken more than 60 s")


def test_a_pipeline_gives_signs_of_life_while_it_starts_and_with_each_heartbeat(stores, monkeypatch):
    signs: list[float] = []
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    report = StartReport(stores.heartbeat, life=lambda: signs.append(now))
    report.begin("starting Spark")
    assert len(signs) == 1
    report.beat(1)
    assert len(signs) == 2
    now = 100.0
    report.begin("matching")
    assert len(signs) == 2, "a step that takes long is none"

import pytest

from service import Settings, missing_parts, open_stores
from service.embedded import EmbeddedServer
from service.processes.start_report import StartReport
from tests.builders.service import HandClock, settings_for

pytestmark = pytest.mark.redis


def test_without_a_url_the_private_server_of_the_folder_is_used(tmp_path):
    settings = Settings.model_validate({"data_dir": tmp_path, "shards": 2})
    with open_stores(settings) as stores:
        assert stores.log.shards() == 2
        assert stores.url.startswith("redis://127.0.0.1:")
    assert not EmbeddedServer(tmp_path).record_file.exists()


def test_a_server_that_runs_already_is_left_running(tmp_path):
    server = EmbeddedServer(tmp_path)
    url = server.start()
    try:
        with open_stores(Settings.model_validate({"data_dir": tmp_path})) as stores:
            assert stores.url == url
        with open_stores(settings_for(url)) as stores:
            assert stores.log.shards() > 0
    finally:
        server.stop()


def test_what_is_missing_is_told(stores, settings):
    clock = HandClock()
    assert missing_parts(stores, settings, clock) == ["waiting for the pipeline: its process has not started yet"]
    stores.heartbeat.busy("compiling kernels, 12 of 40")
    assert missing_parts(stores, settings, clock) == ["waiting for the pipeline: compiling kernels, 12 of 40"]
    StartReport(stores.heartbeat).beat(clock.now_us())
    assert missing_parts(stores, settings, clock) == []
    clock.forward(61)
    assert missing_parts(stores, settings, clock) == ["the pipeline has not reported for 61 s"]
    stores.heartbeat.busy("a micro-batch has been running for 61 s")
    assert missing_parts(stores, settings, clock) == [
        "the pipeline has not reported for 61 s: a micro-batch has been running for 61 s"
    ]


def test_why_the_pipeline_ended_is_said_until_it_is_well_again(stores, settings):
    clock = HandClock()
    stores.heartbeat.failed("the snapshot of shard 0 is gone")
    stores.heartbeat.clear()
    stores.heartbeat.busy("starting Spark")
    assert missing_parts(stores, settings, clock) == [
        "waiting for the pipeline: starting Spark; it ended before: the snapshot of shard 0 is gone"
    ]
    StartReport(stores.heartbeat).beat(clock.now_us())
    assert missing_parts(stores, settings, clock) == []
    assert stores.heartbeat.failure() is None

import pytest

from service import Settings, missing_parts, open_stores
from service.embedded import EmbeddedServer
from service.testing import HandClock, settings_for

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
    stores.heartbeat.starting("compiling kernels, 12 of 40")
    assert missing_parts(stores, settings, clock) == ["waiting for the pipeline: compiling kernels, 12 of 40"]
    stores.heartbeat.beat(clock.now_us())
    assert missing_parts(stores, settings, clock) == []
    clock.forward(61)
    assert missing_parts(stores, settings, clock) == ["the pipeline has not reported for 61 s"]

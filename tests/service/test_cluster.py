import os
from pathlib import Path

import pytest

from pipeline import is_local
from pipeline.spark.session import _settings
from service.errors import SettingsInvalid
from service.processes.cluster import handover_folder, session_options, snapshot_bytes
from service.settings import load_settings

MASTER = "spark://spark-master:7077"


@pytest.fixture
def local(monkeypatch, tmp_path):
    monkeypatch.setenv("FORESTALL_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def on_cluster(monkeypatch, local):
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", MASTER)
    monkeypatch.setenv("FORESTALL_REDIS_URL", "redis://redis:6379/0")


def test_a_local_master_keeps_everything_below_the_data_folder(local):
    settings = load_settings()
    assert session_options(settings).master == f"local[{max(1, (os.cpu_count() or 1) // 2)}]"
    assert settings.snapshot_place == str(local / "snapshots")
    assert handover_folder(settings, "log") == local / "handover" / "log"


@pytest.mark.usefixtures("on_cluster")
def test_a_cluster_keeps_snapshots_in_redis_and_saves_more_often(monkeypatch):
    monkeypatch.setenv("FORESTALL_SPARK__WORKER_FOLDER", "/scratch/forestall")
    settings = load_settings()
    assert settings.snapshot_place == "redis"
    assert handover_folder(settings, "log") == Path("/scratch/forestall/handover/log")
    assert snapshot_bytes(settings) < snapshot_bytes(settings.model_copy(update={"spark_master": "local[2]"}))


@pytest.mark.usefixtures("on_cluster")
def test_how_driver_and_machines_meet_is_set(monkeypatch):
    monkeypatch.setenv("FORESTALL_SPARK__DRIVER_HOST", "pipeline")
    monkeypatch.setenv("FORESTALL_SPARK__BIND_ADDRESS", "0.0.0.0")
    monkeypatch.setenv("FORESTALL_SPARK__PYTHON", "/opt/forestall/bin/python")
    monkeypatch.setenv("FORESTALL_SPARK__CONF", '{"spark.executor.memory": "4g"}')
    options = session_options(load_settings())
    assert options.master == MASTER
    assert (options.cluster.driver_host, options.cluster.bind_address) == ("pipeline", "0.0.0.0")
    assert options.cluster.interpreter == "/opt/forestall/bin/python"
    assert options.settings == {"spark.executor.memory": "4g"}


def test_settings_of_spark_hold_where_it_is_local(monkeypatch, local):
    monkeypatch.setenv("FORESTALL_SPARK__CONF", '{"spark.driver.memory": "3g", "spark.ui.enabled": "true"}')
    options = session_options(load_settings())
    assert is_local(options.master)
    given = _settings(options, local, "java")
    assert (given["spark.driver.memory"], given["spark.ui.enabled"]) == ("3g", "true")
    assert given["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize(("value", "place"), [("redis", "redis"), ("/mnt/shared/snapshots", "/mnt/shared/snapshots")])
def test_the_place_of_snapshots_can_be_chosen(monkeypatch, local, value, place):
    monkeypatch.setenv("FORESTALL_SNAPSHOTS", value)
    assert load_settings().snapshot_place == place


@pytest.mark.usefixtures("local")
def test_what_the_machines_of_a_cluster_cannot_reach_is_told_at_once(monkeypatch):
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", MASTER)
    monkeypatch.setenv("FORESTALL_SNAPSHOTS", "saved")
    monkeypatch.setenv("FORESTALL_SPARK__WORKER_FOLDER", "scratch")
    with pytest.raises(SettingsInvalid) as caught:
        session_options(load_settings())
    for name in ("FORESTALL_REDIS_URL: ", "FORESTALL_SNAPSHOTS: ", "FORESTALL_SPARK__WORKER_FOLDER: "):
        assert name in caught.value.message


@pytest.mark.usefixtures("local")
def test_settings_that_are_not_sparks_are_refused(monkeypatch):
    monkeypatch.setenv("FORESTALL_SPARK__CONF", '{"executor.memory": "4g"}')
    with pytest.raises(SettingsInvalid, match=r"FORESTALL_SPARK__CONF: .*begin with 'spark\.'.*executor\.memory"):
        load_settings()

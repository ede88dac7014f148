"""A daemon of Spark's Python workers that is prepared while Java starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.spark.prepared import PLACE
from pipeline.spark.session import SessionOptions, prepared_daemon

pytestmark = pytest.mark.slow

PORT_BYTES = 4


def started(place):
    """A daemon as Spark starts it: it writes its port, and ends when its input ends."""
    command = [sys.executable, "-P", "-m", "pipeline.spark.daemon", "pyspark.worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {PLACE: place})


def place_of(options):
    return options.settings[f"spark.executorEnv.{PLACE}"]


def test_the_first_daemon_passes_its_work_on_and_the_next_does_it_itself(tmp_path):
    with prepared_daemon(SessionOptions(data_folder=tmp_path)) as options:
        place = place_of(options)
        for _ in range(2):
            daemon = started(place)
            assert len(daemon.stdout.read(PORT_BYTES)) == PORT_BYTES
            assert not Path(place).exists()
            assert daemon.poll() is None
            daemon.communicate(timeout=300)


def test_a_daemon_that_is_not_needed_ends_and_settings_of_the_user_stay(tmp_path):
    with prepared_daemon(SessionOptions(data_folder=tmp_path, settings={"spark.x": "1"})) as options:
        assert options.settings["spark.x"] == "1"
        place = Path(place_of(options))
        assert place.is_socket()
    assert not place.parent.exists()

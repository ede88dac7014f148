"""The demo as ``make demo`` runs it, with fewer orders."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]


def test_the_demo_delivers_explains_and_loses_no_match_by_early_termination():
    environment = {**os.environ, "COLUMNS": "120"}
    command = [sys.executable, "-P", "-c", "from service.cli import main; main()", "demo", "--orders", "60"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "webhook: Q1 order-" in done.stdout
    assert "terminated early: " in done.stdout
    assert "exclusive(UseLocalStock, UseRemoteStock) means that UseRemoteStock u can no longer come" in done.stdout
    assert "peak bound events, without" in done.stdout
    assert "matches without early termination" in done.stdout
    assert "the alerts are the" in done.stdout

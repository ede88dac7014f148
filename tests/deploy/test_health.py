"""The health check of containers, which sees a hung process as well as an ended one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from house import ROOT
from service.process import life_sign


def health(name: str, folder: Path) -> int:
    environment = os.environ | {"FORESTALL_LIFE_DIR": str(folder)}
    command = [sys.executable, str(ROOT / "scripts/container-health"), name]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("name", ["pipeline", "deliverer", "backtests"])
def test_a_process_without_signs_of_life_is_unhealthy(name, tmp_path):
    folder = tmp_path / "alive"
    assert health(name, folder) != 0
    life = life_sign(folder, name)
    assert health(name, folder) == 0
    before = time.time() - 61
    os.utime(folder / name, (before, before))
    assert health(name, folder) == 1
    life()
    assert health(name, folder) == 0


def test_without_a_folder_there_are_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    life_sign(None, "pipeline")()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_removed_ends_no_process(tmp_path):
    life = life_sign(tmp_path / "alive", "pipeline")
    (tmp_path / "alive/pipeline").unlink()
    (tmp_path / "alive").rmdir()
    life()
    assert list(tmp_path.iterdir()) == []

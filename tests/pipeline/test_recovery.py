import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of, run_inline

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

SHARDS = 4
PROGRAM = Path(__file__).with_name("job_process.py")


def long_log(rounds=12):
    steps: list[Step] = [
        StreamOn(StreamDeclaration(name="orders", end_events=("End",))),
        ConstraintsOn(name="rules", version=1, document={"exclusive": [["L", "U"]]}),
        PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)"),
    ]
    number = 0
    for round_ in range(rounds):
        batch = []
        for key in range(20):
            number += 1
            batch.append(event(number, "AAUAULUAUEnd"[round_] if round_ < 9 else "End", f"k{key}"))
        steps.append(batch)
    return log_of(steps, shards=SHARDS)


def run(server, folder, kernels, manner, batches):
    environment = os.environ | {"NUMBA_CACHE_DIR": kernels}
    words = [sys.executable, PROGRAM, folder, server.url, str(SHARDS), manner, str(batches)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.deep  # each day by tests/system/test_chaos.py, with a whole service
def test_rows_after_kills_are_those_of_an_undisturbed_run(own_server, tmp_path, kernels):
    logs = long_log()
    own_server.append(logs)
    (tmp_path / "streams.py").write_text("raise ImportError('a file of the working directory was imported')")
    assert run(own_server, tmp_path, kernels, "between-rows", 2).returncode == -signal.SIGKILL
    jvm_death = run(own_server, tmp_path, kernels, "jvm", 1)
    assert (jvm_death.returncode, "failed: " in jvm_death.stderr) == (1, True), jvm_death.stderr
    last = run(own_server, tmp_path, kernels, "none", 0)
    assert last.returncode == 0, last.stderr
    stored = {row_id.decode(): orjson.loads(text) for row_id, text in own_server.client.hgetall("rows").items()}
    assert stored == {row.id: [row.kind, row.stream, row.shard, row.body.decode()] for row in run_inline(logs)}
    assert int(own_server.client.get("repeated")) > 0


def test_killed_python_processes_are_begun_again_without_a_restart(own_server, tmp_path, kernels):
    """The first that Spark starts, that of the source, and workers after each of three micro-batches."""
    logs = long_log(rounds=8)
    own_server.append(logs)
    only = run(own_server, tmp_path, kernels, "starting,source,workers", 2)
    assert only.returncode == 0, only.stderr
    stored = {row_id.decode() for row_id in own_server.client.hkeys("rows")}
    assert stored == {row.id for row in run_inline(logs)}
    killed = {name.decode(): int(count) for name, count in own_server.client.hgetall("killed").items()}
    assert {name: killed.pop(name) for name in ("starting", "source")} == {"starting": 1, "source": 1}, only.stderr
    assert killed["workers"] > 0, only.stderr

"""How the processes of the service begin and end; exit statuses are what the supervisor and people see."""

import os
import signal
import socket
import subprocess
import sys
from importlib import import_module

import orjson
import pytest

from service.errors import StoreUnavailable
from service.process import Stopped, run_process, signals_held
from service.settings import Settings
from tests.builders.service import empty_client
from tests.builders.waiting import until

MODULES = ["api.__main__", "service.delivery.deliverer", "service.processes.pipeline_process"]
NOBODY = "redis://127.0.0.1:1/0"
PATIENCE_S = 240.0


def run_module(module, folder, **variables):
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(
        [sys.executable, "-P", "-m", module],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """No settings from outside; the process of the tests keeps its signal handlers and the level of its logs."""
    for name in [name for name in os.environ if name.startswith("FORESTALL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("service.process.configure_logs", lambda level: None)
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("module", MODULES)
def test_settings_that_cannot_be_used_are_status_2(module, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORESTALL_REDIS_URL", "http://:s3cret@h")
    monkeypatch.setenv("FORESTALL_WEBHOOKS__ATTEMPTS", "none")
    assert import_module(module).main() == 2
    printed = capsys.readouterr().err
    for name in ("FORESTALL_REDIS_URL", "FORESTALL_WEBHOOKS__ATTEMPTS"):
        assert name in printed
    assert "s3cret" not in printed


def test_work_that_comes_to_its_end_is_status_0():
    seen: list[Settings] = []
    assert run_process("worker", seen.append) == 0
    assert seen[0].api_port == 8000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_work_with_status_0(number):
    def work(_):
        with pytest.raises(Stopped):
            signal.raise_signal(number)
        signal.raise_signal(number)
        raise AssertionError("never reached")

    assert run_process("worker", work) == 0


def test_a_signal_may_be_held_until_a_block_has_ended():
    done: list[str] = []

    def work(_):
        with signals_held():
            signal.raise_signal(signal.SIGTERM)
            done.append("block")
        done.append("never reached")

    assert run_process("worker", work) == 0
    assert done == ["block"]


def test_a_failure_in_a_block_goes_before_a_held_signal():
    def fail():
        with signals_held():
            signal.raise_signal(signal.SIGTERM)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_failure_is_status_1():
    def work(_):
        raise StoreUnavailable("no Redis")

    assert run_process("worker", work) == 1


def test_a_bug_is_not_hidden():
    def work(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_process("worker", work)


def test_an_api_that_cannot_listen_is_status_1(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        finished = run_module("api", tmp_path, FORESTALL_REDIS_URL=NOBODY, FORESTALL_API_PORT=port)
    assert finished.returncode == 1


@pytest.mark.spark
def test_the_pipeline_may_be_stopped_before_its_query_exists(tmp_path, server_url):
    environment = {
        "PATH": os.environ["PATH"],
        "FORESTALL_REDIS_URL": server_url,
        "FORESTALL_DATA_DIR": str(tmp_path),
    } | {name: os.environ[name] for name in ("JAVA_HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    command = [sys.executable, "-P", "-m", "service.processes.pipeline_process"]
    with empty_client(server_url):  # what other tests left there may well be refused
        pass
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        try:
            until((tmp_path / "spark").exists, "the session that is being built", process, 0.02)
            process.send_signal(signal.SIGTERM)
            _, logged = process.communicate(timeout=PATIENCE_S)  # until Java's process, too, has let go of it
        finally:
            process.kill()
    assert process.returncode == 0, logged.decode()
    lines = [orjson.loads(line) for line in logged.splitlines() if line.startswith(b"{")]
    events = [line["event"] for line in lines]
    assert "process-stopped" in events
    assert "pipeline-started" not in events

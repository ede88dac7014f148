"""The console as a process: the command, its port, its end."""

import signal
import subprocess
import sys
from contextlib import suppress

import httpx
import pytest
from starlette.applications import Starlette

from service.cli.serve import _console
from service.embedded import free_port
from tests.builders.api import serving
from tests.builders.service import settings_for
from tests.builders.waiting import PATIENCE_S, until

COMMAND = [sys.executable, "-P", "-c", "from service.cli import main; main()", "console"]


def test_the_command_serves_until_it_is_ended():
    port = free_port()
    options = ["--url", "http://127.0.0.1:1", "--port", str(port)]
    with subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert f"console at http://127.0.0.1:{port}" in process.stderr.readline()

        def page():
            with suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{port}/login", verify=False, timeout=PATIENCE_S).text

        assert "http://127.0.0.1:1" in until(page, "the console", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0, process.stderr.read()


@pytest.fixture
def taken():
    """A port on which another program listens."""
    with serving(Starlette()) as url:
        yield int(url.rpartition(":")[2])


def test_a_port_in_use_is_named(taken):
    done = subprocess.run([*COMMAND, "--port", str(taken)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"port {taken} on 127.0.0.1 cannot be used" in done.stderr
    assert "FORESTALL_CONSOLE_PORT" in done.stderr


def test_serve_goes_without_a_console_whose_port_is_in_use(taken, capsys):
    settings = settings_for("redis://127.0.0.1:1")
    assert _console(settings.model_copy(update={"console_port": 0})) == ""
    assert _console(settings.model_copy(update={"console_port": taken})) == ""
    assert "no console: port" in capsys.readouterr().err
    port = free_port()
    assert _console(settings.model_copy(update={"console_port": port})) == f"http://127.0.0.1:{port}"

"""A command ends its process at once, after everything that is registered for the end."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, sys, types
from service.cli import starting
commands = types.ModuleType("service.cli.app")
commands.called_app = lambda: None
def run(_app):
    atexit.register(print, "handler")
    print("output", end=" ")
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    {ending}
commands.run = run
sys.modules["service.cli.app"] = commands
starting.main()
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('text')", 1), ("raise KeyError", 1), ("pass", 0)],
)
def test_output_handlers_and_status_are_those_of_the_interpreter(ending, status):
    program = PROGRAM.replace("{ending}", ending)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("handler")) == (status, 2), done.stderr
    assert "output" in done.stdout
    assert ("KeyError" in done.stderr) == ("KeyError" in ending)
    assert ("text" in done.stderr) == ("text" in ending)

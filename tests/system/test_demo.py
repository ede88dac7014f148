"""The demo of ``make demo`` with fewer orders, and the pages that the console shows of it."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.builders.console import Visitor

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

PAGES = {
    "/alerts": "Q1",
    "/process": 'data-event="UseRemoteStock"',
    "/transactions": "late-",
    "/ask": "GenerateQuote",
}


def test_the_demo_delivers_explains_and_loses_no_match_by_early_termination():
    environment = {**os.environ, "COLUMNS": "120"}
    command = [sys.executable, "-P", "-c", "from service.cli import main; main()", "demo", "--orders", "60", "--stay"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        assert demo.stdout is not None
        lines: list[str] = []
        for line in demo.stdout:
            lines.append(line)
            if "Ctrl-C ends it" in line:
                break
        printed = "".join(lines)
        found = re.search(r"console: (\S+), log in with the key\s+(\S+)", printed)
        assert found is not None, printed
        with Visitor(found[1]) as visitor:
            assert visitor.log_in(found[2]).status_code == 303
            for path, text in PAGES.items():
                assert text in visitor.text(path), path
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait(timeout=600) == 0, rest
    assert "webhook: Q1 order-" in printed
    assert "terminated early: " in printed
    assert re.search(
        r"terminated early: .*(means that|allows only one) .* can no longer come", printed
    )  # the newest ones
    assert "terminated early by exclusive(UseLocalStock, UseRemoteStock)" in printed
    assert "peak bound events, without" in printed
    assert "matches without early termination" in printed
    assert "the alerts are the" in printed

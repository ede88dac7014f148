"""A running service answers the questions of the how-to as ``forestall run`` does, from the same raw files."""

import os
import subprocess

import orjson
import pytest

from house import ROOT
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

SHOP = ROOT / "docs" / "examples" / "shop"
FILES = {"orders": "orders.csv", "payments": "payments.jsonl", "shipments": "shipments.csv"}
STREAMS = (*FILES, "paid", "refunds")


@pytest.fixture
def forestall(service, commands):
    environment = {**os.environ, "FORESTALL_API_KEY": service.api_key}

    def run(*arguments):
        words = [str(commands / "forestall"), *arguments]
        done = subprocess.run(
            words, cwd=SHOP, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def identity(alert):
    """The answer. An absence is decided by the end of the files in a run, and by time in a service: its row has another
    time, and another id, so events of derived streams are left out.
    """
    is_posted = alert["stream"] in FILES
    events = (alert["bindings"], alert["start"], alert["end"]) if is_posted else ()
    return alert["pattern"], alert["key"], events, alert.get("returns") or {}


def test_the_service_gives_the_answers_of_a_run(service, forestall):
    named = [word for name, file in FILES.items() for word in ("--events", f"{name}={file}")]
    ran = orjson.loads(forestall("run", "rules", *named, "--output", "json"))
    expected = sorted(map(identity, ran["alerts"]), key=str)
    assert len(expected) == 10
    forestall("apply", "rules", "--url", service.url)
    for name, file in FILES.items():
        forestall("replay", file, "--stream", name, "--url", service.url)
    for name in FILES:
        forestall("streams", "punctuate", name, "--before", "2026-06-01T00:00:00Z", "--url", service.url)

    def found():
        alerts = (alert for stream in STREAMS for alert in service.client.pages("/alerts", stream=stream))
        return sorted(map(identity, alerts), key=str)

    until(lambda: len(found()) >= len(expected), "the answers", service, 0.5)
    assert found() == expected

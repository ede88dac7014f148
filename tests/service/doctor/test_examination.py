"""The whole examination, as ``forestall doctor`` prints it."""

import socket
import sys
from http.server import BaseHTTPRequestHandler

import orjson
import pytest
from structlog.testing import capture_logs

from pipeline.snapshots import RedisSnapshots, SnapshotIndex
from service import Stores
from service.cli import main
from service.cli.serve import tell_risks
from service.doctor import examine
from service.processes.pipeline_process import warn_of_risks
from service.stores import connect
from streams import SystemClock
from tests.builders.service import answering, private_server, settings_for

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def free_port(monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("FORESTALL_API_PORT", str(port))
    return port


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["forestall", "doctor", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr().out

    return run


def found(subject):
    return [finding for finding in examine(SystemClock()) if finding.subject == subject]


def test_all_is_well_with_a_sound_server(call, server_url, monkeypatch):
    monkeypatch.setenv("FORESTALL_REDIS_URL", server_url)
    status, out = call("--json")
    document = orjson.loads(out)
    assert status == 0
    assert [finding["verdict"] for finding in document["findings"] if finding["subject"] != "data folder"] == [
        "ok"
    ] * 13
    status, out = call()
    assert status == 0
    assert "0 problems" in out


def test_without_a_url_nothing_is_started(tmp_path):
    (finding,) = found("redis")
    assert finding.verdict == "ok"
    assert "does not run" in finding.found
    assert not (tmp_path / "data").exists()


def test_a_private_server_that_runs_is_looked_at(tmp_path):
    with private_server(tmp_path / "data"):
        assert [finding.subject for finding in examine(SystemClock())][-4:] == ["clock", "store", "states", "port"]


def test_a_spark_master_that_does_not_answer_is_a_problem(monkeypatch):
    monkeypatch.setenv("FORESTALL_SPARK_MASTER", "spark://127.0.0.1:1")
    (finding,) = found("spark master")
    assert finding.verdict == "problem"
    assert finding.found.startswith("no Spark master at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused")
    assert "correct FORESTALL_SPARK_MASTER" in finding.advice


def test_states_that_other_settings_keep_elsewhere_are_a_problem(client, server_url, monkeypatch, tmp_path):
    monkeypatch.setenv("FORESTALL_REDIS_URL", server_url)
    assert [finding.found for finding in found("states")] == ["there is no event log yet"]
    shards = Stores(client, server_url, settings_for(server_url)).log.shards()
    (finding,) = found("states")
    assert (finding.verdict, f"of {shards} shards are in {tmp_path / 'data' / 'snapshots'}" in finding.found) == (
        "ok",
        True,
    )
    SnapshotIndex(client).enter(1, "5-1", 100, "/mnt/states")
    (finding,) = found("states")
    assert finding.verdict == "problem"
    assert finding.found.startswith("the snapshot of shard 1 at 5-1 was written to /mnt/states")
    assert finding.advice.startswith("set FORESTALL_SNAPSHOTS=/mnt/states")
    RedisSnapshots(client).write(1, "5-1", b"x")
    assert [finding.verdict for finding in found("states")] == ["ok"]


def test_a_server_that_does_not_answer_is_a_problem(call, monkeypatch):
    monkeypatch.setenv("FORESTALL_REDIS_URL", "redis://:hidden@127.0.0.1:1/0")
    status, out = call()
    assert status == 1
    assert "it does not answer" in out
    assert "hidden" not in out


def test_every_fault_of_the_settings_is_a_problem_of_its_own(call, monkeypatch):
    monkeypatch.setenv("FORESTALL_LOG_LEVEL", "loud")
    monkeypatch.setenv("FORESTALL_SHARDS", "0")
    status, out = call("--json")
    problems = [finding["found"] for finding in orjson.loads(out)["findings"] if finding["verdict"] == "problem"]
    assert status == 1
    assert [text.partition(":")[0] for text in problems] == ["FORESTALL_SHARDS", "FORESTALL_LOG_LEVEL"]


def test_a_variable_that_names_no_setting_is_a_warning(call, monkeypatch):
    monkeypatch.setenv("FORESTALL_SHARD", "3")
    _, out = call("--json")
    findings = [finding for finding in orjson.loads(out)["findings"] if finding["subject"] == "settings"]
    assert [(finding["verdict"], finding["found"]) for finding in findings] == [
        ("warning", "FORESTALL_SHARD is not a setting and has no effect (did you mean FORESTALL_SHARDS?)")
    ]


def test_spans_are_wanted_and_can_be_had_or_not(monkeypatch):
    assert found("tracing") == []
    monkeypatch.setenv("FORESTALL_TRACING__ENDPOINT", "http://127.0.0.1:4318")
    (finding,) = found("tracing")
    assert (finding.verdict, finding.found) == ("ok", "spans go to http://127.0.0.1:4318/v1/traces")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "service.observing.spans")
    (finding,) = found("tracing")
    assert (finding.verdict, finding.advice) == (
        "problem",
        "install forestall with its extra otel, or leave the setting out",
    )


def test_warnings_count_when_that_is_asked_for(call, monkeypatch, tmp_path):
    with private_server(tmp_path) as url, connect(url) as client:
        client.config_set("appendfsync", "everysec")
        monkeypatch.setenv("FORESTALL_REDIS_URL", url)
        assert call()[0] == 0
        assert call("--strict")[0] == 1


def test_serve_tells_what_may_be_lost(capsys, tmp_path):
    with private_server(tmp_path) as url, connect(url) as client:
        tell_risks(url)
        assert capsys.readouterr().err == ""
        client.config_set("appendfsync", "everysec")
        tell_risks(url)
        assert "warning: redis persistence: appendfsync is everysec" in capsys.readouterr().err


def test_the_pipeline_logs_what_may_be_lost(tmp_path):
    with private_server(tmp_path) as url, connect(url) as client:
        stores = Stores(client, url, settings_for(url))
        client.config_set("appendfsync", "no")
        with capture_logs() as said:
            warn_of_risks(stores)
    assert [(entry["event"], entry["log_level"]) for entry in said] == [("redis-at-risk", "warning")]
    assert said[0]["found"].startswith("appendfsync is no")


def saying(status, body):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.mark.parametrize(
    ("status", "body", "verdicts"),
    [
        (200, b'{"status": "ready"}', ["ok", "ok"]),
        (503, b'{"missing": ["waiting for the pipeline: its process has not started yet"]}', ["ok", "warning"]),
        (200, b"<html>", ["problem"]),
        (200, b"[]", ["problem"]),
    ],
)
def test_whoever_listens_on_the_port_is_asked(free_port, status, body, verdicts):
    with answering(saying(status, body), free_port):
        seen = [finding.verdict for subject in ("port", "running service") for finding in found(subject)]
    assert seen == verdicts


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark_options")  # so that it runs in the process of other tests with Spark
def test_a_deep_look_starts_spark(call, tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTALL_DATA_DIR", str(tmp_path))
    _, said = call("--deep", "--json")
    seen = {finding["subject"]: finding for finding in orjson.loads(said)["findings"]}
    assert seen["spark"]["verdict"] == "ok", seen["spark"]
    assert "spark" not in {finding["subject"] for finding in orjson.loads(call("--json")[1])["findings"]}

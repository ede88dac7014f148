"""What holds for all endpoints: the key, outages, bugs, health, the description."""

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from importlib.metadata import version

import httpx
import pytest

from api import create_app
from api.errors import STATUS
from api.errors import problem as problem_of
from service import RecordFormatError, SettingsInvalid
from streams import ForestallError
from tests.builders.api import serving
from tests.builders.service import settings_for
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

PACKAGES = ("streams", "nfa", "constraints", "workflows", "shards", "pipeline", "service", "api")
OPEN = ("/v1/health", "/v1/ready")


def operations(http):
    paths = http.get("/openapi.json").json()["paths"]
    return [(method, path, operation) for path, methods in paths.items() for method, operation in methods.items()]


def test_every_endpoint_but_health_asks_for_the_key(stranger, check_problem):
    guarded = [(method, path) for method, path, _ in operations(stranger) if path not in OPEN]
    assert len(guarded) >= 20
    for method, path in guarded:
        answer = stranger.request(method, path)
        check_problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer wrong-key-here"},
        {"Authorization": "Basic abc"},
        {"X-API-Key": "wrong"},
        {"X-API-Key": "ü".encode()},
    ],
)
def test_a_wrong_key_is_refused(stranger, check_problem, headers):
    check_problem(stranger.get("/v1/streams", headers=headers), 401, "unauthorized")


def test_the_key_may_come_in_either_header(stranger, settings):
    key = settings.api_key.get_secret_value()
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
        assert stranger.get("/v1/streams", headers=headers).status_code == 200


def test_without_a_key_the_api_is_open(server_url, stores):
    with serving(create_app(settings_for(server_url))) as url:
        assert httpx.get(f"{url}/v1/streams", verify=False, timeout=PATIENCE_S).status_code == 200


def test_health_needs_nothing(stranger):
    assert stranger.get("/v1/health").json() == {"status": "ok", "version": version("forestall")}


def test_ready_wants_a_fresh_sign_of_life(stranger, stores, clock, check_problem):
    body = check_problem(stranger.get("/v1/ready"), 503, "not-ready")
    assert body["missing"] == ["waiting for the pipeline: its process has not started yet"]
    stores.heartbeat.beat(clock.now_us())
    assert stranger.get("/v1/ready").json() == {"status": "ready"}
    clock.forward(600)
    assert "600 s" in check_problem(stranger.get("/v1/ready"), 503, "not-ready")["detail"]


def test_without_redis_everything_is_a_503_that_asks_for_another_try(clock, check_problem):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        settings = settings_for(f"redis://127.0.0.1:{probe.getsockname()[1]}/0")
        event = {"id": "e", "type": "A", "time": 1, "data": {}}
        with (
            serving(create_app(settings, clock)) as url,
            httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
        ):
            for answer in (
                client.get("/v1/streams"),
                client.post("/v1/events?stream=orders", json=event),
                client.get("/v1/alerts"),
            ):
                check_problem(answer, 503, "store-unavailable")
                assert int(answer.headers["retry-after"]) >= 1
            assert client.get("/v1/health").status_code == 200
            assert check_problem(client.get("/v1/ready"), 503, "not-ready")["missing"] == ["Redis does not answer"]


def test_unknown_paths_and_methods_are_problems(http, check_problem):
    assert "/v1/nothing" in check_problem(http.get("/v1/nothing"), 404, "not-found")["detail"]
    check_problem(http.get("/v1/streams/"), 404, "not-found")
    answer = http.put("/v1/streams")
    body = check_problem(answer, 405, "method-not-allowed")
    assert body["detail"] == "/v1/streams does not take PUT; it takes GET, HEAD, OPTIONS, POST"
    assert (body["allowed"], answer.headers["allow"]) == (
        ["GET", "HEAD", "OPTIONS", "POST"],
        "GET, HEAD, OPTIONS, POST",
    )


def test_a_bug_is_a_500_that_tells_nothing(http, check_problem, monkeypatch):
    def fail(*_):
        raise ValueError("secret detail")

    monkeypatch.setattr("service.stores.Registry.streams_with_schemas", fail)
    answer = http.get("/v1/streams", headers={"X-Request-Id": "r-1"})
    assert "secret" not in check_problem(answer, 500, "internal")["detail"]
    assert (answer.headers["x-request-id"], answer.headers["cache-control"]) == ("r-1", "private, no-cache")
    monkeypatch.undo()
    measured = 'route="/v1/streams",status="500"'
    assert any(measured in line for line in http.get("/metrics").text.splitlines())


def test_an_error_without_a_status_is_a_500_that_tells_nothing():
    answer = problem_of(RecordFormatError("secret detail"))
    assert answer.status_code == 500
    assert b"secret" not in answer.body


LOCAL = {  # of files, projects, backups, feeds, settings, the log, the matcher, the client: none comes from a request
    "AccessDenied",
    "AggregateSuspended",
    "ApplyStopped",
    "BackupRefused",
    "ControlRecordError",
    "DataFolderUnusable",
    "EventFileError",
    "EventLate",
    "FeedFolderMissing",
    "FileUnreadable",
    "InvalidRequest",
    "JoinSuspended",
    "KafkaClientMissing",
    "KeyFinished",
    "KeyNotWhole",
    "MatchLimitReached",
    "NotDerivable",
    "PatternNameTaken",
    "PortInUse",
    "ProjectRefused",
    "PromiseRefused",
    "ReshardRefused",
    "ResourceChanged",
    "ResourceConflict",
    "ResourceMissing",
    "ResultLimitReached",
    "RetractionLate",
    "RoundsImpossible",
    "RowPatternFailed",
    "RunLimitReached",
    "SettingsInvalid",
    "SourceOptionError",
    "UnderivableWorkflow",
    "UnknownPattern",
    "WorkLimitReached",
}


def import_everything():
    """Import every module of every package, so that the whole error tree is defined."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)


def error_classes(kind=ForestallError):
    """All classes below one, of the packages and not of tests."""
    children = [child for child in kind.__subclasses__() if child.__module__.partition(".")[0] in PACKAGES]
    return [*children, *(found for child in children for found in error_classes(child))]


def leaves():
    import_everything()
    return [kind for kind in set(error_classes()) if not kind.__subclasses__()]


def test_what_a_caller_did_wrong_is_never_a_500():
    wrong = [kind for kind in leaves() if kind.fault == "caller"]
    assert len(wrong) > 20
    assert {kind.__name__ for kind in wrong if not any(parent in STATUS for parent in kind.__mro__)} == LOCAL


def test_every_kind_of_error_has_a_code_of_its_own():
    codes = Counter(kind.code for kind in leaves())
    assert {code: count for code, count in codes.items() if count > 1} == {}


def test_every_operation_is_described(http):
    for method, path, operation in operations(http):
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)


def test_every_body_has_an_example(http):
    document = http.get("/openapi.json").json()
    bodies = [operation["requestBody"] for _, _, operation in operations(http) if "requestBody" in operation]
    assert len(bodies) == 39
    for body in bodies:
        for content in body["content"].values():
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            schema = document["components"]["schemas"].get(name, {})
            is_file = content["schema"].get("format") == "binary"  # of bytes, which JSON cannot show
            assert "example" in content or schema.get("examples") or is_file


def test_examples_of_the_description_are_accepted(orders, clock):
    clock.forward(86_400)
    document = orders.get("/openapi.json").json()
    constraints = document["paths"]["/v1/constraints"]["post"]["requestBody"]["content"]
    assert orders.post("/v1/constraints", json=constraints["application/json"]["example"]).status_code == 201
    yaml = constraints["application/yaml"]["example"]
    assert orders.post("/v1/constraints", content=yaml, headers={"content-type": "text/yaml"}).status_code == 200
    for pattern in document["components"]["schemas"]["NewPattern"]["examples"]:
        assert orders.post("/v1/patterns", json=pattern).status_code == 201
    stream = document["components"]["schemas"]["StreamModel"]["examples"][0]
    assert orders.post("/v1/streams", json={**stream, "name": "sample"}).status_code == 201
    events = document["paths"]["/v1/events"]["post"]["requestBody"]["content"]
    for kind, content in events.items():
        sent = content["example"] if isinstance(content["example"], str) else json.dumps(content["example"])
        answer = orders.post("/v1/events?stream=sample", content=sent, headers={"content-type": kind})
        assert (answer.status_code, answer.json()["rejected"]) == (202, [])


def test_the_factory_reads_the_environment(monkeypatch):
    monkeypatch.setenv("FORESTALL_SHARDS", "none")
    with pytest.raises(SettingsInvalid, match="FORESTALL_SHARDS"):
        create_app()


def test_the_process_serves_on_loopback_and_stops_on_sigterm(server_url, stores, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"PATH": os.environ["PATH"], "FORESTALL_REDIS_URL": server_url, "FORESTALL_API_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "api"], env=environment, stderr=subprocess.PIPE, cwd=tmp_path)
    try:
        assert process.stderr is not None
        said = iter(process.stderr.readline, b"")
        assert any(b"running on http://127.0.0.1" in line for line in said)
        answer = httpx.get(f"http://127.0.0.1:{port}/v1/health", verify=False, timeout=PATIENCE_S)
        with httpx.stream("GET", f"http://127.0.0.1:{port}/v1/alerts/live", verify=False, timeout=PATIENCE_S) as live:
            lines = live.iter_lines()
            assert next(lines) == "id: 0"
            process.send_signal(signal.SIGTERM)
            assert list(lines)[-1] == ""  # what has no end of its own ends too
        process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert answer.json() == {"status": "ok", "version": version("forestall")}
    assert process.returncode == 0

"""The description of the API as tools of others read it: a linter, and generators of TypeScript and Python.

The tools come from registries, so these tests belong to `make test-deep`, and are skipped where npx is absent.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api import create_app
from tests.builders.service import settings_for

KEY = "a-key-for-tests"  # of the fixture api_url

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npx") is None, reason="#38: the tools come from npm"),
]


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    path.write_text(json.dumps(create_app(settings_for("redis://127.0.0.1:1/0")).openapi()))
    return path


def ran(*command, folder):
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_linter_is_clean(description):
    rules = Path(__file__).with_name("redocly.yaml")
    status, said = ran(
        "npx", "--yes", "@redocly/cli@2", "lint", "--config", rules, description, folder=description.parent
    )
    assert status == 0, said
    assert "warning" not in said.partition("validating")[2], said


def test_two_generators_write_typescript_that_compiles(description):
    folder = description.parent
    (folder / "package.json").write_text('{"name": "generated", "private": true, "type": "module"}')
    packages = ("typescript@5", "openapi-typescript@7", "@hey-api/openapi-ts@0.80", "@hey-api/client-fetch@0.13")
    status, said = ran("npm", "install", "--no-audit", "--no-fund", *packages, folder=folder)
    assert status == 0, said
    status, said = ran("npx", "openapi-typescript", description, "-o", "types.ts", folder=folder)
    assert status == 0, said
    status, said = ran(
        "npx", "openapi-ts", "-i", description, "-o", "client", "-c", "@hey-api/client-fetch", folder=folder
    )
    assert status == 0, said
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler")
    status, said = ran(
        "npx",
        "tsc",
        *options,
        "--target",
        "es2022",
        "--lib",
        "es2022,dom,dom.iterable",
        "types.ts",
        "client/index.ts",
        folder=folder,
    )
    assert status == 0, said


def test_a_generated_python_client_reads_all_that_it_asks_for(description, api_url, stores):
    pytest.importorskip("openapi_python_client", reason="#38: installed by hand")
    folder = description.parent
    status, said = ran(
        sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--overwrite", folder=folder
    )
    assert status == 0, said
    program = folder / "calls.py"
    program.write_text(_CALLS)
    status, said = ran(sys.executable, program, api_url, KEY, folder=folder / "forestall-client")
    assert (status, said.strip()) == (0, "10 calls")


_CALLS = """
import sys

sys.path.insert(0, ".")
from forestall_client import AuthenticatedClient
from forestall_client.api.alerts import list_alerts
from forestall_client.api.audit import list_changes
from forestall_client.api.health import get_health
from forestall_client.api.patterns import list_patterns, register_pattern
from forestall_client.api.pipeline import get_pipeline
from forestall_client.api.streams import change_stream, declare_stream, get_stream, list_streams
from forestall_client.models import NewPattern, NewStream, StreamChanges

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)
made = declare_stream.sync(client=client, body=NewStream(name="s3", key="data.x", lateness=5.0))
assert made.lateness.mode == "fixed", made
assert made.lateness.seconds == 5, made
changed = change_stream.sync("s3", client=client, body=StreamChanges(lateness="auto"))
assert changed.lateness.at_most_s == 3600, changed
assert [one.name for one in list_streams.sync(client=client).items] == ["s3"]
assert get_stream.sync("s3", client=client).max_ahead.mode == "default"
pattern = register_pattern.sync(client=client, body=NewPattern(stream="s3", text="PATTERN p EVENT SEQ(A a, B b)"))
assert pattern.state == "active", pattern
assert len(list_patterns.sync(client=client).items) == 1
assert list_alerts.sync(client=client).items == []
assert get_pipeline.sync(client=client).backlog.waiting_volume.events == 0
assert get_health.sync(client=client).status == "ok"
assert list_changes.sync(client=client).items is not None
print("10 calls")
"""

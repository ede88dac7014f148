"""Contexts of several services, changes of webhooks, and readers that close their pipe."""

import stat
import subprocess
import sys

import orjson
import pytest

from service.settings_contexts import contexts_file


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_commands_call_the_service_of_the_current_context(call, api_url, stores, home):
    (home / "key").write_text("secret\n")
    assert call("context", "add", "here", "--url", api_url, "--api-key-file", "key")[0] == 0
    assert call("streams", "add", "orders")[0] == 0
    assert (
        call("context", "add", "away", "--url", "http://127.0.0.1:1")[2] == "commands call away: http://127.0.0.1:1\n"
    )
    assert call("streams", "list")[0] == 3
    assert call("streams", "list", "--url", api_url)[0] == 0
    assert call("context", "use", "here")[0] == 0
    assert call("streams", "list")[1].splitlines()[1].startswith("orders")
    _, out, err = call("context", "list", "--json")
    assert [(one["name"], one["current"]) for one in map(orjson.loads, out.splitlines())] == [
        ("away", False),
        ("here", True),
    ]
    assert str(contexts_file()) in err
    assert "secret" not in contexts_file().read_text()
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    assert call("context", "delete", "here")[0] == 0
    assert call("context", "use", "awy")[:1] == (2,)
    assert "did you mean away" in call("context", "use", "awy")[2]


def test_what_the_environment_names_goes_before_a_context(call, api_url, stores, monkeypatch):
    call("context", "add", "away", "--url", "http://127.0.0.1:1")
    monkeypatch.setenv("FORESTALL_URL", api_url)
    assert call("streams", "list")[0] == 0


def test_a_context_that_cannot_be_used_is_refused(call, home):
    assert "is not an http or https URL" in " ".join(call("context", "add", "x", "--url", "ftp://x")[2].split())
    status, _, err = call("context", "add", "x", "--url", "http://x", "--api-key-file", "absent")
    assert (status, "cannot be read" in err) == (2, True)
    contexts_file().parent.mkdir(parents=True, exist_ok=True)
    contexts_file().write_text("[]")
    status, _, err = call("context", "list")
    assert (status, "is not a file of contexts" in err) == (2, True)


def test_a_webhook_is_changed(call, api_url, stores):
    at = ("--url", api_url)
    call("streams", "add", "orders", *at)
    assert call("webhooks", "add", "https://8.8.8.8", "--name", "desk", "--stream", "orders", *at)[0] == 0
    changes = ("--to", "https://8.8.4.4", "--stream", "none", "--min-severity", "high", "--kind", "correction")
    _, out, _ = call("webhooks", "change", "desk", *changes, *at, "--json")
    changed = orjson.loads(out)
    assert (changed["url"], changed["stream"], changed["min_severity"], changed["kinds"]) == (
        "https://8.8.4.4",
        None,
        "high",
        ["correction"],
    )
    assert "say what to change" in call("webhooks", "change", "desk", *at)[2]
    _, out, _ = call("webhooks", "change", "desk", "--digest", "10 min", "--at-once", "high", *at, "--json")
    assert orjson.loads(out)["digest"] == {"every": "10 min", "at_once": "high"}
    _, out, _ = call("webhooks", "change", "desk", "--digest", "none", *at, "--json")
    assert orjson.loads(out)["digest"] is None


def test_a_closed_pipe_is_no_negative_result():
    program = "import sys; sys.argv = ['forestall', 'settings', '--json']; from service.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")

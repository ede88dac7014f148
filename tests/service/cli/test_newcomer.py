"""Twenty commands that a newcomer types, each with its answer and exit status."""

import io
import shlex

import orjson
import pytest
import typer

from service.cli.app import _RENAMED, build_app, commands

pytestmark = pytest.mark.redis


@pytest.fixture
def at(api_url, client):
    """The address of an empty service, as an option."""
    return ("--url", api_url)


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        ([], 0, "Complex event processing"),
        (["--version"], 0, "forestall "),
        (["--help"], 0, "Send events"),
        (["streams", "--help"], 0, "delete"),
        (["keys", "--help"], 0, "add"),
        (["nothing"], 2, "No such command 'nothing'"),
        (["streams", "lst"], 2, "No such command 'lst'"),
        (["alerts", "list", "--limt", "3"], 2, "No such option: --limt"),
        (["alerts", "list", "--limit", "abc"], 2, "unable to parse string as an integer, got 'abc'"),
        (["match"], 2, "Missing option '--events'"),
        (["api", "FETCH", "/v1/streams"], 2, "'FETCH' is not one of"),
    ],
)
def test_commands_without_a_service(call, words, status, part):
    found, out, err = call(*words)
    assert (found, part in " ".join((out + err).replace("│", " ").split())) == (status, True)


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["streams", "list"], 0, "name"),
        (["streams", "show", "orders"], 2, "there is no stream 'orders'; declare it first (forestall streams add)"),
        (["streams", "delete", "orders"], 2, "there is no stream 'orders'"),
        (["alerts", "list", "--since", "yesterday"], 2, "is not RFC 3339"),
        (["api", "GET", "/v1/health"], 0, '"status": "ok"'),
        (["api", "get", "v1/streams?limit=2"], 0, '"items": []'),
        (["api", "GET", "/v1"], 0, '"name": "Forestall"'),
        (["api", "GET", "/metrics"], 0, "forestall_build_info"),
        (["api", "DELETE", "/v1/streams/orders"], 2, "there is no stream 'orders'"),
        (["results", "list", "corrections"], 0, "reason"),
        (["results", "list", "nothing"], 2, "is not a kind of results; there are alerts"),
        (["audit", "list"], 0, "method"),
        (["webhooks", "add", "ftp://x"], 2, "http or https URL"),
        (["keys", "revoke", "none"], 2, "there is no API key with the id 'none'"),
    ],
)
def test_commands_of_an_empty_service(call, at, words, status, part):
    found, out, err = call(*words, *at)
    assert (found, part in " ".join((out + err).replace("│", " ").split())) == (status, True)


def test_what_cannot_be_asked_says_how_to_go_on(call, at, monkeypatch):
    assert call("streams", "add", "orders", *at)[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    status, _, err = call("streams", "delete", "orders", *at)
    assert (status, "delete the stream orders with --yes" in " ".join(err.replace("│", " ").split())) == (2, True)
    assert call("streams", "rm", "orders", "--yes", *at)[0] == 0


def test_a_body_is_read_from_the_input(call, at, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"name": "orders", "key": "data.id"}'))
    assert '"name": "orders"' in call("api", "POST", "/v1/streams", "--body", "-", *at)[1]


def test_a_service_is_named_in_the_environment(call, api_url, client, monkeypatch):
    for url in (api_url, f"{api_url}/v1/"):
        monkeypatch.setenv("FORESTALL_URL", url)
        assert orjson.loads(call("api", "GET", "/v1/streams")[1]) == {"items": [], "next": None}


def test_the_code_of_a_problem_is_on_top(call, at):
    error = orjson.loads(call("streams", "show", "none", "--json", *at)[2])
    assert (error["error"], error["details"]["status"]) == ("unknown-stream", 404)


def test_verbs_of_before_are_hidden_and_work(call):
    for group, renamed in _RENAMED.items():
        assert group in commands()
        _, listed, _ = call(group, "--help")
        for before, now in renamed.items():
            assert f" {now} " in listed
            assert f"│ {before} " not in listed
            former, present = (call(group, verb, "--help")[1].splitlines()[2:] for verb in (before, now))
            assert set(former) <= set(present)


def visible(command, words):
    """The commands in the help, with the words that call each."""
    for name, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            yield from visible(part, [*words, name])
    if not getattr(command, "commands", {}):
        yield words, command


def test_every_command_has_an_example_that_it_takes():
    for words, command in visible(typer.main.get_command(build_app()), []):
        begin, _, example = (command.epilog or "").partition(" forestall ")
        arguments = shlex.split(example)
        assert (begin, arguments[: len(words)]) == ("Example:", words)
        command.make_context(" ".join(words), arguments[len(words) :])

"""The commands for streams, workflows, constraints, patterns, webhooks and what was found, against the real API."""

import orjson
import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from api import create_app
from house import ROOT
from service import AlertSink
from service.cli.app import build_app, commands, listing
from service.stores import ExecutorReport
from streams import EventBatch, key_hash, shard_of
from tests.builders.api import serving
from tests.builders.service import settings_for, sink_row, stats_row

pytestmark = pytest.mark.redis

GROUPS = (
    "streams", "event-types", "workflows", "constraints", "patterns", "webhooks", "keys", "alerts", "traces", "endings",
    "deviations", "dead-letters", "backtests",
)  # fmt: skip
ORDER = ROOT / "docs" / "examples" / "order.bpmn"
PATTERN = "PATTERN lost EVENT SEQ(UseRemoteStock r, CancelOrder c) WITHIN 1 d"


@pytest.fixture
def run(call, api_url, stores):
    """Runs ``forestall`` against an API; returns (status, output, errors)."""
    return lambda *arguments: call(*arguments, "--url", api_url)


@pytest.fixture
def printed(run):
    """Runs ``forestall`` with ``--json`` and returns what each line of the output says."""

    def read(*arguments):
        status, out, err = run(*arguments, "--json")
        assert status == 0, err
        return [orjson.loads(line) for line in out.splitlines()]

    return read


def commands_of(name):
    """The commands of a group by name; none, where it is a command."""
    app = build_app([name])
    return {} if not app.registered_groups else vars(vars(typer.main.get_command(app))["commands"][name])["commands"]


def test_streams_are_declared_listed_and_shown(run, printed):
    (made,) = printed("streams", "add", "orders", "--end", "Done", "--further-key", "customer=data.customer")
    assert (made["end_events"], made["keys"]) == (["Done"], {"customer": "data.customer"})
    assert run("streams", "list")[1] == "name    key      ended by  lateness\norders  subject  Done      -\n"
    assert made.pop("warnings") == []
    (shown,) = printed("streams", "show", "orders")
    assert shown == {**made, "producers": [], "consumers": [], "held_back_by": None, "measured_lateness": None}
    keys = [
        "--key",
        "Payment=data.ref",
        "--key",
        "*=data.id",
        "--further-key",
        "who:Order=data.who",
        "--further-key",
        "who:*=w",
    ]
    (made,) = printed("streams", "add", "shop", *keys)
    assert (made["key"], made["keys"]) == (
        {"Payment": "data.ref", "*": "data.id"},
        {"who": {"Order": "data.who", "*": "w"}},
    )
    assert "data.ref (Payment) or data.id (other types)" in run("streams", "list")[1]
    assert "who: data.who (Order) or w (other types)" in run("streams", "show", "shop")[1]
    status, _, err = run("streams", "add", "o", "--further-key", "customer")
    assert status == 2
    assert "'customer' is not NAME=PATH" in err


def test_a_workflow_is_put_followed_and_deleted(run, printed):
    printed("streams", "add", "orders")
    status, out, _ = run("workflows", "put", "order", str(ORDER), "--stream", "orders")
    assert (status, out.splitlines()[1]) == (0, "orders follows it by its automaton")
    assert run("workflows", "list")[1].splitlines()[1].split() == ["order", "1", "bpmn", "orders"]
    assert len(printed("workflows", "constraints", "order", "--full")) == 535
    assert "prior(AllocateStock, AllocateStock)" in printed("constraints", "show", "orders")[0]["constraints"]
    status, _, err = run("workflows", "delete", "order")
    assert status == 2
    assert "orders" in err
    assert run("workflows", "unfollow", "orders")[0] == 0
    status, out, _ = run("workflows", "follow", "order", "--stream", "orders", "--mode", "tables")
    assert (status, out) == (0, "orders follows version 1 of order\n")
    assert run("workflows", "unfollow", "orders")[0] == run("workflows", "delete", "order")[0] == 0


def test_constraints_are_uploaded_and_a_model_is_still_read(run, printed, call, files):
    printed("streams", "add", "orders")
    status, out, err = run("constraints", "upload", "rules.yaml", "--stream", "orders")
    assert (status, out) == (0, "orders: version 1, 1 constraint\n"), err
    assert printed("constraints", "show", "orders")[0]["constraints"] == ["prior(Cancel, Ship)"]
    assert [one["stream"] for one in printed("constraints", "list")] == ["orders"]
    status, out, _ = call("constraints", str(ORDER), "--json")
    assert status == 0
    assert out == call("constraints", "derive", str(ORDER), "--output", "json")[1]
    assert call("constraints", "--full", str(ORDER))[1].startswith("order: automaton of 31 states")


def test_the_life_of_a_pattern(run, printed, tmp_path):
    printed("streams", "add", "orders")
    (tmp_path / "lost.pattern").write_text(PATTERN)
    status, out, _ = run("patterns", "add", "lost.pattern", "--stream", "orders", "--draft", "--severity", "high")
    assert (status, out) == (0, "lost: version 1 on orders, draft\n")
    for verb, state in (("activate", "active"), ("pause", "paused"), ("resume", "active"), ("retire", "retired")):
        assert printed("patterns", verb, "lost")[0]["state"] == state
        if verb == "pause":
            assert "It skips the backlog: 0 events" in run("patterns", "pause", "lost", "--now")[1]
    assert run("patterns", "list", "--stream", "orders")[1].splitlines()[1].split()[:3] == ["lost", "orders", "retired"]
    assert "total: 0" in run("patterns", "show", "lost")[1]
    assert printed("patterns", "statistics", "lost")[0]["alerts"] == 0
    assert [one["version"] for one in printed("patterns", "versions", "lost")] == [1]
    assert run("patterns", "delete", "lost")[2] == "the pattern lost is deleted\n"
    assert printed("patterns", "list") == []


def test_a_pattern_is_changed_and_a_copied_name_replaces_none(run, printed, tmp_path):
    printed("streams", "add", "orders")
    printed("patterns", "add", PATTERN, "--stream", "orders", "--severity", "high", "--suppress", "1 h")
    (tmp_path / "next.pattern").write_text(PATTERN.replace("1 d", "2 d"))
    status, _, err = run("patterns", "add", "next.pattern", "--stream", "orders")
    assert (status, "forestall patterns change" in err) == (2, True)
    (graded,) = printed("patterns", "change", "lost", "--severity", "low")
    assert (graded["severity"], graded["version"]) == ("low", 1)
    changed = printed("patterns", "change", "lost", "next.pattern", "--migrate")[0]
    assert (changed["severity"], changed["version"], changed["suppress"]["for"]) == ("low", 2, "1 h")
    (unguarded,) = printed("patterns", "change", "lost", "--unguarded")
    assert (unguarded["constraints"], unguarded["version"], unguarded["text"]) == ("off", 3, changed["text"])
    status, _, err = run("patterns", "change", "absent", "next.pattern")
    assert (status, "absent" in err) == (2, True)


def test_incidents_are_listed_acknowledged_and_closed(run, printed, stores):
    printed("streams", "add", "orders")
    text = "PATTERN lost EVENT A a RETURN a.customer AS customer"
    options = ("--suppress", "1 h by customer", "--incident", "2 h")
    assert run("patterns", "add", text, "--stream", "orders", *options)[0] == 0
    other = "PATTERN found EVENT B b RETURN b.customer AS customer"
    assert run("patterns", "add", other, "--stream", "orders", "--resolves", "lost by customer")[0] == 0
    assert printed("patterns", "show", "lost")[0]["incident"] == {"by": ["customer"], "close_after": "2 h"}
    assert printed("patterns", "show", "found")[0]["resolves"] == {"pattern": "lost", "by": ["customer"]}
    moment = "2026-01-01T00:00:00Z"
    times = {"opened_at": moment, "updated_at": moment, "closed_at": None}
    about = {"stream": "orders", "pattern": "lost", "version": 1, "key": "k", "why": "", "state": "open", "revision": 1}
    counts = {"alerts": 3, "suppressed_alerts": 2, "first_alert": "a", "last_alert": "a"}
    marks = {"closed_by": None, "acknowledged": None, "severity": "high", "group": {"customer": "ann"}}
    stores.incidents.note([orjson.dumps({"id": "i-1", "incident": "i", **about, **times, **counts, **marks})])
    line = run("incidents", "list", "--state", "open", "--pattern", "lost")[1].splitlines()[1]
    assert line.split()[:6] == ["i", "lost", "customer:", "ann", "open", "high"]
    assert printed("incidents", "list", "--state", "closed") == []
    assert printed("incidents", "show", "i")[0]["alerts"] == 3
    assert run("incidents", "acknowledge", "i", "--by", "eve")[1].startswith("requested: acknowledge the incident of")
    assert run("incidents", "close", "i")[0] == 0
    assert "there is no incident 'j'" in run("incidents", "close", "j")[2]


def test_sinks_are_added_switched_and_deleted(run, printed, tmp_path):
    (tmp_path / "password").write_text("secret word\n")
    (tmp_path / "mail.json").write_text('{"subject": "{{pattern}}"}')
    status, out, err = run(
        "sinks", "add-email", "ann@example.org", "bob@example.org", "--host", "8.8.8.8:2525", "--sender",
        "f@example.org", "--user", "f", "--secret-file", "password", "--template", "mail.json", "--starttls",
        "--name", "desk",
    )  # fmt: skip
    assert status == 0, err
    assert "smtp://8.8.8.8:2525/ann@example.org,bob@example.org" in out
    topic = ("--servers", "8.8.8.8:9092", "--option", "client.id=f", "--kind", "deviation")
    assert run("sinks", "add-kafka", "found", *topic)[0] == 0
    status, _, err = run("sinks", "add-parquet", "shop/alerts", "--digest", "5 min")
    assert status != 0
    assert "FORESTALL_WEBHOOKS__FOLDER is not set" in err
    mail, kafka = printed("sinks", "list")
    assert (mail["security"], mail["port"], kafka["options"], kafka["kinds"]) == (
        "starttls", 2525, {"client.id": "f"}, ["deviation"],
    )  # fmt: skip
    assert run("sinks", "disable", "desk")[2] == "the sink desk is disabled\n"
    assert printed("sinks", "show", "desk")[0]["enabled"] is False
    assert printed("sinks", "deliveries", "desk") == []
    assert run("sinks", "redeliver", "desk", "--since", "2026-01-01T00:00:00Z")[1] == "0 queued\n"
    assert run("sinks", "delete", "desk")[0] == 0
    assert len(printed("sinks", "list")) == 1


@pytest.mark.parametrize("host", ["mail:abc", "mail:", "mail:٢٥", "mail:65536", "mail:0", "2001:db8::1", "[::1", ""])
def test_a_mail_server_that_cannot_be_read_is_refused(run, printed, host):
    status, _, err = run("sinks", "add-email", "ann@example.org", "--sender", "f@example.org", "--host", host)
    assert (status, "is not HOST[:PORT]" in " ".join(err.split()), printed("sinks", "list")) == (2, True, [])


def test_a_mail_server_may_have_an_address_of_ipv6(run, printed):
    mail = ("sinks", "add-email", "ann@example.org", "--sender", "f@example.org", "--host")
    assert run(*mail, "[2001:4860:4860::8888]:25")[0] == run(*mail, "[2001:4860:4860::8888]")[0] == 0
    assert [(sink["host"], sink["port"]) for sink in printed("sinks", "list")] == [
        ("2001:4860:4860::8888", 25), ("2001:4860:4860::8888", 465),
    ]  # fmt: skip


def test_what_is_no_pattern_is_told(run, tmp_path):
    assert "is neither a file nor a pattern" in run("patterns", "add", "absent.pattern", "--stream", "orders")[2]
    (tmp_path / "two.pattern").write_text("PATTERN one EVENT A PATTERN two EVENT B")
    assert "contains 2 patterns (one, two)" in run("patterns", "add", "two.pattern", "--stream", "orders")[2]
    status, _, err = run("patterns", "dry-run")
    assert status == 2
    assert "--name" in err


def test_a_dry_run_says_in_sentences_what_terminates_the_pattern_early(run, printed, tmp_path):
    (tmp_path / "rules.yaml").write_text("constraints:\n- exclusive: [UseLocalStock, UseRemoteStock]\n")
    printed("streams", "add", "orders")
    assert run("constraints", "add", "rules.yaml", "--stream", "orders")[0] == 0
    tried = ("patterns", "dry-run", PATTERN, "--stream", "orders")
    out = run(*tried)[1]
    (condition,) = printed(*tried)[0]["failing_conditions"]
    assert f"terminated early by:\n- '{condition['text']}'\n" in out
    assert ("failing conditions" in out, "required before" in out) == (False, False)


def test_webhooks_are_added_switched_and_deleted(run, printed, tmp_path):
    (tmp_path / "slack.json").write_text('{"text": "{{pattern}}"}')
    status, out, err = run(
        "webhooks", "add", "https://8.8.8.8/alerts", "--kind", "alert", "--header", "x-team: one",
        "--template", "slack.json", "--min-severity", "high", "--name", "desk",
    )  # fmt: skip
    assert status == 0
    assert out.startswith("whsec_")
    assert out.strip() not in err
    status, _, err = run("webhooks", "add", "https://8.8.8.8/alerts", "--kind", "timeout")
    assert status == 2
    assert "'timeout' is not one of alert, alert.suppressed" in err
    (hook,) = printed("webhooks", "list")
    assert (hook["header_names"], hook["template"], hook["kinds"]) == (["x-team"], {"text": "{{pattern}}"}, ["alert"])
    assert "desk" in run("webhooks", "list")[1]
    assert printed("webhooks", "show", "desk")[0]["id"] == hook["id"]
    assert run("webhooks", "show", "other")[0] != 0
    assert run("webhooks", "disable", "desk")[0] == 0
    assert printed("webhooks", "show", hook["id"])[0]["enabled"] is False
    assert printed("webhooks", "deliveries", hook["id"]) == []
    assert run("webhooks", "redeliver", hook["id"], "--since", "2026-01-01T00:00:00Z")[1] == "0 queued\n"
    assert run("webhooks", "rotate", hook["id"], "--grace", "60")[1].startswith("whsec_")
    assert printed("webhooks", "deliveries", "desk") == []
    assert run("webhooks", "delete", "desk")[0] == 0
    assert printed("webhooks", "list") == []


def test_what_is_not_there_is_one_sentence(run):
    for arguments in (
        ("alerts", "show", "a/b"), ("alerts", "acknowledge", "a"), ("traces", "show", "orders", "o-1"),
        ("webhooks", "test", "w"), ("patterns", "show", "p"), ("workflows", "show", "w"), ("streams", "show", "s"),
    ):  # fmt: skip
        status, out, err = run(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), arguments


def test_the_status_says_what_is_missing(run):
    assert orjson.loads(run("status", "--over", "0.1", "--json")[1])["rate_measured_s"] == 0.1
    status, out, _ = run("status", "--over", "0")
    assert status == 1
    assert "ready: false" in out
    assert "waiting for the pipeline: its process has not started yet" in out
    assert orjson.loads(run("status", "--over", "0", "--json")[1])["backlog_events"] == 0


def test_the_status_names_missing_executors(run, stores):
    stores.pipeline_status.keep_executors(ExecutorReport(running=2, missing=("worker-3",)))
    out = run("status", "--over", "0")[1]
    assert "executors: 2\nmissing executors:\n- worker-3\n" in out


def test_endings_are_lists(printed):
    assert printed("endings", "list") == printed("endings", "summary") == []


def test_reasons_of_early_terminations_have_the_same_names_in_every_command(run, printed, stores, clock):
    printed("streams", "add", "orders")
    printed("patterns", "add", PATTERN, "--stream", "orders")
    reason = {"form": "p2", "constraints": ["exclusive(A, B)"], "atom": "UseRemoteStock r"}
    body = {"id": "e", "stream": "orders", "pattern": "lost", "event_type": "A", "reason": "why", "key": "k", **reason}
    AlertSink(stores, clock)([sink_row(kind="ending", stream="orders", id="e", body=orjson.dumps(body))], 1)
    assert run("endings", "summary")[1].splitlines() == [
        "pattern  by               missing           count",
        "lost     exclusive(A, B)  UseRemoteStock r  1",
    ]
    listed = "reasons:\n  - by: exclusive(A, B)\n    missing: UseRemoteStock r\n    count: 1\n"
    for command in ("show", "statistics"):
        assert listed in run("patterns", command, "lost")[1]
    (counts,) = printed("patterns", "statistics", "lost")
    (found,) = counts["ending_summary"]["reasons"]
    assert (found["form"], found["chain"], found["atom"]) == ("p2", "exclusive(A, B)", "UseRemoteStock r")


def test_a_suspended_pattern_says_why_and_is_resumed(run, printed, stores):
    printed("streams", "add", "orders")
    printed("patterns", "add", PATTERN, "--stream", "orders")
    budget = {
        "per_event": 1_000,
        "per_trace": 10_000_000,
        "traces": 10,
        "forgiven_after": 1_000_000,
        "in_all": 20_000_000,
    }
    said = {"pattern": "lost", "version": 1, "key": "k", "event": "e", "event_type": "A", "shard": 0, "budget": budget}
    said |= {"id": "s", "stream": "orders", "time": "2026-01-01T00:00:00Z", "reason": "the trace 'k' cost too much"}
    assert stores.registry.suspend(said)
    assert run("patterns", "list")[1].splitlines()[1].split()[:3] == ["lost", "orders", "suspended"]
    assert "the trace 'k' cost too much" in run("patterns", "show", "lost")[1]
    (resumed,) = printed("patterns", "resume", "lost")
    assert (resumed["state"], resumed["version"]) == ("active", 2)
    assert "suspended because" not in run("patterns", "show", "lost")[1]


def test_the_status_for_a_restricted_key_is_what_it_may_see(call, server_url, stores):
    with serving(create_app(settings_for(server_url, api_key="a-key-for-tests"))) as url:
        mine = ("--url", url, "--api-key", "a-key-for-tests")
        for stream in ("orders", "payments"):
            assert call("streams", "add", stream, *mine)[0] == 0
        assert call("patterns", "add", PATTERN, "--stream", "orders", *mine)[0] == 0
        _, token, _ = call("keys", "create", "clerk", "--scope", "read", "--stream", "orders", *mine)
        status, out, err = call("status", "--json", "--url", url, "--api-key", token.strip())
    assert (status, err) == (1, "")
    counts = {"active_patterns": 1, "alerts": 0, "deviations": 0, "dead_letters": 0}
    assert orjson.loads(out)["streams"] == {"orders": counts}


def test_event_types_are_put_checked_and_deleted(run, printed, tmp_path):
    printed("streams", "add", "orders")
    (tmp_path / "schema.json").write_text('{"required": ["price"]}')
    assert run("event-types", "put", "orders", "Quote/2", "schema.json")[1] == "Quote/2 of orders: version 1\n"
    assert printed("event-types", "show", "orders", "Quote/2")[0]["json_schema"] == {"required": ["price"]}
    _, out, err = run("event-types", "list", "orders")
    assert (out.splitlines()[1].split()[:2], err) == (["Quote/2", "1"], "events of orders are not checked\n")
    assert printed("event-types", "check", "orders") == [{"schemas": "check"}]
    assert run("event-types", "check", "orders", "--off")[1] == "schemas: off\n"
    assert "the schema of type Quote/2 of orders is removed" in run("event-types", "delete", "orders", "Quote/2")[2]
    assert printed("event-types", "list", "orders") == []
    (tmp_path / "schema.json").write_text("{")
    assert "schema.json: line 1" in run("event-types", "put", "orders", "Quote", "schema.json")[2]


def test_dead_letters_are_listed_shown_and_sent_again(run, printed, tmp_path):
    printed("streams", "add", "orders")
    (tmp_path / "schema.json").write_text('{"required": ["price"]}')
    (tmp_path / "events.jsonl").write_text('{"id": "e", "type": "Quote", "time": 1, "key": "k", "data": {}}\n')
    run("event-types", "put", "orders", "Quote", "schema.json")
    run("event-types", "check", "orders")
    assert run("replay", "events.jsonl", "--stream", "orders")[0] == 1
    (letter,) = printed("dead-letters", "list", "--stream", "orders", "--code", "schema-broken")
    assert printed("dead-letters", "show", letter["id"])[0]["whole"]
    status, out, _ = run("dead-letters", "replay", "--all", "--stream", "orders")
    assert (status, "refused: schema-broken" in out) == (1, True)
    run("event-types", "check", "orders", "--off")
    status, out, _ = run("dead-letters", "replay", letter["id"])
    assert (status, out.splitlines()[1].split()) == (0, [letter["id"], "accepted"])
    assert "accepted" in run("dead-letters", "list")[1]
    assert printed("dead-letters", "replay", "--all") == []
    assert run("dead-letters", "replay")[0] == 2


def test_all_letters_are_sent_again_although_the_oldest_stay_refused(run, printed, tmp_path, monkeypatch):
    monkeypatch.setattr("service.cli.dead_letters._LARGEST_PAGE", 2)
    printed("streams", "add", "orders")
    (tmp_path / "schema.json").write_text('{"required": ["price"]}')
    run("event-types", "put", "orders", "Quote", "schema.json")
    run("event-types", "check", "orders")
    lines = [f'{{"id": "e{number}", "type": "Quote", "time": {number}, "key": "k"}}\n' for number in range(5)]
    (tmp_path / "events.jsonl").write_text("".join(lines))
    assert run("replay", "events.jsonl", "--stream", "orders")[0] == 1
    ids = {letter["id"] for letter in printed("dead-letters", "list", "--stream", "orders")}
    assert len(ids) == 5
    for _ in range(2):
        status, out, _ = run("dead-letters", "replay", "--all", "--json")
        assert (status, {orjson.loads(line)["id"] for line in out.splitlines()}) == (1, ids)


def test_backtests_are_asked_for_listed_and_cancelled(run, printed, tmp_path):
    printed("streams", "add", "orders")
    (tmp_path / "lost.pattern").write_text(PATTERN)
    (first,) = printed("backtests", "ask", "lost.pattern", "--stream", "orders", "--pruning", "off")
    assert (first["state"], first["source"]["log"], first["pruning"]) == ("queued", True, "off")
    printed("patterns", "add", PATTERN, "--stream", "orders")
    (second,) = printed("backtests", "ask", "lost", "--stream", "orders", "--against", PATTERN)
    assert [one["name"] for one in second["patterns"] + second["against"]] == ["lost", "lost"]
    assert run("backtests", "list", "--stream", "orders")[1].splitlines()[1].split()[1:5] == [
        "orders", "lost", "queued", "0%",
    ]  # fmt: skip
    assert printed("backtests", "show", first["id"])[0]["result"] is None
    assert printed("backtests", "alerts", first["id"]) == []
    assert run("backtests", "delete", first["id"])[0] == 0
    (_, cancelled) = printed("backtests", "list")
    assert cancelled["state"] == "cancelled"
    assert printed("backtests", "ask", "lost", "--stream", "orders")[0]["state"] == "queued"


def test_deviations_are_a_list(printed):
    assert printed("deviations", "list") == []


@pytest.mark.usefixtures("impatient")
def test_a_service_that_does_not_answer_is_another_status(call):
    for arguments in (("status",), ("alerts", "list")):
        status, _, err = call(*arguments, "--url", "http://127.0.0.1:9")
        assert status == 3
        assert "does not answer" in err
        assert "'forestall serve' starts one" in err


def test_the_version_is_told(call):
    assert call("--version")[1].startswith("forestall ")


def test_names_of_commands_are_completed(call, monkeypatch):
    monkeypatch.setenv("_FORESTALL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("COMP_WORDS", "forestall w")
    assert call()[1].split() == ["warm-up", "workflows", "webhooks"]
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("COMP_WORDS", "forestall webhooks re")
    assert call()[1].split() == ["redeliver"]


@pytest.mark.parametrize("group", GROUPS)
def test_commands_that_call_the_service_are_regular(group):
    for name, sub in commands_of(group).items():
        options = {option for parameter in sub.params for option in parameter.opts}
        if (group, name) == ("constraints", "derive"):
            continue
        assert {"--url", "--api-key"} <= options, f"{group} {name}"
        if name not in ("delete", "unfollow", "enable", "disable", "revoke"):
            assert "--json" in options, f"{group} {name}"


def test_an_argument_is_described_by_what_names_a_resource(call):
    for group, form in (
        ("tables", "Name of the table"),
        ("incidents", "Id of the incident"),
        ("sinks", "Id or name of"),
    ):
        assert form in call(group, "show", "--help")[1]


def test_the_help_of_all_commands_says_what_each_says_of_itself():
    group = get_command(build_app())
    assert isinstance(group, TyperGroup)
    said = {name: (command.help or "").split("\n\n")[0] for name, command in group.commands.items()}
    assert said == dict(commands())


def test_every_command_is_in_its_reference_by_its_present_verb():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name in commands():
        hidden = {sub: command.hidden for sub, command in commands_of(name).items()}
        for sub, is_former in (hidden or {"": False}).items():
            is_described = f"`forestall {name} {sub}".removesuffix(" derive").rstrip() in text
            assert is_described is not is_former, f"{name} {sub}"


def test_a_file_that_is_replayed_again_is_dropped_and_said(run, printed, tmp_path):
    printed("streams", "add", "orders")
    (tmp_path / "own.jsonl").write_text('{"id": "e", "type": "A", "time": 1, "key": "k"}\n')
    (tmp_path / "monday.csv").write_text("type,time,key\nA,1,k\nA,2,k\n")
    (tmp_path / "tuesday.csv").write_text("type,time,key\nA,3,k\nA,4,k\n")

    def sent(name, *options):
        found = printed("replay", name, "--stream", "orders", *options)[0]
        return found["accepted"], found["duplicates"]

    assert [sent("own.jsonl"), sent("own.jsonl")] == [(1, 0), (0, 1)]
    assert "--duplicates keep sends it again" in run("replay", "own.jsonl", "--stream", "orders")[2]
    assert [sent("own.jsonl", "--duplicates", "keep") for _ in range(2)] == [(1, 0), (1, 0)]
    assert [sent("monday.csv"), sent("tuesday.csv"), sent("monday.csv")] == [(2, 0), (2, 0), (0, 2)]


def test_a_replay_counts_the_rejected_events_that_it_does_not_list(run, printed, tmp_path):
    printed("streams", "add", "orders")
    for number, words in ((3, []), (5, ["rejected 2 more of this request"])):
        lines = [
            f'{{"id": "{place}", "type": "A", "time": "2100-01-01T00:00:00Z", "key": "k"}}' for place in range(number)
        ]
        (tmp_path / "own.jsonl").write_text("\n".join(lines))
        err = run("replay", "own.jsonl", "--stream", "orders")[2]
        assert err.count("rejected event") == 3
        assert [line for line in err.splitlines() if "more of this" in line] == words


def test_files_of_several_streams_are_replayed_by_time(run, printed, tmp_path, stores):
    for name, seconds in (("orders", range(0, 40, 4)), ("payments", range(2, 22, 2))):
        printed("streams", "add", name)
        lines = [f'{{"id": "{second}", "type": "A", "time": {second * 1_000_000}, "key": "k"}}' for second in seconds]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    both = [part for name in ("orders", "payments") for part in ("--events", f"{name}={name}.jsonl")]
    sent = {"accepted": 10, "rejected": 0, "duplicates": 0}
    assert printed("replay", *both, "--batch-size", "3") == [
        {"stream": name, **sent} for name in ("orders", "payments")
    ]
    shard = shard_of(key_hash("k"), stores.log.shards())
    entries = [entry for entry in stores.log.read_range(shard) if entry.kind == "events"]
    starts = [(one.stream, EventBatch.from_bytes(one.body).time_us[0] // 1_000_000) for one in entries]
    assert starts == [
        ("orders", 0), ("payments", 2), ("payments", 8), ("orders", 12), ("payments", 14), ("payments", 20),
        ("orders", 24), ("orders", 36),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("a.jsonl",),
        ("--stream", "orders"),
        ("a.jsonl", "--stream", "orders", "--events", "orders=a.jsonl"),
        ("--events", "a.jsonl"),
        ("--events", "orders=a.jsonl", "--events", "orders=b.jsonl"),
    ],
)
def test_which_file_goes_to_which_stream_has_to_be_clear(run, arguments):
    assert run("replay", *arguments)[0] == 2


def test_a_file_that_comes_too_late_is_named_before_it_is_sent(run, printed, tmp_path, stores, clock):
    printed("streams", "add", "orders", "--lateness", "5")
    (tmp_path / "old.jsonl").write_text(
        '{"id": "e", "type": "A", "time": 1000000, "key": "k"}\n{"id": "f", "type": "A", "time": 9000000, "key": "k"}'
    )
    AlertSink(stores, clock)([stats_row(0, "1-0", after="0-0", streams={"orders": {"watermark_us": 9_000_000}})], 1)
    _, _, err = run("replay", "old.jsonl", "--stream", "orders")
    assert "notice: 1 of 2 events of old.jsonl are older than 1970-01-01T00:00:09.000000Z" in err


@pytest.mark.parametrize(
    ("key", "number"), [("order_id", "o1"), ("order_id", 7), ("data.order_id", 7), ({"A": "order_id"}, "o1")]
)
def test_a_file_is_replayed_with_the_key_where_the_stream_has_it(printed, run, tmp_path, key, number):
    said = [f"{name}={path}" for name, path in key.items()] if isinstance(key, dict) else [key]
    printed("streams", "add", "orders", *(word for one in said for word in ("--key", one)))
    event = {"id": "e", "type": "A", "time": "2026-11-26T09:00:00Z", "order_id": number}
    (tmp_path / "own.jsonl").write_bytes(orjson.dumps({**event, "data": {"order_id": number, "x": 1}}))
    (found,) = printed("replay", "own.jsonl", "--stream", "orders")
    assert (found["accepted"], found["rejected"]) == (1, 0)
    (listed,) = printed("events", "list", "--stream", "orders")
    assert (listed["key"], listed["data"]) == (str(number), {"order_id": number, "x": 1})


def test_a_file_is_replayed_as_the_mapping_of_its_stream_says(printed, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "s.yaml").write_text(
        "{kind: stream, name: orders, key: data.order, mapping: {id: [order, at], type: what, time: at, data: null, "
        "zone: Europe/Berlin, columns: {amount: number}}}"
    )
    printed("apply", "p")
    (tmp_path / "e.csv").write_text("order;what;at;amount\no1;Paid;02.03.2026 10:00;1,50\n")
    printed("replay", "e.csv", "--stream", "orders")
    (found,) = printed("events", "list", "--stream", "orders")
    assert (found["id"], found["time"], found["key"]) == ("o1:02.03.2026 10:00", "2026-03-02T09:00:00.000000Z", "o1")
    assert found["data"]["amount"] == 1.5


def test_every_command_is_in_one_panel_of_the_overall_help():
    group = get_command(listing())
    assert isinstance(group, TyperGroup)
    assert sorted(group.commands) == sorted(commands())
    assert {getattr(command, "rich_help_panel", None) for command in group.commands.values()} >= {"Run", "Administer"}


def test_calendars_are_put_listed_shown_and_deleted(run, printed, tmp_path):
    file, holidays = tmp_path / "de.yaml", tmp_path / "own.ics"
    file.write_text("zone: Europe/Berlin\nhours: {mon-fri: 09:00-17:00}\nexceptions: {2026-12-24: closed}\n")
    holidays.write_text("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260601\nEND:VEVENT\n")
    assert run("calendars", "put", "de", str(file))[1].endswith("de: version 1\n")
    (made,) = printed("calendars", "put", "de", str(file), "--ical", str(holidays))
    assert (made["version"], made["calendar"]["exceptions"]) == (2, {"2026-12-24": "closed"})
    assert [(one["name"], one["version"]) for one in printed("calendars", "list")] == [("de", 2)]
    (shown,) = printed("calendars", "show", "de")
    assert shown == made
    assert run("calendars", "delete", "de")[0] == 0
    status, _, err = run("calendars", "show", "de")
    assert (status, "there is no calendar 'de'" in err) == (2, True)


def test_one_row_of_a_table_is_changed_added_and_removed(run, printed, tmp_path):
    rows, row = tmp_path / "watched.csv", tmp_path / "row.json"
    rows.write_text("id,most\nann,3\n")
    printed("tables", "add", "watched", str(rows), "--key", "id")
    row.write_text('{"id": "bob", "most": 2}')
    change = ("tables", "change", "watched", "--key", "bob", "--row", str(row))
    (changed,) = printed(*change)
    assert (changed["name"], changed["changed_rows"]) == ("watched", 1)
    assert run(*change)[1] == "watched: the row bob is stored\n"
    for key in ("bob", "nope"):  # the command does not know whether there was such a row
        assert run("tables", "change", "watched", "--key", key)[1] == f"watched has no row {key} now\n"
    row.write_text('{"id": "bob", "least": 2}')
    status, _, err = run(*change)
    assert status == 2
    assert "least" in err

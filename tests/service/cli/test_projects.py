"""A project is planned, applied and exported against the real API."""

import re
from collections import Counter
from pathlib import Path

import orjson
import pytest

from api import create_app
from house import ROOT
from service import AlertSink
from service.client import Client, ResourceConflict
from service.errors import ApplyStopped, ProjectRefused
from service.projects import apply_plan, document_schema, export_project, read_project
from service.projects.planning import wanted_of
from shards import Observation
from streams import AutoLateness, Lags, lateness_summary
from tests.builders.api import serving
from tests.builders.projects import applied, plan_of, written
from tests.builders.service import HandClock, as_old_as_the_log, settings_for, stats_row

pytestmark = pytest.mark.redis

ORDER = ROOT / "docs" / "examples" / "order.bpmn"
PROJECT = {
    "streams.yaml": """
kind: stream
name: orders
key: data.order
keys: {customer: data.customer}
lateness: 5
schemas: check
workflow: {name: order, mode: tables}
---
kind: stream
name: clicks
key: {Buy: data.ref, "*": data.id}
keys: {visitor: {Buy: data.visitor.id, "*": data.visitor_id}}
lateness: {auto: {at_most: 90}}
""",
    "types/price.yaml": "{kind: event-type, name: Price, stream: clicks, schema_file: price.json}",
    "types/price.json": '{"type": "object", "required": ["price"]}',
    "order.yaml": "{kind: workflow, name: order, model_file: order.bpmn}",
    "rules.yaml": """
kind: constraints
name: clicks
constraints:
  - exclusive(Buy, Leave)
  - prior: [Look, Buy]
end: [Leave]
""",
    "patterns/lost.yaml": "{kind: pattern, name: lost, stream: orders, text_file: lost.pattern, severity: high}",
    "patterns/lost.pattern": "PATTERN lost\nEVENT SEQ(UseRemoteStock r, CancelOrder c)\nWITHIN 1 d\n",
    "patterns/bought.yaml": """
kind: pattern
name: bought
stream: clicks
constraints: off
state: paused
text: PATTERN bought EVENT SEQ(Look l, Buy b [v > l.v])
""",
    "patterns/later.yaml": "{kind: pattern, name: later, stream: clicks, state: draft, text: PATTERN later EVENT Buy}",
    "desk.yaml": """
kind: webhook
name: desk
url: https://8.8.8.8/alerts
pattern: lost
headers: {Authorization: {env: DESK_TOKEN}}
template: {text: "{{pattern}} in {{key}}"}
""",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("DESK_TOKEN", "Bearer x")
    folder = written(tmp_path / "project", PROJECT)
    (folder / "order.bpmn").write_bytes(ORDER.read_bytes())
    return folder


@pytest.fixture
def service(api_url, stores):
    with Client(api_url, patience_s=60) as found:
        yield found


def test_a_project_is_made_and_then_nothing_is_to_be_done(service, project):
    assert applied(service, project) == [
        ("new", "stream orders"),
        ("new", "stream clicks"),
        ("new", "event type clicks/Price"),
        ("new", "workflow order"),
        ("new", "workflow of the stream orders"),
        ("new", "constraint set clicks"),
        ("new", "pattern bought"),
        ("new", "pattern later"),
        ("new", "pattern lost"),
        ("new", "webhook desk"),
    ]
    assert service.get("/streams/orders")["lateness"]["seconds"] == 5
    assert service.get("/streams/orders/workflow")["mode"] == "tables"
    assert service.get("/streams/orders")["schemas"] == "check"
    states = {item["name"]: (item["state"], item["severity"]) for item in service.get("/patterns")["items"]}
    assert states == {"bought": ("paused", "medium"), "later": ("draft", "medium"), "lost": ("active", "high")}
    (hook,) = service.get("/webhooks")["items"]
    assert (hook["name"], hook["header_names"]) == ("desk", ["Authorization"])
    plan = plan_of(service, project, is_pruned=True)
    assert (plan.work, plan.same) == ([], 9)
    assert applied(service, project) == []


def test_an_export_changes_nothing_and_makes_another_service_equal(service, project, tmp_path, stores, monkeypatch):
    applied(service, project)
    summary = lateness_summary(AutoLateness(at_most=90), 60_000_000, 0, Lags(1, 0, 70_000_000, Counter({227: 1})))
    observed = [Observation(stream="clicks", decider="lateness", summary=summary).to_json()]
    as_old_as_the_log(stores.client, "clicks")
    AlertSink(stores, HandClock())([stats_row(0, "1-0", after="0-0", observed=observed)], 1)
    assert service.get("/streams/clicks")["measured_lateness"]["total_changes"] == 1
    files = export_project(service, tmp_path / "out")
    assert "lateness:\n  auto:\n    at_most: 90" in (tmp_path / "out/streams/clicks.yaml").read_text()
    assert [str(file.relative_to(tmp_path / "out")) for file in files] == [
        "streams/clicks.yaml",
        "streams/orders.yaml",
        "event-types/clicks_Price.yaml",
        "workflows/order.bpmn",
        "workflows/order.yaml",
        "constraint-sets/clicks.yaml",
        "patterns/bought.yaml",
        "patterns/later.yaml",
        "patterns/lost.yaml",
        "webhooks/desk.yaml",
    ]
    assert plan_of(service, tmp_path / "out", is_pruned=True).changes == []
    stores.client.flushdb()
    monkeypatch.setenv("DESK_AUTHORIZATION", "Bearer y")
    applied(service, tmp_path / "out")
    assert plan_of(service, project, is_pruned=True).work == []
    export_project(service, tmp_path / "again")
    both = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "out", tmp_path / "again")
    ]
    assert both[0] == both[1]


def test_exported_names_that_differ_in_case_only_have_files_of_their_own(service, tmp_path):
    names = ["Orders", "orders", "ORDERS", "orders-2"]
    for name in names:
        service.post("/streams", {"name": name})
    files = export_project(service, tmp_path / "out")
    assert len({file.name.casefold() for file in files}) == len(names)
    exported = [name for file in files for name in re.findall(r"^name: (.*)$", file.read_text(), re.MULTILINE)]
    assert sorted(exported) == sorted(names)


def test_changes_are_shown_and_made(service, project):
    applied(service, project)
    (project / "patterns/lost.pattern").write_text("PATTERN lost EVENT SEQ(UseRemoteStock r, CancelOrder c) WITHIN 2 d")
    rules = project / "rules.yaml"
    rules.write_text(rules.read_text().replace("[Look, Buy]", "[Look, Leave]"))
    for name, before, after in (
        ("patterns/bought.yaml", "paused", "active"),
        ("patterns/later.yaml", "draft", "active"),
        ("desk.yaml", "pattern: lost", "pattern: bought\nenabled: false"),
    ):
        path = project / name
        path.write_text(path.read_text().replace(before, after))
    plan = plan_of(service, project)
    told = {change.title: change.difference() for change in plan.work}
    assert set(told) == {"constraint set clicks", "pattern bought", "pattern later", "pattern lost", "webhook desk"}
    assert told["pattern bought"][-3:] == ["-state: paused", "+state: active", " stream: clicks"] or (
        "-state: paused" in told["pattern bought"]
    )
    assert {"-enabled: true", "+enabled: false", "-pattern: lost", "+pattern: bought"} <= set(told["webhook desk"])
    assert [title for _, title in applied(service, project)] == [change.title for change in plan.work]
    assert applied(service, project) == []
    assert {item["state"] for item in service.get("/patterns")["items"]} == {"active"}
    assert service.get("/patterns/lost")["version"] == 2
    assert service.get("/constraints/clicks")["source"]["constraints"][1] == {"prior": ["Look", "Leave"]}


def test_what_is_not_named_stays_until_it_is_pruned(service, project):
    applied(service, project)
    for name in ("patterns/lost.yaml", "desk.yaml", "rules.yaml", "types/price.yaml"):
        (project / name).unlink()
    (project / "types/price.json").unlink()
    kept = plan_of(service, project)
    assert {change.action for change in kept.changes} == {"kept"}
    assert applied(service, project) == []
    assert applied(service, project, is_pruned=True) == [
        ("gone", "webhook desk"),
        ("gone", "pattern lost"),
        ("gone", "constraint set clicks"),
        ("gone", "event type clicks/Price"),
    ]
    assert plan_of(service, project, is_pruned=True).changes == []


def test_what_cannot_be_changed_is_said_before_anything_is_done(service, project):
    applied(service, project)
    streams = project / "streams.yaml"
    streams.write_text(streams.read_text().replace("key: data.order", "key: data.other"))
    with pytest.raises(ProjectRefused, match=r"streams.yaml:2: stream orders: key of a stream cannot be changed"):
        plan_of(service, project)


def test_event_time_of_a_stream_is_changed_and_what_is_left_out_is_as_usual(service, project):
    applied(service, project)
    streams = project / "streams.yaml"
    streams.write_text(streams.read_text().replace("lateness: 5", "idle_timeout: 9\nend_events: [Done]"))
    assert applied(service, project) == [("changed", "stream orders")]
    found = service.get("/streams/orders")
    assert (found["lateness"], found["idle_timeout_s"], found["end_events"]) == (None, 9, ["Done"])
    assert applied(service, project) == []


def test_of_two_who_apply_at_the_same_time_one_is_stopped_with_the_difference(service, project):
    applied(service, project)
    text = project / "patterns/lost.pattern"
    text.write_text(text.read_text().replace("1 d", "2 d"))
    first = plan_of(service, project)
    text.write_text(text.read_text().replace("2 d", "3 d"))
    second = plan_of(service, project)
    apply_plan(service, second, lambda _: None)
    with pytest.raises(ApplyStopped) as stopped:
        apply_plan(service, first, lambda _: None)
    assert stopped.value.details == {"status": 412, "made": 0, "left": ["pattern lost"]}
    assert re.search(r"- +WITHIN 1 d\n +\+ +WITHIN 3 d", stopped.value.message)
    assert service.get("/patterns/lost")["text"].endswith("WITHIN 3 d")


def test_between_reading_and_writing_nobody_is_written_over(service, project, monkeypatch):
    """The last moment: the service compares the tag."""
    applied(service, project)
    text = project / "patterns/lost.pattern"
    text.write_text(text.read_text().replace("1 d", "2 d"))
    plan = plan_of(service, project)
    request = Client.request

    def overtaken(self, method, path, **options):
        if "If-Match" in options.get("headers", {}):
            monkeypatch.undo()
            service.put("/patterns/lost", {"stream": "orders", "text": "PATTERN lost EVENT CancelOrder"})
        return request(self, method, path, **options)

    monkeypatch.setattr(Client, "request", overtaken)
    with pytest.raises(ApplyStopped, match="EVENT CancelOrder"):
        apply_plan(service, plan, lambda _: None)
    assert service.get("/patterns/lost")["text"] == "PATTERN lost EVENT CancelOrder"


def test_a_change_that_is_refused_stops_and_says_what_is_made(service, project):
    applied(service, project)
    (project / "a.yaml").write_text("{kind: pattern, name: a, stream: orders, text: PATTERN a EVENT A}")
    (project / "b.yaml").write_text("{kind: webhook, name: b, url: ftp://8.8.8.8}")
    with pytest.raises(ApplyStopped) as stopped:
        applied(service, project)
    assert stopped.value.details["left"] == ["webhook b"]
    assert "1 of 2 changes are made; not made: webhook b" in stopped.value.message
    (project / "b.yaml").write_text("{kind: webhook, name: b, url: 'https://8.8.8.8'}")
    assert applied(service, project) == [("new", "webhook b")]


def test_two_webhooks_cannot_have_one_name(service):
    service.post("/webhooks", {"url": "https://8.8.8.8", "name": "desk"})
    with pytest.raises(ResourceConflict) as refused:
        service.post("/webhooks", {"url": "https://8.8.8.8/other", "name": "desk"})
    assert refused.value.code == "webhook-name-taken"
    (hook,) = service.get("/webhooks")["items"]
    service.delete(f"/webhooks/{hook['id']}")
    assert service.post("/webhooks", {"url": "https://8.8.8.8/other", "name": "desk"})["name"] == "desk"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "x.yaml:1: a document is a mapping with kind and name"),
        ("name: a", "x.yaml:1: a document has kind and name; it has no kind"),
        ("kind: strem\nname: a", "x.yaml:1: there is no kind 'strem' (did you mean stream?)"),
        ("kind: stream\nname: a\n\nlatenes: 3", "x.yaml:4: a stream has no member 'latenes' (did you mean lateness?)"),
        ("kind: stream\nname: a\nlateness: -1", "x.yaml:3: lateness: -1 is less than the minimum of 0"),
        (
            "kind: stream\nname: a\nlateness: {auto: {at_mst: 3}}",
            "x.yaml:3: lateness.auto: there is no member 'at_mst'",
        ),
        (
            "kind: stream\nname: a\nlateness: {auto: {at_least: 9, at_most: 5}}",
            "x.yaml:1: stream 'a': lateness: at_least of auto is 9 seconds, more than at_most, which is 5",
        ),
        (
            "kind: stream\nname: a\nlateness: soon",
            'x.yaml:3: lateness: a duration (1 h), a number of seconds (3600), or auto; got "soon"',
        ),
        (
            "kind: stream\nname: a\nidle_timeout: soon",
            'x.yaml:3: idle_timeout: a duration (1 h), or a number of seconds (3600); got "soon"',
        ),
        (
            "kind: stream\nname: a\nmax_ahead: soon",
            "x.yaml:3: max_ahead: a duration (1 h) or a number of seconds (3600) ahead of the clock, or none; got",
        ),
        (
            "kind: stream\nname: a\nidle_timeout: 1 parsec",
            "'idle_timeout' of a stream declaration is a duration such as '5 min', or a number of seconds, got '1 par",
        ),
        ("kind: stream\nname: a\nlateness: 1e400", "x.yaml:3: 1e400 is too large"),
        ("kind: stream\nname: a\nkey: {A: 1}", "x.yaml:3: key.A: a text; got 1"),
        ("kind: stream\nname: a\nkey: {A: data..x}", "the path 'data..x' of the correlation key has an empty part"),
        ("kind: stream\nname: a\nname: b", "x.yaml:3: the key 'name' is given twice"),
        ("kind: stream\nname: a\nkeys: &x {}\nmapping: *x", "anchors and aliases are not allowed"),
        ("kind: [", "x.yaml:1: this is neither JSON nor YAML"),
        ("kind: pattern\nname: a\ntext: PATTERN a EVENT A", '"stream" is a required property'),
        ("kind: pattern\nname: a\nstream: s", "x.yaml:1: a pattern has either text or text_file"),
        ("kind: pattern\nname: a\nstream: s\ntext: PATTERN a EVENT", "x.yaml:4: "),
        ("kind: pattern\nname: a\nstream: s\ntext: PATTERN b EVENT A", "the text calls the pattern 'b'"),
        ("kind: pattern\nname: a\nstream: s\ntext_file: no.txt", "x.yaml:4: text_file: no.txt cannot be read: No such"),
        ("kind: pattern\nname: a\nstream: s\ntext_file: ../a", "../a is outside the project"),
        ("kind: constraints\nname: s\nconstraints: [prior(A)]", "x.yaml:1: "),
        ("kind: event-type\nname: A\nstream: s", "an event type has either schema or schema_file"),
        ("kind: stream\nname: 'a b'", "x.yaml:1: "),
        ("kind: stream\nname: a\n---\nkind: stream\nname: a", "x.yaml:4: the stream 'a' is at"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ProjectRefused) as refused:
        wanted_of(read_project(tmp_path), tmp_path)
    assert said in refused.value.message.replace(f"{tmp_path}/", "")


def test_all_problems_are_named_at_once(tmp_path):
    (tmp_path / "a.yaml").write_text("kind: strem\nname: a")
    (tmp_path / "b.yaml").write_text("kind: stream\nname: a\nlate: never")
    with pytest.raises(ProjectRefused) as refused:
        read_project(tmp_path)
    assert len(refused.value.problems) == 2


def test_words_that_yaml_takes_for_truth_values_stay_words(tmp_path):
    (tmp_path / "x.yaml").write_text("kind: stream\nname: no\nend_events: [on, 2026-01-01, 0x1F]\nlateness: 1.5")
    (document,) = read_project(tmp_path)
    assert (document.name, document.body) == ("no", {"end_events": ["on", "2026-01-01", "0x1F"], "lateness": 1.5})


def test_the_commands_plan_apply_and_export(call, server_url, stores, project, tmp_path):
    with serving(create_app(settings_for(server_url))) as url:
        (project / "desk.yaml").unlink()
        status, out, err = call("apply", str(project), "--plan", "--url", url)
        assert (status, out.splitlines()[0], "9 changes to make" in err) == (1, "+ stream orders: new", True)
        status, out, err = call("apply", str(project), "--url", url)
        assert (status, len(out.splitlines()), "9 changes made" in err) == (0, 9, True)
        status, out, err = call("apply", str(project), "--plan", "--url", url)
        assert (status, out) == (0, "")
        status, out, _ = call("export", str(tmp_path / "out"), "--url", url)
        assert (status, len(out.splitlines())) == (0, 9)
        status, _, err = call("export", str(tmp_path / "out"), "--url", url)
        assert (status, "is not empty" in err) == (2, True)
        (project / "patterns/lost.yaml").unlink()
        status, out, _ = call("apply", str(project), "--prune", "--plan", "--json", "--url", url)
        assert (status, orjson.loads(out)["action"]) == (1, "gone")


def test_the_schema_names_every_kind():
    schema = document_schema()
    assert set(schema["properties"]["kind"]["enum"]) == set(schema["$defs"]) - {
        "duration",
        "events",
        "from_environment",
        "key",
        "lateness",
        "lines",
        "promise",
    }
    assert Path(ROOT / "service/projects/document.schema.json").is_file()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("closed_by: [{typ: Last}]", "inputs.0.closed_by: when a key of the input is finished: unique, clustered"),
        ("closed_by: [{typ: Last}]", '; got [{"typ":"Last"}]'),
        ("window: 24", "inputs.0.window: a duration such as '24 h'"),
        ("window: 24", "or none; got 24"),
        ("as: a}, {stream: c}], window: 5, outer: [{stream: d", "window: a duration such as '24 h'"),
        ("window: 99999999999999999999999", "got 99999999999999999999999"),
        ("closed_by: [1180591620717411303424]", "; got [1180591620717411303424]"),
        ("streem: b", "inputs.0: there is no member 'streem' (did you mean stream?); it has stream, as, type"),
    ],
)
def test_a_member_of_another_form_is_refused_with_what_would_be_right(tmp_path, member, message):
    text = f"{{kind: join, name: j, inputs: [{{stream: a, {member}}}, {{stream: b}}], return: {{x: id(a)}}}}"
    (tmp_path / "j.yaml").write_text(text)
    with pytest.raises(ProjectRefused) as refusal:
        read_project(tmp_path)
    assert message in str(refusal.value)


CHAIN = """
{kind: stream, name: invoices, end_events: [Paid]}
---
kind: pattern
name: dunning
stream: late
text: PATTERN dunning EVENT SEQ(Late a, Late b) RETURN a.customer AS customer INTO cases
---
kind: pattern
name: late
stream: invoices
text: PATTERN late EVENT SEQ(Invoice i, WITHIN 30 s NOT Paid) RETURN i.v AS customer INTO late KEY customer TYPE Late
---
kind: pattern
name: opened
stream: cases
state: draft
text: PATTERN opened EVENT dunning RETURN dunning.customer AS customer INTO opened
"""


@pytest.fixture
def chain(tmp_path):
    return written(tmp_path / "chain", {"chain.yaml": CHAIN})


def test_derived_streams_that_no_document_declares_are_made_before_their_patterns_and_stay(service, chain, tmp_path):
    made = [
        ("new", "stream invoices"),
        ("new", "stream cases"),
        ("new", "stream late"),
        ("new", "stream opened"),
        ("new", "pattern dunning"),
        ("new", "pattern late"),
        ("new", "pattern opened"),
    ]
    assert applied(service, chain) == made
    assert service.get("/streams/late")["derived"]
    for is_pruned in (False, True):
        plan = plan_of(service, chain, is_pruned=is_pruned)
        assert (plan.changes, plan.same) == ([], 4)
    export_project(service, tmp_path / "out")
    assert plan_of(service, tmp_path / "out", is_pruned=True).changes == []


def test_a_derived_stream_that_a_registration_has_declared_is_as_the_project_needs_it(service, chain):
    service.post("/streams", {"name": "invoices", "end_events": ["Paid"]})
    text = next(one for one in CHAIN.splitlines() if "PATTERN late" in one).removeprefix("text: ")
    service.post("/patterns", {"stream": "invoices", "text": text})
    service.patch("/streams/late", {"idle_timeout": 60})
    assert [title for _, title in applied(service, chain, is_pruned=True)] == [
        "stream cases",
        "stream opened",
        "pattern dunning",
        "pattern opened",
    ]
    assert plan_of(service, chain, is_pruned=True).changes == []
    (chain / "late.yaml").write_text("{kind: stream, name: late, derived: true, end_events: [Settled]}")
    assert applied(service, chain) == [("changed", "stream late")]
    assert service.get("/streams/late")["idle_timeout_s"] is None
    assert plan_of(service, chain, is_pruned=True).changes == []


def test_a_derived_stream_is_pruned_behind_the_patterns_that_feed_it_and_listen(service, chain):
    applied(service, chain)
    (chain / "chain.yaml").write_text("{kind: stream, name: invoices, end_events: [Paid]}")
    assert applied(service, chain, is_pruned=True) == [
        ("gone", "pattern dunning"),
        ("gone", "pattern late"),
        ("gone", "pattern opened"),
        ("gone", "stream cases"),
        ("gone", "stream late"),
        ("gone", "stream opened"),
    ]
    assert plan_of(service, chain, is_pruned=True).changes == []
    applied(service, written(chain, {"chain.yaml": CHAIN}))
    (chain / "chain.yaml").write_text(CHAIN.rpartition("---")[0].replace("cases", "files"))
    assert applied(service, chain, is_pruned=True) == [
        ("new", "stream files"),
        ("changed", "pattern dunning"),
        ("gone", "pattern opened"),
        ("gone", "stream cases"),
        ("gone", "stream opened"),
    ]
    assert plan_of(service, chain, is_pruned=True).changes == []


def test_patterns_cannot_feed_a_stream_of_posted_events(service, chain):
    service.post("/streams", {"name": "late"})
    with pytest.raises(ProjectRefused, match=r"chain.yaml:\d+: stream late: derived of a stream cannot be changed"):
        plan_of(service, chain)


def test_a_pattern_keeps_its_stream(service, chain):
    applied(service, chain)
    (chain / "chain.yaml").write_text(CHAIN.replace("stream: cases", "stream: invoices"))
    with pytest.raises(ProjectRefused, match="pattern opened: the stream of a pattern cannot be changed"):
        plan_of(service, chain)


def test_a_plan_says_what_changed_patterns_add_and_lose(call, server_url, stores, chain, monkeypatch):
    (chain / "more.yaml").write_text(
        "{kind: pattern, name: free, stream: invoices, text: 'PATTERN free EVENT SEQ(Invoice i, Paid p)'}"
    )
    words = (("i1", "Invoice", 0), ("i2", "Invoice", 9), ("i2", "Paid", 49), ("i3", "Invoice", 70))
    lines = [
        {"id": f"e{n}", "type": t, "time": f"2026-01-01T00:{s // 60:02}:{s % 60:02}Z", "key": key, "data": {"v": "ann"}}
        for n, (key, t, s) in enumerate(words)
    ]
    (chain / "events.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    plan = ("apply", str(chain), "--plan", "--against", str(chain / "events.jsonl"))
    with serving(create_app(settings_for(server_url))) as url:
        _, out, _ = call(*plan, "--url", url)
        assert "pattern free: alerts: 1 added, 0 lost, 0 the same\n    + free [i2] i=e1 p=e2\n" in out
        assert "stream late: events: 3 added, 0 lost, 0 the same\n" in out
        assert "more\n" not in out
        with monkeypatch.context() as patch:
            patch.setattr("service.cli.apply._FIRST", 1)
            assert "\n    + and 2 more\n" in call(*plan, "--url", url)[1]
        assert "stream cases: events: " in out
        assert call("apply", str(chain), "--url", url)[0] == 0
        assert "added" not in call(*plan, "--url", url)[1]
        more = chain / "more.yaml"
        more.write_text(more.read_text().replace("Paid p)", "Paid q) WITHIN 60 s"))
        (chain / "chain.yaml").write_text(CHAIN.replace("30 s", "60 s"))
        status, out, _ = call(*plan, "--url", url)
        assert (status, "pattern free: alerts: 0 added, 0 lost, 1 the same\n" in out) == (1, True)
        assert "stream late: events: 2 added, 3 lost, 0 the same\n" in out
        told = [orjson.loads(line) for line in call(*plan, "--url", url, "--json")[1].splitlines()]
        assert [(one["added"], one["lost"], one["same"]) for one in told if one.get("against") == "pattern free"] == [
            (0, 0, 1)
        ]
    assert call("apply", str(chain), "--against", "x")[0] == 2


def test_quiet_alerts_are_the_same_when_they_come_back(service, tmp_path):
    rules = """
{kind: stream, name: payments, key: data.card}
---
{kind: pattern, name: accepted, stream: payments, resolves: {pattern: declined, by: [who]},
 text: PATTERN accepted EVENT A a RETURN a.customer AS who}
---
{kind: pattern, name: declined, stream: payments, suppress: {by: [who], for: 1 h}, incident: {close_after: 2 h},
 text: PATTERN declined EVENT D d RETURN d.customer AS who}
---
{kind: pattern, name: all, stream: payments, suppress: {for: 1 h}, text: PATTERN all EVENT D d}
"""
    folder = written(tmp_path / "project", {"rules.yaml": rules})
    titles = {title for _, title in applied(service, folder)}
    assert titles == {"stream payments", "pattern accepted", "pattern all", "pattern declined"}
    assert applied(service, folder) == []
    export_project(service, tmp_path / "exported")
    text = "".join(path.read_text() for path in (tmp_path / "exported").rglob("*.yaml"))
    assert "close_after: 2 h" in text
    assert applied(service, tmp_path / "exported") == []


def test_tables_are_made_exported_and_changed(service, tmp_path):
    document = "{kind: table, name: limits, key: sensor, file: limits.csv, columns: {most: integer}}"
    folder = written(tmp_path / "own", {"limits.yaml": document, "limits.csv": "sensor,most\ns1,5\n"})
    assert applied(service, folder) == [("new", "table limits")]
    assert applied(service, folder) == []
    assert {path.name for path in export_project(service, tmp_path / "copy")} == {"limits.yaml", "limits.parquet"}
    assert applied(service, tmp_path / "copy") == []
    written(folder, {"limits.csv": "sensor,most\ns1,6\n"})
    assert applied(service, folder) == [("changed", "table limits")]


def test_calendars_are_made_exported_and_refused_with_their_place(service, tmp_path):
    document = {
        "desk.yaml": """
kind: stream
name: tickets
key: data.ticket
---
kind: calendar
name: de
zone: Europe/Berlin
hours: {mon-fri: 09:00-17:00}
holidays: {country: DE}
ical_file: own.ics
exceptions:
  2026-12-24: closed
---
kind: pattern
name: late
stream: tickets
text: PATTERN late EVENT SEQ(Opened o, NOT Reply) WITHIN 2 business days OF de
""",
        "own.ics": "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260601\nEND:VEVENT\n",
    }
    folder = written(tmp_path / "desk", document)
    assert applied(service, folder) == [("new", "calendar de"), ("new", "stream tickets"), ("new", "pattern late")]
    assert applied(service, folder) == []
    export_project(service, tmp_path / "out")
    assert (tmp_path / "out" / "calendars" / "de.ics").read_text() == document["own.ics"]
    assert plan_of(service, tmp_path / "out", is_pruned=True).changes == []
    written(folder, {"desk.yaml": document["desk.yaml"].replace("country: DE", "country: XX")})
    with pytest.raises(ProjectRefused, match=r"desk.yaml:10: holidays: .*'XX'} is unknown"):
        plan_of(service, folder)

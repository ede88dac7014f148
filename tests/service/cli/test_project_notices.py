"""``run``, ``test`` and ``backtest --project`` give the notices about names and comparisons that ``match`` gives."""

import orjson
import pytest

import service.cli.backtest

STREAM = "{kind: stream, name: s, key: data.k}\n"
PATTERN = '---\n{kind: pattern, name: NAME, stream: s, text: "PATTERN NAME EVENT TEXT"}\n'
TEXTS = {
    "p1": "Login a [regoin = 'n']",
    "p2": "SEQ(Login a, NOT Loogin)",
    "p3": "Login a [txt = 7]",
    "p4": "Login a RETURN a.regoin AS r",
    "p5": "Login a [key = 5]",
}
FOUND = {
    "p1": "27: no event of the type Login has regoin (did you mean region?), so it is null everywhere",
    "p2": "35: Loogin (did you mean Login?) is none of the event types in these events, so this forbids nothing",
    "p3": "27: txt is a text in 2 of 2 events of the type Login, and 7 is a number",
    "p4": "33: no event of the type Login has regoin (did you mean region?), so it is null everywhere",
    "p5": "27: a.key is a text, and 5 a number: comparing them is always null; write '5'",
}


def documents(stream=STREAM, **texts):
    return stream + "".join(PATTERN.replace("NAME", name).replace("TEXT", text) for name, text in texts.items())


@pytest.fixture
def project(tmp_path):
    """Writes the documents of a project and two events; returns the words that name both."""

    def written(text):
        (tmp_path / "rules").mkdir(exist_ok=True)
        (tmp_path / "rules" / "rules.yaml").write_text(text)
        lines = [
            {"id": f"e{n}", "type": "Login", "time": f"2026-01-01T00:00:0{n}Z"}
            | {"data": {"k": "a", "txt": str(n), "region": "n"}}
            for n in range(2)
        ]
        (tmp_path / "s.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
        return str(tmp_path / "rules"), "--events", f"s={tmp_path / 's.jsonl'}"

    return written


def notices_of(said):
    return [line for line in said.splitlines() if line.startswith("notice: ")]


def names_in(said):
    return {notice for notice in notices_of(said) if "none of the event types" in notice or ": no event" in notice}


def test_run_and_a_backtest_of_a_project_name_what_match_names(call, project):
    words = project(documents(**TEXTS))
    for command in (("run", *words), ("backtest", "--project", *words)):
        status, _, err = call(*command)
        assert status == 0, err
        notices = notices_of(err)
        assert len(notices) == len(FOUND)
        for name, text in FOUND.items():
            assert [one for one in notices if one.startswith(f"notice: {name}: line 1, column {text}")], (name, err)
    _, ran, _ = call("run", *words, "--output", "json")
    _, tried, _ = call("backtest", "--project", *words, "--json")
    assert orjson.loads(tried)["stats"]["notices"] == orjson.loads(ran)["stats"]["notices"]


def test_a_backtest_in_spark_names_what_the_texts_show(call, project, monkeypatch):
    words = project(documents(**TEXTS))
    monkeypatch.setattr(service.cli.backtest, "is_small", lambda _: False)  # the run itself stays in this process
    status, _, err = call("backtest", "--project", *words)
    assert status == 0, err
    assert notices_of(err) == [f"notice: p5: line 1, column {FOUND['p5']}"]


def test_types_that_the_project_knows_and_events_of_derived_streams_are_no_notice(call, project):
    stream = "{kind: stream, name: s, key: data.k, end_events: [Logout]}\n---\n{kind: stream, name: d, derived: true}\n"
    stream += "---\n{kind: constraints, name: s, constraints: [{exclusive: [Login, Refused]}]}\n"
    texts = {
        "q": "SEQ(Login a, NOT Refused|Logout) INTO d TYPE q",
        "r": "Login a [region = 'x'] INTO d TYPE r",
    }
    text = documents(stream, **texts) + PATTERN.replace("NAME", "o").replace("TEXT", "SEQ(q x, NOT r)").replace(
        "stream: s", "stream: d"
    )
    for command in (("run",), ("backtest", "--project")):
        status, _, err = call(*command, *project(text))
        assert (status, notices_of(err)) == (0, [])


@pytest.mark.parametrize("is_fed_by_an_aggregate", [False, True])
def test_a_type_that_no_pattern_makes_for_a_derived_stream_is_noticed(call, project, is_fed_by_an_aggregate):
    text = documents(STREAM, q="Login a INTO d TYPE paid") + PATTERN.replace("NAME", "o").replace(
        "TEXT", "SEQ(paidd x, NOT paid)"
    ).replace("stream: s", "stream: d")
    if is_fed_by_an_aggregate:
        text += "---\n{kind: aggregate, name: d, of: s, by: [key], values: {n: count()}, window: 1 h}\n"
    for command in (("run",), ("backtest", "--project")):
        status, _, err = call(*command, *project(text))
        notice = (
            "notice: o: line 1, column 21: paidd (did you mean paid?) is none of the event types that patterns make "
            "for 'd', so this can never match"
        )
        assert (status, notices_of(err)) == (0, [] if is_fed_by_an_aggregate else [notice]), err


def test_a_misspelt_end_event_of_a_stream_is_noticed(call, project):
    stream = "{kind: stream, name: s, key: data.k, end_events: [Logn, Logout]}\n"
    words = project(documents(stream, p="Login a"))
    start = "notice: s: the end event Logn (did you mean Login?) is none of the event types in these events"
    for command in (("run",), ("backtest", "--project")):
        status, _, err = call(*command, *words)
        (notice,) = notices_of(err)
        assert (status, notice) == (0, f"{start}, so no transaction ends with it")


@pytest.mark.parametrize(
    ("text", "events", "notice"),
    [
        ("SEQ(Login a, NOT Logot)", "Login1 Logout2", "Logot (did you mean Logout?) is none of the event types"),
        ("SEQ(Login a, NOT Refused)", "Login1 Logout2", None),  # no type is similar
        ("SEQ(opened a, NOT reopened)", "opened1 closed2", None),  # the pattern names the similar type, too
        (
            "Login a [regoin = 'n']",
            "[{id: e, type: Login, time: 1, key: k, data: {region: n}}]",
            "no event of the type Login has regoin (did you mean region?)",
        ),
        ("Login a RETURN a.regoin AS r", "Login1 Logout2", None),
        ("Login a [amount_eur > 3 OR amount > 3]", "[{id: e, type: Login, time: 1, key: k, data: {amount: 2}}]", None),
    ],
)
def test_a_test_names_only_what_looks_like_another_name(call, project, text, events, notice):
    case = f"---\nkind: test\nname: t\nevents: {events}\nexpect: {{deviations: []}}\n"
    folder, *_ = project(documents("{kind: stream, name: s}\n", p=text) + case)
    status, _, err = call("test", folder)
    assert status == 0, err
    assert len(notices_of(err)) == (notice is not None)
    assert notice is None or notice in err


def test_the_events_of_all_tests_are_one_example(call, project):
    cases = (
        f"---\n{{kind: test, name: {name}, events: {events}, expect: {{deviations: []}}}}\n"
        for name, events in (("t", "Login1 Logout2"), ("u", "Login1 Logut2"))
    )
    folder, *_ = project(documents("{kind: stream, name: s}\n", p="SEQ(Login a, NOT Logut)") + "".join(cases))
    status, _, err = call("test", folder)
    assert (status, notices_of(err)) == (0, [])


JOIN = """---
kind: join
name: j
inputs:
- {stream: s, as: a, type: Logn, closed_by: unique}
- {stream: d, as: b, type: Seen, closed_by: unique}
where: b.vv = 1
return: {x: a.regoin}
"""
AGGREGATE = """---
kind: aggregate
name: g
of: s
where: "type IN ('Loogin', 'Login') AND txxt = '1'"
by: [regoin]
values: {n: count(), m: max(region), u: sum(txxt)}
window: 1 h
"""
READ = {
    "j: the input 'a': Logn (did you mean Login?) is none of the event types in these events",
    "j: where: no event of the type Seen has vv (did you mean v?), so it is null everywhere",
    "g: where: Loogin (did you mean Login?) is none of the event types in these events",
    "g: where: no event here has txxt (did you mean txt?), so it is null everywhere",
    "g: by: no event here has regoin (did you mean region?), so it is null everywhere",
    "g: values, u: no event here has txxt (did you mean txt?), so it is null everywhere",
}


def test_types_and_attributes_of_joins_and_aggregates_are_noticed(call, project):
    derived = STREAM + "---\n{kind: stream, name: d, derived: true}\n"
    text = documents(derived, p="Login a RETURN 2 AS v INTO d TYPE Seen") + JOIN + AGGREGATE
    words = project(text)
    status, _, err = call("run", *words)
    assert (status, names_in(err)) == (0, {f"notice: {notice}" for notice in READ})
    status, _, err = call("backtest", "--project", *words)
    assert (status, names_in(err)) == (0, {f"notice: {notice}" for notice in READ if "Seen" not in notice})


def test_a_test_names_what_joins_and_aggregates_read_only_if_it_looks_like_another_name(call, project):
    aggregate = AGGREGATE.replace("[regoin]", "[shop]").replace("'Loogin'", "'Refused'")
    event = "{id: e, type: Login, time: 1, data: {k: k, region: n, txt: '1'}}"
    case = f"---\nkind: test\nname: t\nevents: [{event}]\nexpect: {{deviations: []}}\n"
    folder, *_ = project(STREAM + aggregate + case)
    status, _, err = call("test", folder)
    assert (status, names_in(err)) == (0, {f"notice: {notice}" for notice in READ if "txxt" in notice})


@pytest.mark.parametrize(
    ("by", "resolved", "notice"),
    [
        ("[]", "openng", "no pattern 'openng' (did you mean opening?) with 'incident' is active in the project"),
        ("[]", "closing", "no pattern 'closing' with 'incident' is active in the project, so no incident is closed"),
        ("[]", "opening", "the incidents of 'opening' are by key, so none here closes none"),
        ("[key]", "opening", None),
    ],
)
def test_a_pattern_that_resolves_nothing_is_noticed(call, project, by, resolved, notice):
    opening, closing = (PATTERN.replace("NAME", name).replace("TEXT", "Login a") for name in ("opening", "closing"))
    opening = opening.replace("text:", "incident: {by: [key], close_after: 1 h}, text:")
    closing = closing.replace("text:", f"resolves: {{pattern: {resolved}, by: {by}}}, text:")
    event = "{id: e, type: Login, time: 1, data: {k: k}}"
    case = f"---\nkind: test\nname: t\nevents: [{event}]\nexpect: {{deviations: []}}\n"
    folder, *events = project(STREAM + opening + closing + case)
    for command in (("run", folder, *events), ("test", folder)):
        status, _, err = call(*command)
        assert status == 0, err
        found = [line for line in err.splitlines() if "resolves" in line]
        assert len(found) == (notice is not None)
        assert notice is None or found[0].startswith(f"notice: closing: resolves: {notice}")


def test_an_attribute_beside_data_is_noticed(call, project, tmp_path):
    line = {"id": "1", "type": "Login", "time": "2026-01-01T00:00:00Z", "key": "k", "amount": 5, "data": {"v": 1}}
    pattern = PATTERN.replace("NAME", "p").replace("TEXT", "Login a [amount > 3 AND rate > 3]")
    aggregate = AGGREGATE.replace("regoin", "amount").replace("type IN ('Loogin', 'Login') AND txxt = '1'", "v = 1")
    folder, *_ = project(
        "{kind: stream, name: s}\n" + pattern + aggregate.replace("max(region), u: sum(txxt)", "sum(v)")
    )
    (tmp_path / "s.jsonl").write_bytes(orjson.dumps(line))
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT Login a [amount > 3 AND rate > 3]")
    beside = "has amount, so it is null everywhere; amount is beside data, and only the members of data are attributes"
    _, _, ran = call("run", folder, "--events", str(tmp_path / "s.jsonl"))
    _, _, matched = call("match", "--pattern", str(tmp_path / "p.pattern"), "--events", str(tmp_path / "s.jsonl"))
    assert [line for line in notices_of(ran) if line.endswith(beside)] == [
        f"notice: p: line 1, column 26: no event of the type Login {beside}",
        f"notice: g: by: no event here {beside}",
    ]
    assert [line for line in notices_of(matched) if "beside" in line] == [
        f"notice: p: line 1, column 26: no event of the type Login {beside}"
    ]

"""Rules of every kind give equal rows inline, in rounds with and without Spark, and by the live log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson
import pytest

from pipeline import BacktestOptions, BacktestResult, History, InProcess, InSpark, run_backtest
from service import Registration, Stores
from service.intake.posting import Intake
from service.processes import timekeeper
from service.processes.timekeeper import Timekeeper
from service.projects import LocalProject, read_project
from service.registering.operators import OperatorLibrary
from service.registering.tables import TableLibrary, TableUpload
from shards import InlineShards, RoundPlan, RowBlock
from shards.kinds import KINDS
from streams import Event, EventBatch, StreamDeclaration, render_plain
from streams.readers import reading_of
from streams.tables import TableDeclaration
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, settings_for
from tests.service.test_continuous import Continuous
from tests.service.test_derived_chain import Job, settled

STREAMS = """
{kind: stream, name: orders, keys: {customer: data.customer}, end_events: [End]}
---
{kind: stream, name: payments, keys: {other: data.other}}
---
"""
PATTERNS = """
{kind: constraints, name: orders, constraints: [{exclusive: [B, C]}]}
---
{kind: pattern, name: ab, stream: orders, text: 'PATTERN ab EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: early, stream: orders, text: 'PATTERN early EVENT SEQ(A a, B b, End e) WITHIN 99 s EMIT TIMEOUTS'}
---
{kind: pattern, name: pair, stream: orders, text: 'PATTERN pair EVENT SEQ(A a, A b) WHERE [customer] WITHIN 90 s'}
---
{kind: pattern, name: same, stream: orders, text: 'PATTERN same EVENT SEQ(A a, C c) RETURN c.v AS v INTO chosen TYPE E'}
---
{kind: pattern, name: moved, stream: payments, text: 'PATTERN moved EVENT _ p RETURN p.v AS v INTO chosen KEY v TYPE L'}
---
kind: pattern
name: computed
stream: orders
text: |
  PATTERN computed
  EVENT SEQ(A a [upper(v) IN ('K1', 'K2')],
            B b [lower(v) = lower(a.v) AND abs(time(b) - time(a)) / 1 s BETWEEN 1 AND 30])
  RETURN concat(a.v, '-', b.v) AS pair, hour(time(a), 'Europe/Berlin') AS hour
---
{kind: pattern, name: both, stream: chosen, text: 'PATTERN both EVENT SEQ(E e, E l)'}
"""
JOINS = """
kind: join
name: pairs
inputs: [{stream: orders, as: x, window: 30 s}, {stream: payments, as: y, key: other, window: 50 s}]
return: {x: id(x), y: id(y)}
---
kind: join
name: threes
inputs: [{stream: pairs, as: p, window: 20 s}, {stream: orders, as: z, window: 20 s}]
return: {x: p.x, y: p.y, z: id(z)}
"""
REKEYED = """
kind: join
name: pairs
inputs:
  - {stream: orders, as: x, window: 30 s, closed_by: end}
  - {stream: payments, as: y, key: data.v, window: 50 s}
outer: [y]
return: {x: id(x), y: id(y)}
---
{kind: pattern, name: ab, stream: orders, text: 'PATTERN ab EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: picked, stream: orders, text: 'PATTERN picked EVENT SEQ(A a, A b) RETURN b.v AS v INTO picks'}
---
kind: join
name: of_picks
inputs: [{stream: picks, as: x, window: 30 s, closed_by: end}, {stream: pairs, as: y, key: data.y, window: 50 s}]
outer: [x, y]
return: {x: id(x), y: id(y)}
---
kind: join
name: selves
inputs: [{stream: orders, as: x, window: 9 s}, {stream: orders, as: y, key: data.v, window: 9 s}]
where: starts_with(x.customer, 'k') AND concat(x.v, 'x') != y.customer
return: {x: id(x), y: id(y), both: "concat(x.v, '-', upper(y.customer))", gap: (time(y) - time(x)) / 1 s}
"""
WAITING = """
kind: join
name: pairs
inputs: [{stream: orders, as: x}, {stream: payments, as: y, key: data.other}]
wait: auto
outer: [x, y]
return: {x: id(x), y: id(y)}
"""
AGGREGATES = """
kind: aggregate
name: busy
of: orders
where: "type != 'End'"
by: [key]
values: {n: count(), different: distinct(v), newest: last(type)}
window: 40 s
having: n >= 2 AND different >= 2
clear: true
events: 2
---
{kind: aggregate, name: customers, of: orders, by: [customer], values: {n: count()}, window: {tumbling: 60 s}}
---
kind: aggregate
name: growing
of: payments
values: {n: count(), others: distinct(other)}
window: {hopping: 60 s, every: 20 s}
having: n >= coalesce(before(n, 60 s), 0)
---
kind: aggregate
name: share
of: payments
by: [v]
values: {n: count()}
window: 30 s
having: n * 2 > all(n)
clear: true
---
kind: aggregate
name: computed
of: payments
where: ends_with(v, '1') OR second(time(event)) < 30
values: {n: sum(length(v)), latest: max(minute(time(event)))}
window: {tumbling: 60 s}
---
{kind: aggregate, name: transactions, of: orders, by: [key], values: {first: first(v)}, window: transaction}
---
kind: aggregate
name: of_busy
of: busy
by: [newest]
values: {m: count(), most: max(n)}
window: 5 min
having: m >= 2
clear: true
---
kind: join
name: pairs
inputs: [{stream: of_busy, as: x, key: newest, window: 90 s}, {stream: customers, as: y, key: n, window: 60 s}]
outer: [x]
return: {x: id(x), y: id(y)}
---
{kind: pattern, name: ab, stream: busy, text: 'PATTERN ab EVENT SEQ(busy a, `busy.cleared` b) WITHIN 60 s'}
---
{kind: constraints, name: orders, constraints: [{exclusive: [B, C]}]}
---
{kind: pattern, name: kept, stream: orders,
 text: 'PATTERN kept EVENT SEQ(A a, B b, NOT C) RETURN b.v AS v INTO kept'}
---
kind: join
name: outer
inputs: [{stream: kept, as: x, window: 60 s}, {stream: busy, as: y, window: 60 s}]
outer: [x, y]
return: {v: x.v, y: id(y)}
---
kind: aggregate
name: of_outer
of: outer
by: [v]
values: {n: count(), joined: count(y), newest: last(key)}
window: 5 min
having: n >= 2
clear: true
---
{kind: aggregate, name: outer_by_key, of: outer, by: [key], values: {n: count()}, window: {tumbling: 1 d}}
---
{kind: aggregate, name: outer_by_value, of: outer, by: [v], values: {n: count()}, window: {tumbling: 1 d}}
---
{kind: aggregate, name: all_outer, of: outer, values: {n: count(), joined: count(y)}, window: {last: 5}, events: 2}
"""
SUPPRESSED = """
{kind: pattern, name: by_key, stream: orders, suppress: {by: [key], for: 20 s},
 text: 'PATTERN by_key EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: by_value, stream: orders, suppress: {by: [v], for: 1 min},
 text: 'PATTERN by_value EVENT SEQ(A a, NOT C) WITHIN 30 s RETURN a.v AS v'}
---
{kind: pattern, name: by_customer, stream: orders, suppress: {by: [customer], for: 9 s},
 text: 'PATTERN by_customer EVENT SEQ(A a, B b) WHERE [customer] WITHIN 10 s'}
---
{kind: pattern, name: all, stream: payments, suppress: {for: 10 s}, text: 'PATTERN all EVENT P p'}
---
{kind: pattern, name: grouped, stream: orders, suppress: {by: [customer], for: 9 s}, incident: {close_after: 15 s},
 text: 'PATTERN grouped EVENT SEQ(A a, B b) RETURN a.customer AS customer'}
---
{kind: pattern, name: rested, stream: payments, resolves: {pattern: grouped, by: [who]},
 text: 'PATTERN rested EVENT Q q RETURN q.customer AS who'}
"""
ROWS = """
{kind: table, name: limits, key: v, file: limits.csv, columns: {most: integer}}
---
kind: pattern
name: each
stream: orders
text: |
  PATTERN each FOR EACH ROW OF limits t
  EVENT SEQ(A a [v = t.v], B b [customer = t.customer])
  WITHIN 60 s EMIT TIMEOUTS
  RETURN t.most AS most
---
kind: pattern
name: missing
stream: orders
suppress: {by: [v, key], for: 40 s}
text: |
  PATTERN missing FOR EACH ROW OF limits t
  EVENT SEQ(A a [v = t.v], NOT C c [v = t.v]) WITHIN 30 s
  RETURN t.v AS v
---
kind: pattern
name: by_customer
stream: orders
text: |
  PATTERN by_customer FOR EACH ROW OF limits t
  EVENT SEQ(A+ a [v = t.v], NEXT B b) WHERE [customer] AND count(a) >= t.most WITHIN 40 s
---
kind: pattern
name: moved
stream: payments
text: |
  PATTERN moved FOR EACH ROW OF limits t EVENT P p [v = t.v]
  RETURN t.customer AS who, t.most AS most INTO moves KEY who
---
{kind: pattern, name: both, stream: moves, text: 'PATTERN both EVENT SEQ(moved a, moved b [most > a.most]) WITHIN 9 s'}
---
{kind: table, name: watched, key: id, file: watched.csv, columns: {most: integer}}
---
kind: aggregate
name: questions
of: orders
where: "type != 'End'"
by: [customer, v]
for_each_row_of: watched
values: {n: count(), different: distinct(type)}
window: 30 s
having: n >= row.most
clear: true
"""
TAPPED = """
{kind: constraints, name: orders, constraints: [{exclusive: [B, C]}]}
---
{kind: pattern, name: ab, stream: orders, text: 'PATTERN ab EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: early, stream: orders, text: 'PATTERN early EVENT SEQ(A a, B b, End e) WITHIN 99 s EMIT TIMEOUTS'}
---
{kind: pattern, name: pair, stream: orders,
 text: 'PATTERN pair EVENT SEQ(A a, B b) WHERE [customer] WITHIN 30 s EMIT TIMEOUTS'}
---
{kind: pattern, name: moved, stream: orders, text: 'PATTERN moved EVENT SEQ(A a, C c) RETURN c.v AS v INTO moves KEY v'}
---
{kind: pattern, name: stopped, stream: orders, text: 'PATTERN stopped EVENT SEQ(A a, B b) INTO pairs TYPE Pair'}
---
{kind: pattern, name: grouped, stream: orders, suppress: {by: [customer], for: 9 s}, incident: {close_after: 15 s},
 text: 'PATTERN grouped EVENT SEQ(A a, C c) RETURN c.customer AS customer'}
---
{kind: pattern, name: by_key, stream: orders, suppress: {by: [key], for: 20 s},
 text: 'PATTERN by_key EVENT SEQ(A a, C c)'}
---
{kind: pattern, name: of_pairs, stream: pairs, text: 'PATTERN of_pairs EVENT SEQ(Pair a, Pair b)'}
---
{kind: tap, name: stopped, of: orders, results: endings, type: Stopped}
---
{kind: tap, name: late, of: orders, results: timeouts}
---
{kind: tap, name: late_pairs, of: orders, results: timeouts, route: customer}
---
{kind: tap, name: broken, of: orders, results: deviations, type: Broken}
---
kind: aggregate
name: stopped_by_reason
of: stopped
by: [pattern, reason, event_data.v]
values: {n: count(), newest: last(event)}
window: {last: 3}
---
{kind: aggregate, name: of_key, of: stopped, by: [key], values: {n: count(), newest: last(pattern)}, window: 90 s}
---
{kind: aggregate, name: asked, of: stopped, by: [key], values: {n: count()}, window: 60 s, having: n >= 2,
 ask: {by: [event_data.customer]}}
---
{kind: table, name: stops, key: id, file: stops.csv, columns: {most: integer}}
---
kind: aggregate
name: watching
of: stopped
by: [reason]
for_each_row_of: stops
values: {n: count()}
window: {row: within, most: 60 s}
having: n >= row.most
---
{kind: aggregate, name: late_by_pattern, of: late_pairs, by: [pattern], values: {n: count()}, window: {tumbling: 60 s}}
---
{kind: pattern, name: breaking, stream: broken,
 text: 'PATTERN breaking EVENT SEQ(Broken a, Broken b [event_type = a.event_type])'}
---
{kind: pattern, name: by_customer, stream: broken,
 text: 'PATTERN by_customer EVENT Broken b RETURN b.event_data.customer AS customer INTO of_customer KEY customer'}
---
{kind: aggregate, name: many, of: of_customer, by: [customer], values: {n: count()}, window: 60 s, having: n > 2}
---
{kind: join, name: stopped_late, inputs: [{stream: stopped, as: x, window: 99 s}, {stream: late, as: y, window: 99 s}],
 return: {x: x.event, y: y.due}}
---
kind: join
name: stopped_payments
inputs: [{stream: stopped, as: x, window: 60 s}, {stream: payments, as: y, key: data.v, window: 90 s}]
return: {x: id(x), y: id(y)}
"""
ENDED = """
{kind: constraints, name: orders, constraints: [{exclusive: [B, C]}]}
---
{kind: pattern, name: kept, stream: orders,
 text: 'PATTERN kept EVENT SEQ(A a, B b, NOT C) WITHIN 90 s RETURN b.v AS v, b.customer AS who INTO kept'}
---
{kind: pattern, name: again, stream: kept, text: 'PATTERN again EVENT SEQ(kept a, NOT kept b) WITHIN 9 s INTO again'}
---
{kind: pattern, name: moved, stream: orders,
 text: 'PATTERN moved EVENT SEQ(A a, NOT C) WITHIN 31 s RETURN a.v AS v INTO moves KEY v TYPE M'}
---
{kind: pattern, name: paid, stream: payments,
 text: 'PATTERN paid EVENT SEQ(P p, NOT Q) WITHIN 47 s RETURN p.v AS v INTO moves TYPE M'}
---
{kind: pattern, name: calm, stream: moves, suppress: {by: [key], for: 9 s}, incident: {close_after: 15 s},
 text: 'PATTERN calm EVENT SEQ(M m, NOT M n) WITHIN 7 s RETURN m.v AS v'}
---
{kind: aggregate, name: busy, of: kept, by: [v], values: {n: count(), newest: last(key)}, window: 40 s, having: n >= 2,
 clear: true}
---
{kind: aggregate, name: of_key, of: kept, by: [key], values: {n: count()}, window: 25 s, having: n >= 1, clear: true}
---
{kind: aggregate, name: fixed, of: kept, by: [key], values: {n: count()}, window: {tumbling: 1 d}}
---
{kind: aggregate, name: sessions, of: moves, by: [key], values: {n: count()}, window: {session: 20 s}}
---
kind: join
name: outer
inputs: [{stream: kept, as: x, window: 60 s}, {stream: busy, as: y, key: newest, window: 60 s}]
outer: [x, y]
return: {v: x.v, y: id(y)}
---
kind: join
name: keyed
inputs: [{stream: of_key, as: x, window: 30 s}, {stream: again, as: y, window: 30 s}]
outer: [x, y]
return: {x: id(x), y: id(y)}
---
{kind: aggregate, name: of_outer, of: outer, by: [v], values: {n: count()}, window: {hopping: 60 s, every: 20 s}}
---
{kind: aggregate, name: of_keyed, of: keyed, by: [key], values: {n: count()}, window: 15 s, having: n >= 2, clear: true}
"""
LIMITS = "v,customer,most\nk1,k1,1\nk2,k4,2\nk3,k1,3\n"
STOPS = "id,reason,most,within\ns1,,2,\ns2,,3,90 s\n"
WATCHED = "id,customer,v,most\nq1,k1,,3\nq2,,k2,2\nq3,k4,k3,1\nq4,,,9\n"
RULES = {
    "patterns": PATTERNS,
    "rows": ROWS,
    "suppressed": SUPPRESSED,
    "joins": JOINS,
    "re-keyed": REKEYED,
    "waiting": WAITING,
    "aggregates": AGGREGATES,
    "tapped": TAPPED,
    "ended": ENDED,
}
QUIET = ("suppress", "incident", "resolves")
_LISTS = ("suppressed-alert", "opened-incident", "updated-incident", "closed-incident", "derived")
_STORED = ("alert", *_LISTS)
EVERY = pytest.mark.parametrize("name", RULES)


def project_of(folder, name: str, streams: str = STREAMS) -> LocalProject:
    (folder / "rules.yaml").write_text(f"{streams}{RULES[name]}")
    (folder / "limits.csv").write_text(LIMITS)
    (folder / "watched.csv").write_text(WATCHED)
    (folder / "stops.csv").write_text(STOPS)
    return LocalProject.of(read_project(folder), folder)


@cache
def events_of(name: str, number: int = 240) -> dict[str, EventBatch]:
    """Events by time; with rising keys for joins that wait."""
    rng, made = Random(7), {}
    number = 2_000 if name == "waiting" else number
    for stream, types in (("orders", ["A", "B", "C", "A", "End"]), ("payments", ["P", "Q"])):
        keys = [str(n) if name == "waiting" else f"k{rng.randrange(9)}" for n in range(number)]
        keys = [key for _, key in sorted((n + rng.uniform(0, 40), key) for n, key in enumerate(keys))]
        made[stream] = EventBatch.from_events(
            [
                Event(
                    id=f"{stream}{n}",
                    type=rng.choice(types),
                    time_us=n * 2_000_000,
                    key=f"p{n % 3}" if stream == "payments" and name != "patterns" else key,
                    data={"v": rng.choice(["k1", "k2", "k3"]), "customer": rng.choice(["k1", "k4"]), "other": key},
                )
                for n, key in enumerate(keys)
            ]
        )
    return made


def bodies(blocks: Iterable[RowBlock]) -> Iterator[tuple[str, bytes]]:
    return ((row.kind, row.body) for block in blocks for row in block if row.kind != "ending-count")


def said(rows: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Rows without the place at which they were found."""
    found = [(kind, orjson.loads(body)) for kind, body in rows]
    for kind, body in found:
        if kind == "dead-letter":
            for member in ("id", "shard", "position", "kind", "size_bytes"):
                body.pop(member, None)
    return sorted((kind, orjson.dumps(body, option=orjson.OPT_SORT_KEYS)) for kind, body in found)


def inline(
    project: LocalProject, events: Mapping[str, EventBatch], shards: int, *, is_open: bool = False
) -> list[tuple[str, bytes]]:
    run, rows, plan = InlineShards(shards), list[RowBlock](), project.plan
    for stream, record in plan.records():
        run.append_record(stream, record)
    for stream, batch in events.items():
        rows += run.feed_and_decide(stream, batch, plan.routes(stream))
    rows += run.pause() if is_open else run.finish()
    return said(bodies(rows))


@cache
def rows_of_one_shard(name: str) -> list[tuple[str, bytes]]:
    """What all ways of running have to give."""
    with TemporaryDirectory() as folder:
        return inline(project_of(Path(folder), name), events_of(name), 1)


def plan_of(project: LocalProject) -> RoundPlan:
    return RoundPlan(variants=(project.plan.variant("project"),))


def register(folder, registration: Registration, operators: OperatorLibrary, tables: TableLibrary) -> None:
    """Register the rules of a project as clients do."""
    for document in read_project(folder):
        body = {name: value for name, value in document.body.items() if name != "kind"}
        match document.kind:
            case "stream":
                registration.declare_stream(StreamDeclaration.from_json({"key": "key", **body, "name": document.name}))
            case "constraints":
                registration.constraint_sets.upload(document.name, {"constraints": body["constraints"]})
            case "pattern":
                register_pattern(
                    registration, body["stream"], body["text"], **{name: body[name] for name in QUIET if name in body}
                )
            case "table":
                declaration = TableDeclaration(key=(body["key"],), types=body["columns"])
                path = folder / body["file"]
                tables.put(TableUpload(name=document.name, path=path, format="csv", declaration=declaration))
            case "join" | "aggregate" | "tap":
                operators.put(document.kind, {**body, "name": document.name})


@EVERY
def test_shards_in_one_process_give_equal_rows(tmp_path, name):
    expected = rows_of_one_shard(name)
    assert len(expected) > 50
    assert inline(project_of(tmp_path, name), events_of(name), 8) == expected


def test_an_aggregate_of_a_join_is_without_what_the_join_took_back():
    events = [orjson.loads(body) for kind, body in rows_of_one_shard("aggregates") if kind == "derived"]
    joined = {one["id"]: one for one in events if one["type"] == "outer"}
    gone = {one["data"]["retracts"] for one in events if one["type"] == "outer.retracted"}
    assert set() < gone < joined.keys()
    left = [one for identity, one in joined.items() if identity not in gone]
    for name, by in (("outer_by_key", "key"), ("outer_by_value", "v")):
        counts = {one["data"][by]: one["data"]["n"] for one in events if one["type"] == name}
        assert counts == Counter(one["key"] if by == "key" else one["data"]["v"] for one in left)


@pytest.mark.parametrize("shards", [1, 8])
def test_a_backtest_in_this_process_gives_the_rows_of_one_shard(tmp_path, shards):
    require_rows_of_one_shard(InProcess, shards, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_a_backtest_in_spark_gives_the_rows_of_one_shard(spark, tmp_path):
    require_rows_of_one_shard(lambda: InSpark(spark.sparkContext), 3, tmp_path)


def require_rows_of_one_shard(executor, shards: int, tmp_path) -> None:
    for name in RULES:
        histories = histories_of(project_of(tmp_path, name), events_of(name), tmp_path)
        result = run_backtest(
            executor(), histories, plan_of(project_of(tmp_path, name)), BacktestOptions(shards=shards, limit=10**6)
        )
        assert rows_of_backtest(result) == rows_of_one_shard(name), name


def histories_of(project: LocalProject, events: Mapping[str, EventBatch], folder) -> dict[str, History]:
    """The events as files of a folder."""
    histories = {}
    for stream, batch in events.items():
        file = folder / f"{stream}.jsonl"
        file.write_bytes(b"".join(orjson.dumps(render_plain(one)) + b"\n" for one in batch.to_events()))
        options = reading_of(project.stream(stream))
        histories[stream] = History(files=(file,), options=options, routes=plan_of(project).routes(stream))
    return histories


def rows_of_backtest(result: BacktestResult) -> list[tuple[str, bytes]]:
    return said((kind, orjson.dumps(row)) for kind, rows in result.rows.items() for row in rows)


@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["micro-batch", "continuous"])
@pytest.mark.parametrize("name", ["patterns", "rows", "suppressed", "joins", "re-keyed", "aggregates", "tapped"])
def test_the_live_log_gives_the_rows_of_one_shard(client, server_url, monkeypatch, tmp_path, name, runtime):
    clock = HandClock()
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    settings = settings_for(server_url, data_dir=tmp_path / "data", shards=3)
    stores = Stores(client, server_url, settings)
    project, events, chance = project_of(tmp_path, name), events_of(name), Random(1)
    tables = TableLibrary(stores, settings, clock)
    register(tmp_path, Registration(stores, settings, clock), OperatorLibrary(stores, clock), tables)
    intake = Intake(stores.log, stores.registry, settings.limits, clock)
    job: Job | Continuous = Job(settings, stores) if runtime == "micro-batch" else Continuous(settings, stores)
    for stream, batch in events.items():
        intake.ingest(stream, [render_plain(one) for one in batch.to_events()])
    for _ in range(8):
        Timekeeper(stores).look()
        settled(job, stores, chance)
    if isinstance(job, Continuous):
        job.end()
    found = [alert["id"] for alert in stores.alerts.page(limit=10_000).items]
    found += [one["id"] for kind in _LISTS for one in stores.results[kind].page(10_000).items]
    expected = [one for one in inline(project, events, 1, is_open=True) if one[0] in _STORED]
    assert sorted(found) == sorted(orjson.loads(body)["id"] for _, body in expected)
    assert found


def test_every_kind_is_run(tmp_path):
    ran = {
        one.kind
        for name in RULES
        for variant in plan_of(project_of(tmp_path, name)).variants
        for _, one in variant.operators
    }
    assert ran == {kind.name for kind in KINDS}

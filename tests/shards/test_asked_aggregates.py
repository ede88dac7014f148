"""Questions to aggregates in shards give the values of a plain evaluation, however states were cut and divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import orjson
import pytest

from house.examples import Draws
from service.questions.operators import reached_us
from service.stores import StreamTimes
from shards import ANSWER, OperatorRefused, ShardState, StoredEntry, rows_of
from shards.inline import InlineShards
from shards.kinds.aggregates.kind import AggregateKind
from streams import (
    Ask,
    ControlRecord,
    Definition,
    Event,
    EventBatch,
    OperatorOn,
    StreamDeclaration,
    StreamOn,
    Tick,
    encode_control,
    key_hash,
    shard_of,
)

HOUR_US = 3_600_000_000
LOGINS = StreamDeclaration(name="logins", key="data.user")
FAILED = StreamDeclaration(name="failed", derived=True)
DOCUMENT = {
    "name": "failed",
    "of": "logins",
    "where": "type = 'Failed'",
    "by": ["user"],
    "values": {
        "n": "count()",
        "total": "sum(risk)",
        "worst": "max(risk)",
        "mean": "avg(risk)",
        "cities": "distinct(city)",
    },
    "window": "1 h",
    "having": "n > 1000",
    "ask": {"by": ["region", "user"]},
}
KIND = AggregateKind()


def defined(**members: Any) -> Definition:
    definition = KIND.read({**DOCUMENT, **members}, lambda _: LOGINS)
    return Definition(
        kind=definition.kind, name=definition.name, version=1, inputs=definition.inputs, body=definition.body
    )


def events_of(chance: Random, count: int) -> list[Event]:
    found, now_us = [], 0
    for number in range(count):
        now_us += chance.randrange(0, HOUR_US // 20)
        data = {"user": f"u{chance.randrange(5)}", "risk": chance.choice([1, 2, 3.5, None])}
        data |= {"region": chance.choice(["north", "south", None]), "city": chance.choice(["a", "b", "c"])}
        kind = chance.choice(["Failed", "Failed", "Ok"])
        found.append(Event(id=f"e{number}", type=kind, time_us=now_us, key=str(data["user"]), data=data))
    return found


def naive(
    events: Sequence[Event], question: Mapping[str, Any], now_us: int, held_us: int = HOUR_US
) -> list[dict[str, Any]]:
    """The rows of a question over events in a window of an hour, or of ``held_us``, that ends at ``now_us``."""
    window_us = {"20 min": HOUR_US // 3}.get(question.get("window", ""), held_us)
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {} if question.get("by") else {(): []}
    for event in events:
        is_wanted = all(event.data[name] == value for name, value in question.get("where", {}).items())
        if event.type == "Failed" and now_us - event.time_us < window_us and is_wanted:
            groups.setdefault(tuple(event.data[name] for name in question.get("by", ())), []).append(event.data)
    rows = []
    for group in sorted(groups, key=lambda one: [(part is not None, part or "") for part in one]):
        risks = [data["risk"] for data in groups[group] if data["risk"] is not None]
        values = {
            "n": len(groups[group]),
            "total": sum(risks) if risks else None,
            "worst": max(risks, default=None),
            "mean": sum(risks) / len(risks) if risks else None,
            "cities": len({data["city"] for data in groups[group]}),
        }
        values |= {"x": sum(risks) if risks else None, "named": len([one for one in groups[group] if one["region"]])}
        asked = question.get("values", DOCUMENT["values"])
        wanted = [name for one in asked for name in ([one] if isinstance(one, str) else one)]
        rows.append(dict(zip(question.get("by", ()), group, strict=True)) | {name: values[name] for name in wanted})
    return rows


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"by": ["region"]},
    {"by": ["user", "region"], "window": "20 min"},
    {"by": ["region"], "where": {"user": "u1"}},
    {"where": {"region": "north", "user": "u2"}, "window": "20 min"},
    {"by": ["region"], "values": {"x": "sum(risk)", "n": "count()", "named": "count(data.region)"}},
    {"by": ["user"], "values": ["worst", {"cities": "distinct(city)", "mean": "avg(risk)"}], "window": "20 min"},
]


def answers(states: Sequence[ShardState], stream: str, question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The answer of each shard, through the log."""
    found = []
    for state in states:
        ms, number = state.position.split("-")
        asked = Ask(id="q", operator="aggregate", question={"name": "failed", "question": question})
        rows = rows_of(state.advance([entry_of(asked, stream, f"{ms}-{int(number) + 1}")]))
        (row,) = [row for row in rows if row.kind == ANSWER.name]
        found.append(orjson.loads(row.body)["answer"])
    return found


def entry_of(record: ControlRecord, stream: str, position: str) -> StoredEntry:
    return StoredEntry(position=position, kind=record.KIND.value, stream=stream, body=encode_control(record))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shards", [1, 4])
def test_any_question_has_the_values_of_a_plain_evaluation(seed: int, shards: int) -> None:
    chance, definition = Random(seed), defined()
    events = events_of(chance, 120)
    states = [ShardState(shard) for shard in range(shards)]
    for state in states:
        declare(state, definition)
    number = 2
    for start in range(0, len(events), 17):
        number += 2  # the question is in between
        for shard, batch in EventBatch.from_events(events[start : start + 17]).split_by_shard(shards).items():
            body = batch.to_bytes()
            states[shard].advance([event_entry(body, f"1-{number}")])
        if chance.random() < 0.5:
            states = [ShardState.load(state.dump()) for state in states]
        own = [[one for one in events[: start + 17] if home(one, shards) == shard] for shard in range(shards)]
        question = chance.choice(QUESTIONS)
        for state, some, answer in zip(states, own, answers(states, "logins", question), strict=True):
            expected = naive(some, question, some[-1].time_us) if some else naive([], question, 0)
            assert rounded(KIND.answer_of(definition, question, [answer])["groups"]) == rounded(expected), state.shard


def declare(state: ShardState, definition: Definition) -> None:
    assert (
        state.advance([entry_of(StreamOn(LOGINS), "logins", "1-0"), entry_of(StreamOn(FAILED), "failed", "1-1")]) == []
    )
    assert state.advance([entry_of(OperatorOn(definition, "fresh"), "logins", "1-2")]) == []


def rounded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: round(one, 9) if isinstance(one, float) else one for name, one in row.items()} for row in rows]


def home(event: Event, shards: int) -> int:
    return int(shard_of(key_hash(event.key), shards))


def event_entry(body: bytes, position: str) -> StoredEntry:
    return StoredEntry(position=position, kind="events", stream="logins", body=body)


def test_a_divided_state_answers_as_the_whole() -> None:
    definition, events = defined(window="1 d"), events_of(Random(3), 90)
    state = ShardState(0)
    declare(state, definition)
    state.advance([event_entry(EventBatch.from_events(events).to_bytes(), "1-3")])
    question = {"by": ["user", "region"]}
    (whole,) = answers([ShardState.load(state.dump())], "logins", question)
    parts = answers(list(state.split(1, 4)), "logins", question)
    expected = KIND.answer_of(definition, question, [whole])["groups"]
    assert rounded(KIND.answer_of(definition, question, parts)["groups"]) == rounded(expected)
    assert sum(one["answer"]["events"] for one in parts) == whole["answer"]["events"] > 0


def test_events_that_are_brought_together_by_their_group_answer_too() -> None:
    definition = defined(by=["region"], window="1 d")
    shards, events = running(definition, 3), events_of(Random(4), 60)
    shards.feed("logins", EventBatch.from_events(events))
    shards.settle()
    shards.pause()
    question = {"by": ["user"]}
    assert rounded(merged(shards, definition, question, None)["groups"]) == rounded(naive(events, question, 0))


@pytest.mark.parametrize("by", [["user"], ["region"]])
def test_questions_count_the_distinct_texts_of_an_argument_that_is_only_counted(by: list[str]) -> None:
    definition = defined(by=by, values={"n": "count(city)"}, having="n > 1000", window="1 d")
    shards, events = running(definition, 2), events_of(Random(5), 60)
    shards.feed("logins", EventBatch.from_events(events))
    shards.settle()
    shards.pause()
    question = {"values": {"cities": "distinct(city)"}}
    expected = naive(events, question, 0)
    assert merged(shards, definition, question, None)["groups"] == expected
    assert expected[0]["cities"] > 1


def merged(
    shards: InlineShards, definition: Definition, question: Mapping[str, Any], until_us: int | None
) -> Mapping[str, Any]:
    """The answer of all shards together, through the log."""
    asked = {"name": "failed", "question": question, "until_us": until_us}
    shards.append_record(definition.inputs[0].stream, Ask(id="q", operator="aggregate", question=asked))
    found = [orjson.loads(row.body)["answer"] for row in rows_of(shards.settle()) if row.kind == ANSWER.name]
    assert len(found) == len(shards.states)
    return KIND.answer_of(definition, question, found)


@pytest.mark.parametrize("by", ["user", "region"])
@pytest.mark.parametrize("shards", [1, 4, 8])
def test_the_answer_of_all_shards_is_that_of_one_window_over_all_events(by: str, shards: int, draws: Draws) -> None:
    for seed in draws(60):
        chance = Random(seed)
        text, held_us = chance.choice([("20 min", HOUR_US // 3), ("1 h", HOUR_US), ("3 h", 3 * HOUR_US)])
        definition = defined(by=[by], window=text, ask={"by": chance.choice([["region", "user"], ["user", "region"]])})
        inline, times = running(definition, shards), StreamTimes(newest_us=None, appended_us=None, ticked_us=None)
        stream, events = definition.inputs[0].stream, events_of(chance, 80)
        mixed = chance.choice([0, 30])
        events[:mixed] = chance.sample(events[:mixed], mixed)
        first = 0
        while first < len(events):
            part = events[first : first + chance.randrange(1, 20)]
            first += len(part)
            inline.feed("logins", EventBatch.from_events(part))
            inline.settle()
            newest_us = max(one.time_us for one in events[:first])
            if chance.random() < 0.3:
                inline.append_record("logins", Tick(time_us=newest_us, cause="events"))
                inline.settle()
            times = StreamTimes(newest_us=newest_us, appended_us=None, ticked_us=inline._promised.get(stream))
            until_us = reached_us(StreamDeclaration(name=stream, derived=by == "region"), times)
            seen = [one for one in events[:first] if by == "user" or one.time_us < (until_us or 0)]
            question = chance.choice([one for one in QUESTIONS if held_us >= HOUR_US or "window" not in one])
            answer = merged(inline, definition, question, until_us)
            assert rounded(answer["groups"]) == rounded(naive(seen, question, until_us or 0, held_us)), (seed, first)
            assert answer["time_us"] == until_us, (seed, first)


def test_only_attributes_of_questions_have_a_part_in_the_layout() -> None:
    definition = defined(window="1 d")
    inline, question = running(definition, 1), {"where": {"user": "u1"}, "explain": True}
    inline.feed("logins", EventBatch.from_events(events_of(Random(5), 300)))
    inline.settle()
    for _ in range(3):
        (index,) = merged(inline, definition, question, None)["indexes"]
    assert index["configuration"].keys() == index["best"].keys() == {"region", "user"}
    assert {name for kind in index["asked_for"] for name in kind["where"]} == {"region", "user"}
    assert index["partitions"] == 2 ** sum(index["configuration"].values())


def running(definition: Definition, count: int) -> InlineShards:
    """Shards in which an aggregate runs."""
    shards = InlineShards(count)
    shards.append_record("logins", StreamOn(LOGINS))
    shards.append_record("failed", StreamOn(FAILED))
    inner = definition.inputs[0].stream
    if inner != "logins":
        shards.append_record(inner, StreamOn(StreamDeclaration(name=inner, derived=True)))
    shards.append_record(inner, OperatorOn(definition, "fresh"))
    for one in KIND.parts(definition, lambda _: LOGINS):
        shards.append_record("logins", OperatorOn(one, "fresh"))
    return shards


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"by": ["city"]}, "by"),
        ({"where": {"cite": "a"}}, "where"),
        ({"where": {"region": ["a"]}}, "where.region"),
        ({"where": {"region": {">": 3}}}, "where.region"),
        ({"values": ["m"]}, "values"),
        ({"values": [3]}, "values"),
        ({"values": [""]}, "values"),
        ({"values": ""}, "values"),
        ({"values": {"x": "sum(data.)"}}, "values.x"),
        ({"values": {"x": "count(data.data.risk)"}}, "values.x"),
        ({"values": {"x": "sum(price)"}}, "values.x"),
        ({"values": ["n", {"x": "distinct(risk)"}]}, "values.x"),
        ({"values": {"x": "quantile(risk, 0.5)"}}, "values.x"),
        ({"values": {"x": "risk"}}, "values.x"),
        ({"values": {"x": "sum(#key)"}}, "values.x"),
        ({"values": {"x y": "count()"}}, "values.x y"),
        ({"values": ["n", {"n": "sum(risk)"}]}, "values.n"),
        ({"by": ["user"], "values": {"user": "count()"}}, "values.user"),
        ({"values": {f"x{number}": "count()" for number in range(33)}}, "values"),
        ({"window": "2 h"}, "window"),
        ({"window": "soon"}, "window"),
        ({"bye": []}, "bye"),
        ({"by": ["region", "region"]}, "by"),
        ({"by": 3}, "by"),
    ],
)
def test_a_wrong_question_is_refused_with_its_member(question: dict[str, Any], field: str) -> None:
    with pytest.raises(OperatorRefused) as refused:
        KIND.check_question(defined(), question)
    assert refused.value.details["field"] == field


def test_a_value_that_cannot_be_asked_for_is_refused_with_those_that_can() -> None:
    with pytest.raises(OperatorRefused) as refused:
        KIND.check_question(defined(), {"values": {"x": "sum(price)"}})
    assert refused.value.message == (
        "values, x: 'sum(price)' cannot be computed from the index. Questions compute count(), distinct of region, "
        "user, city, and count, sum, avg, min and max of region, user, city, risk"
    )


@pytest.mark.parametrize(
    "members",
    [
        {"ask": {}},
        {"ask": {"by": []}},
        {"ask": ["region"]},
        {"window": {"tumbling": "1 h"}},
        {"ask": {"by": ["a", "a"]}},
    ],
)
def test_an_aggregate_that_could_not_be_asked_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(OperatorRefused, match="ask"):
        defined(**members)


def test_questions_to_an_aggregate_without_ask_are_refused() -> None:
    document = {name: value for name, value in DOCUMENT.items() if name != "ask"}
    with pytest.raises(OperatorRefused, match="answers no questions"):
        KIND.check_question(KIND.read(document, lambda _: LOGINS), {})
    named = defined(values={"region": "count()"}, having="region > 9")
    with pytest.raises(OperatorRefused, match=r"values\.region: the name is that of a group's attribute"):
        KIND.check_question(named, {"by": ["region"]})
    unasked = defined(values={"middle": "quantile(amount, 0.5)"}, having="middle > 9")
    questions: list[dict[str, Any]] = [{}, {"values": []}, {"values": {}}, {"by": ["region"]}]
    for question in questions:
        with pytest.raises(OperatorRefused, match="none that questions may ask for") as refused:
            KIND.check_question(unasked, question)
        assert refused.value.details["field"] == "values"
    KIND.check_question(unasked, {"values": {"n": "count()"}})

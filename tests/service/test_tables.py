"""Tables in backtests: each event reads the version that was current at its time."""

from dataclasses import replace

import pytest

from service.backtests.plans import plan_of
from service.backtests.questions import Question, TriedPattern
from shards import ShardRound
from streams import EventBatch, StreamDeclaration
from streams.tables import TableDeclaration, Tables, TableUnknown, keep_table
from tests.builders.shards import event

TEXT = "PATTERN p EVENT A a [v > lookup(limits, who).most]"


@pytest.fixture
def limits(tmp_path):
    """Makes a version of the table that holds from a second on."""

    def make(number, most, since_s):
        path = tmp_path / "rows.csv"
        path.write_text(f"who,most\nx,{most}\n")
        made = keep_table(path, "csv", TableDeclaration(key=("who",)))
        return replace(made, name="limits", version=number, since_us=since_s * 1_000_000)

    return make


def test_each_event_reads_the_version_of_its_time(limits):
    tables = Tables().with_version(limits(1, 5, 10)).with_version(limits(2, 1, 20))
    question = Question(
        declaration=StreamDeclaration(name="orders"),
        patterns=(TriedPattern(name="p", text=TEXT),),
        tables=tuple(tables.to_json()),
    )
    plan = plan_of(Question.from_document(question.to_document()))
    ran = ShardRound(plan, 0, 0)
    events = [event(number, "A", who="x", v=3) for number in (5, 19, 20, 25)]
    found = [*ran.begin(), *ran.feed("orders", EventBatch.from_events(events)), *ran.finish({"orders": 25_000_000})]
    alerts = [body for rows in found if rows.label == "alert" for body in rows.bodies.to_pylist()]
    assert [b'"a":["e20"]' in body or b'"a":["e25"]' in body for body in alerts] == [True, True]


def test_a_backtest_without_the_table_is_refused():
    question = Question(declaration=StreamDeclaration(name="orders"), patterns=(TriedPattern(name="p", text=TEXT),))
    with pytest.raises(TableUnknown, match="no table is called 'limits'; there are no tables"):
        plan_of(question)

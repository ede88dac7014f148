"""A project over frames gives the results of ``forestall run`` over files of the same events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import forestall
from service.cli.app import build_app

PROJECT = """
kind: stream
name: orders
key: data.customer
---
kind: stream
name: late
derived: true
---
kind: pattern
name: two
stream: orders
text: PATTERN two EVENT SEQ(A a, B b [v > a.v]) WITHIN 60 s EMIT TIMEOUTS RETURN a.v AS v, b.w AS w
---
kind: pattern
name: gone
stream: orders
text: PATTERN gone EVENT SEQ(A a, NOT B) WITHIN 5 s RETURN a.v AS v INTO late
"""
ROWS: list[tuple[Any, ...]] = [
    ("1", "A", 0, "k", 1, "x"),
    ("2", "B", 1, "k", 2, "y"),
    ("3", "A", 2, "m", 5, None),
    ("4", "C", 90, "m", 7, ""),
]
NAMES = ("id", "type", "time", "customer", "v", "w")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "p.yaml").write_text(PROJECT)
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    data = [{name: row[name] for name in NAMES[3:]} for row in rows]
    lines = [
        {"id": row["id"], "type": row["type"], "time": 1_767_225_600 + int(str(row["time"])), "data": one}
        for row, one in zip(rows, data, strict=True)
    ]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tmp_path


@pytest.fixture
def frame():
    frame = pd.DataFrame(ROWS, columns=list(NAMES))
    return frame.assign(time=[datetime.fromtimestamp(1_767_225_600 + s, UTC) for s in frame["time"]])


def test_the_results_are_those_of_the_command(folder, frame):
    words = ["run", str(folder / "project"), "--events", f"orders={folder / 'events.jsonl'}", "--output", "json"]
    expected = json.loads(CliRunner().invoke(build_app(["run"]), words).stdout)
    found = forestall.run(folder / "project", {"orders": frame})
    assert found.stats["events"] == expected["stats"]["events"] == 4
    assert {name: found.lists[name] for name in ("alerts", "timeouts", "endings", "deviations")} == {
        name: expected[name] for name in ("alerts", "timeouts", "endings", "deviations")
    }
    assert found.matches[["stream", "pattern", "v", "w"]].to_dict("records") == [
        {"stream": "orders", "pattern": "two", "v": 1, "w": "y"}
    ]
    assert found.matches["b"].to_list() == [["2"]]
    late = found.streams["late"].to_dict("records")
    assert [(one["id"], one["key"], one["v"]) for one in late] == [
        (one["id"], one["key"], one["data"]["v"]) for one in expected["streams"]["late"]
    ]


def test_names_that_no_event_has_are_noticed_also_in_derived_streams(folder, frame):
    text = (folder / "project" / "p.yaml").read_text().replace("a.v AS v, b.w", "a.v AS v, b.ww")
    text += "---\n{kind: pattern, name: on, stream: late, text: 'PATTERN on EVENT gone x [vv = 1]'}\n"
    (folder / "project" / "p.yaml").write_text(text)
    assert forestall.run(folder / "project", {"orders": frame}).notices == (
        "two: line 1, column 86: no event of the type B has ww (did you mean w?), so it is null everywhere",
        "on: line 1, column 26: no event of the type gone has vv (did you mean v?), so it is null everywhere",
    )


def test_only_chosen_streams_are_kept(folder, frame):
    found = forestall.run(folder / "project", {"orders": frame}, outputs=[])
    with pytest.raises(forestall.ResultsNotKept, match="'late' is not a derived stream that was kept"):
        found.stream("late")


def test_no_attribute_of_a_derived_event_hides_another_column(folder, frame):
    text = (folder / "project" / "p.yaml").read_text().replace("a.v AS v INTO", "a.v AS id_, a.v + 1 AS id INTO")
    (folder / "project" / "p.yaml").write_text(text)
    late = forestall.run(folder / "project", {"orders": frame}).stream("late")
    assert len(late) == 1
    assert late[["id_", "id__"]].to_dict("records") == [{"id_": 5, "id__": 6}]


def test_a_file_is_read_with_the_attributes_that_are_named_like_columns(tmp_path):
    (tmp_path / "e.jsonl").write_text(
        '{"id": "1", "type": "A", "time": 0, "key": "k", "data": {"id": 7, "time": "noon", "id_": 8}}\n'
    )
    (row,) = forestall.read(tmp_path / "e.jsonl", key="key").to_pylist()
    assert {name: row[name] for name in ("id", "id_", "time_", "id__")} == {
        "id": "1",
        "id_": 7,
        "time_": "noon",
        "id__": 8,
    }


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({"late": []}, "the events of 'late' are derived"),
        ({"order": []}, "no document declares the stream 'order' .did you mean orders"),
        ({}, "no events: give a table for one of the streams orders"),
        ({"orders": 17}, "int is not a table of events"),
    ],
)
def test_wrong_tables_are_refused(folder, events, message):
    with pytest.raises(forestall.ForestallError, match=message):
        forestall.run(folder / "project", events)


def test_unknown_outputs_are_refused(folder, frame):
    with pytest.raises(forestall.FrameRefused, match=r"'lat' is not a derived stream .did you mean late"):
        forestall.run(folder / "project", {"orders": frame}, outputs=["lat"])


def test_results_of_rows_of_a_table_name_the_row(folder, frame):
    (folder / "project" / "limits.csv").write_text("id,most\nlow,0\nhigh,4\n")
    (folder / "project" / "rows.yaml").write_text(
        """
kind: table
name: limits
key: id
file: limits.csv
---
kind: constraints
name: orders
constraints: [{exclusive: [B, C]}]
---
kind: pattern
name: over
stream: orders
text: PATTERN over FOR EACH ROW OF limits t EVENT SEQ(A a [v > t.most], B b)
"""
    )
    found = forestall.run(folder / "project", {"orders": frame})
    over = found.matches[found.matches["pattern"] == "over"]
    assert over[["row", "key"]].to_dict("records") == [{"row": '{"id":"low"}', "key": "k"}]
    ended = found.terminations[found.terminations["pattern"] == "over"]
    assert sorted(ended["row"]) == ['{"id":"high"}', '{"id":"low"}']
    assert set(zip(ended["key"], ended["event"], strict=True)) == {("m", "4")}

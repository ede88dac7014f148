"""``forestall run`` of a join whose events share a key."""

import orjson
import pytest


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_join_with_too_many_results_ends_with_a_reason(tmp_path, call, form):
    documents = [
        {"kind": "stream", "name": "a"},
        {"kind": "stream", "name": "b"},
        {
            "kind": "join",
            "name": "both",
            "inputs": [{"stream": "a", "as": "o"}, {"stream": "b", "as": "p"}],
            "window": "24 h",
            "results": {"per_event": 4, "ahead": 40, "average": 1},
            "return": {"o": "id(o)", "p": "id(p)"},
        },
    ]
    project = tmp_path / "project"
    project.mkdir()
    for number, one in enumerate(documents):
        (project / f"{number}.json").write_bytes(orjson.dumps(one))
    for name in "ab":
        lines = [
            orjson.dumps({"id": f"{name}{n}", "type": "T", "time": f"2026-03-02T09:00:{n:02}Z", "key": "unknown"})
            for n in range(30)
        ]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    files = [part for name in "ab" for part in ("--events", f"{name}={tmp_path / name}.jsonl")]
    status, out, err = call("run", str(project), *files, "--output", form)
    assert status == 2
    assert "more results than it may: 40 beyond 1 for each event" in err
    assert "of the key 'unknown'" in err
    assert "Traceback" not in err
    if form == "json":
        found = orjson.loads(out)
        assert len(found["streams"]["both"]) < 120
        assert any("more than 4 results of the join 'both' at once" in one["reason"] for one in found["dead_letters"])

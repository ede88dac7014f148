"""Cases of public test suites: facts about queries, input rows and expected rows, in ``cases``."""

from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from house import ROOT
from nfa import PatternRefused, RowPatternFailed, run_query

FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


def cases():
    for file in FILES:
        for group in yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
            for case in group["cases"]:
                yield pytest.param(group | case, id=f"{file.stem}: {group['name']}: {case['name']}")


def table_of(case):
    rows = case["rows"]
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(case["columns"])})


def query_of(case):
    query = case["query"]
    for place in ("x", "y"):
        query = query.replace(f"{{{place}}}", case.get(place, ""))
    return query


def plain(rows):
    return sorted(tuple(map(repr, row)) for row in rows)


def rows_of(table):
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("case", list(cases()))
def test_case(case):
    query, table = query_of(case), table_of(case)
    if "refused" in case:
        with pytest.raises(PatternRefused, match=case["refused"]):
            run_query(query, {"t": table}.get)
    elif "fails" in case:
        with pytest.raises(RowPatternFailed, match=case["fails"]):
            run_query(query, {"t": table}.get)
    else:
        found = rows_of(run_query(query, {"t": table}.get))
        assert (plain(found) == plain(case["expected"])) == ("differs" not in case), found


def test_most_cases_agree_and_the_documentation_says_how_many():
    found = [param.values[0] for param in cases()]
    others = sum("refused" in case or "differs" in case for case in found)
    agree = len(found) - others
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    sentences = f"Of {len(found)} cases", f"{agree} have the published result", f"The other {others}:"
    assert [sentence for sentence in sentences if sentence not in text] == []
    assert agree >= 150

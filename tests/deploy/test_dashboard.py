"""The dashboard and the alerting rules use metrics that exist, and take those of several API processes once."""

import json
import re

import pytest
import yaml

from house import ROOT
from service import Limits, Stores, render_metrics
from service.observing.http_times import HttpTimes
from tests.builders.service import HandClock, empty_client, private_server, settings_for

pytestmark = pytest.mark.redis

DASHBOARD = json.loads((ROOT / "docs/grafana/forestall.json").read_text(encoding="utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/helm/forestall/rules.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
NAME = re.compile(r"\bforestall_\w+")


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Names of all series, of metrics without a value, too."""
    with private_server(tmp_path_factory.mktemp("redis")) as url, empty_client(url) as client:
        text = render_metrics(Stores(client, url, settings_for(url)), Limits(), HandClock()).decode()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, flags=re.MULTILINE))
    parts = {name + part for name, kind in kinds.items() if kind == "summary" for part in ("_sum", "_count")}
    parts |= {name + part for name, kind in kinds.items() if kind == "histogram" for part in ("_bucket", "_count")}
    times = {metric.name + part for metric in HttpTimes().metrics() for part in ("_bucket", "_count")}
    return parts | times | {name for name, kind in kinds.items() if kind != "summary"}


def test_every_metric_exists(names):
    used = {name for query in [*QUERIES, *(rule["expr"] for rule in RULES)] for name in NAME.findall(query)}
    assert used - names == set()


def test_what_matters_is_shown():
    shown = " ".join(QUERIES)
    for name in (
        "events_matched_total",
        "backlog_events",
        "batch_seconds_sum",
        "watermark_lag_seconds",
        "alerts_total",
        "early_endings_total",
        "webhook_attempts_total",
        "state_bytes",
    ):
        assert f"forestall_{name}" in shown


def test_counters_are_shown_as_rates_or_sums():
    for query in QUERIES:
        for name in re.findall(r"forestall_\w+_(?:total|sum|count)\b", query):
            assert re.search(rf"(?:rate|sum)\((?:max without \(instance, pod\) \()?{name}", query), query


def test_panels_have_places_of_their_own():
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        assert at["x"] + at["w"] <= 24
        places |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("query", QUERIES)
def test_several_api_processes_are_not_added_up(query):
    is_of_one_process = re.search("forestall_(?:http_request_seconds|build_info)", query)
    assert is_of_one_process or re.search(r"\bmax( without \(instance, pod\) )?\(", query)


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_has_what_its_reader_needs(rule):
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["summary"].endswith(".")
    for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
        assert re.search(rf"by \([^)]*\b{label}\b", rule["expr"]), "a label that the expression keeps"


def test_the_rules_are_listed():
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert [rule["alert"] for rule in RULES if f"`{rule['alert']}`" not in text] == []

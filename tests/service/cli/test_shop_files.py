"""Ten questions of an online shop, asked of three raw files as the how-to asks them."""

import shutil

import orjson
import pytest

from house import ROOT

SHOP = ROOT / "docs" / "examples" / "shop"
FILES = {"orders": "orders.csv", "payments": "payments.jsonl", "shipments": "shipments.csv"}
EVENTS = [word for name, file in FILES.items() for word in ("--events", f"{name}={SHOP / file}")]
ANSWERS = {
    "price_changed": ("1001", {"quoted": 49.9, "placed": 59.9}),
    "never_ordered": ("1003", {"customer": "cem"}),
    "cancelled_late": ("1006", {"customer": "dana"}),
    "large_order": ("1002", {"amount": 620.0}),
    "three_in_a_day": ("bob", None),
    "failed_three_times": ("1004", None),
    "captured_twice": ("1005", {"amount": 30}),
    "slow_delivery": ("1005", {"carrier": "south"}),
    "paid_not_shipped": ("1002", {"paid": "2026-03-02T09:10:00.000000Z", "amount": 620}),
    "refund_without_return": ("1008", {"refunded": "2026-03-12T10:00:00.000000Z"}),
}


def answers_of(call, *arguments):
    status, out, err = call("run", *arguments, "--output", "json")
    assert status == 0, err
    found = orjson.loads(out)
    assert found["stats"]["events"] == 32
    return {one["pattern"]: (one["key"], one.get("returns")) for one in found["alerts"]}


def test_each_question_has_its_answer(call):
    assert answers_of(call, str(SHOP / "rules"), *EVENTS) == ANSWERS


def test_options_say_what_the_mapping_says(call, tmp_path):
    shutil.copytree(SHOP / "rules", tmp_path / "rules")
    streams = tmp_path / "rules" / "streams.yaml"
    streams.write_text(
        "{kind: stream, name: orders, key: order, keys: {customer: data.customer}, lateness: 5184000}\n---\n"
        "{kind: stream, name: payments, key: order, lateness: 5184000}\n---\n"
        "{kind: stream, name: shipments, key: order, lateness: 5184000}\n"
    )
    named = {
        "--type": ["orders=status", "payments=event", "shipments=what"],
        "--time": ["orders=at", "payments=ts", "shipments=when"],
        "--assume-zone": ["Europe/Berlin"],
        "--time-format": ["shipments=month-first"],
        "--columns": ["orders=amount=number"],
    }
    options = [word for option, values in named.items() for value in values for word in (option, value)]
    assert answers_of(call, str(tmp_path / "rules"), *EVENTS, *options) == ANSWERS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time", "orders=at", "--time", "orders=when"], "given twice for the stream 'orders'"),
        (["--time", "paid=at"], "the stream 'paid' has no file"),
        (["--time-unit", "hours"], "time_unit is 'hours'; write one of auto, s, ms, us, ns"),
        (["--encoding", "klingon"], "unknown encoding 'klingon'"),
        (["--columns", "orders=amount"], "is not NAME=TYPE"),
        (["--delimiter", "::"], "is not one character"),
        (["--assume-zone", "orders=Nowhere"], "unknown time zone 'Nowhere'"),
    ],
)
def test_an_option_that_cannot_be_meant_so_is_refused(call, options, said):
    status, out, err = call("run", str(SHOP / "rules"), *EVENTS, *options)
    assert (status, out) == (2, "")
    assert said in " ".join(err.replace("│", " ").split())


def test_tests_of_a_project_read_files_too(call, tmp_path):
    shutil.copytree(SHOP, tmp_path / "shop")
    (tmp_path / "shop" / "rules" / "files.yaml").write_text(
        "kind: test\nname: three files\n"
        "files: {orders: ../orders.csv, payments: ../payments.jsonl, shipments: ../shipments.csv}\n"
        "expect:\n  alerts:\n"
        + "".join(
            f"    - {line}\n"
            for line in (
                "price_changed [1001] q=1001:1 p=1001:2",
                "never_ordered [1003] q=1003:1",
                "cancelled_late [1006] p=1006:1 c=1006:2",
                "large_order [1002] p=1002:1",
                "three_in_a_day [bob] a=1002:1 b=1004:1 c=1005:1",
                "failed_three_times [1004] a=1004:1 b=1004:2 c=1004:3",
                "captured_twice [1005] a=1005:1 b=1005:2",
                "slow_delivery [1005] s=1005:1",
                "paid_not_shipped [1002] e=paid1772615400",
                "refund_without_return [1008] e=refunds1773309600",
            )
        )
    )
    status, out, err = call("test", str(tmp_path / "shop" / "rules"))
    assert status == 0, out + err

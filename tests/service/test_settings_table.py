"""The table of settings says what the service reads."""

import os
import sys
from typing import Annotated, Literal

import orjson
import pytest
from pydantic import BaseModel, Field

from house import ROOT
from service.cli import main
from service.settings import load_settings
from service.settings_table import _rows, setting_rows, settings_page, unknown_variables


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("FORESTALL_"):
            monkeypatch.delenv(name)


def row(variable, rows):
    return next(row for row in rows if row.variable == variable)


def test_the_page_is_made_from_the_settings():
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), "python -m service.settings_table > docs/settings.md"


def test_values_tell_where_they_come_from_and_no_secrets(monkeypatch):
    monkeypatch.setenv("FORESTALL_API_KEY", "correct-horse")
    monkeypatch.setenv("FORESTALL_REDIS_URL", "redis://:hidden@example.org")
    monkeypatch.setenv("FORESTALL_SPARK__CONF", '{"spark.authenticate.secret": "hidden", "spark.ui.port": "4050"}')
    monkeypatch.setenv("FORESTALL_LIMITS__RECENT_KEPT", "7")
    rows = setting_rows(load_settings())
    assert "correct-horse" not in repr(rows)
    assert "hidden" not in repr(rows)
    assert "4050" in str(row("FORESTALL_SPARK__CONF", rows).value)
    changed = [row.variable for row in rows if row.is_set]
    assert changed == [
        "FORESTALL_REDIS_URL",
        "FORESTALL_API_KEY",
        "FORESTALL_LIMITS__RECENT_KEPT",
        "FORESTALL_SPARK__CONF",
    ]
    assert row("FORESTALL_LIMITS__RECENT_KEPT", rows).value == "7"
    assert row("FORESTALL_LIMITS__RECENT_KEPT", rows).default == "`10000`"


def test_kinds_say_what_may_be_written():
    class Inner(BaseModel):
        """Some.

        Attributes:
            ratio: Of ``one`` thing
                to another.
        """

        ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5

    class Outer(BaseModel):
        """All.

        Attributes:
            mode: How.
            names: Which.
            inner: See ``Inner``.
            count: How many.
        """

        mode: Literal["a", "b"] = "a"
        names: list[str] = []
        inner: Inner = Inner()
        count: Annotated[int, Field(ge=1, le=9)] | None = None

    found = [(row.variable, row.kind, row.default, row.meaning) for row in _rows(Outer, None, ())]
    assert found == [
        ("FORESTALL_MODE", "`a` or `b`", "`a`", "How."),
        ("FORESTALL_NAMES", "JSON list", "none", "Which."),
        ("FORESTALL_INNER__RATIO", "number, above 0, below 1", "`0.5`", "Of `one` thing to another."),
        ("FORESTALL_COUNT", "whole number, 1 to 9", "none", "How many."),
    ]


def test_the_command_prints_values_and_json(monkeypatch, capsys):
    monkeypatch.setenv("FORESTALL_BATCH__MAX_ENTRIES", "32")
    for arguments in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["forestall", "settings", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        out = capsys.readouterr().out
        if arguments:
            assert row_of(orjson.loads(out), "FORESTALL_BATCH__MAX_ENTRIES")["value"] == "32"
        else:
            line = next(line for line in out.splitlines() if "MAX_ENTRIES" in line)
            assert line.split() == ["FORESTALL_BATCH__MAX_ENTRIES", "environment", "32"]


def row_of(rows, variable):
    return next(row for row in rows if row["variable"] == variable)


def test_variables_that_name_no_setting_are_found_with_the_nearest_one(monkeypatch, capsys):
    for name in ("API_PROT", "shard", "BATCH", "SPARK__CONF__x", "ROLE"):
        monkeypatch.setenv(f"FORESTALL_{name}", "{}")
    assert unknown_variables() == [
        "FORESTALL_API_PROT is not a setting and has no effect (did you mean FORESTALL_API_PORT?)",
        "FORESTALL_SHARD is not a setting and has no effect (did you mean FORESTALL_SHARDS?)",
    ]
    monkeypatch.delenv("FORESTALL_SPARK__CONF__x")
    monkeypatch.setattr(sys, "argv", ["forestall", "settings"])
    with pytest.raises(SystemExit):
        main()
    assert "warning: FORESTALL_API_PROT is not a setting" in capsys.readouterr().err

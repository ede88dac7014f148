"""``forestall backtests alerts`` against the real API."""

import orjson
import pytest

pytestmark = pytest.mark.redis
PATTERN = "PATTERN p EVENT SEQ(A a, B b)"


def test_the_alerts_of_a_backtest_continue_after_a_cursor(call, api_url, stores):
    def run(*arguments):
        status, out, err = call(*arguments, "--url", api_url)
        assert status == 0, err
        return out, err

    run("streams", "add", "orders")
    backtest = orjson.loads(run("backtests", "ask", PATTERN, "--stream", "orders", "--json")[0])["id"]
    ends = [f"2026-01-01T00:00:0{second}.000000Z" for second in range(3)]
    alert = {"id": "a", "type": "alert", "pattern": "p", "version": 1, "key": "k", "start": ends[0], "why": "so"}
    alert |= {"detected_at": ends[0], "change": None, "compared_with": [], "bindings": {}, "returns": {}}
    stores.backtests.keep_result(backtest, {}, [{**alert, "end": end} for end in ends])
    out, err = run("backtests", "alerts", backtest, "--limit", "2")
    assert ([end in out for end in ends], err) == ([True, True, False], "more: --after 2\n")
    out, err = run("backtests", "alerts", backtest, "--after", "2")
    assert (ends[2] in out, ends[1] in out, err) == (True, False, "")

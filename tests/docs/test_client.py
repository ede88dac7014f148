"""The page about the client, word for word, against a real API; only its address and key differ."""

import orjson
import pytest

from api import create_app
from house import ROOT
from house.documents import code_blocks
from service import Stores
from tests.builders.api import serving
from tests.builders.service import empty_client, private_server, settings_for, sink_row

pytestmark = [pytest.mark.redis, pytest.mark.slow]

PAGE = ROOT / "docs" / "client.md"
ADDRESS, KEY, OTHER_KEY = "http://127.0.0.1:8000", "a-key", "a-key-for-tests"
ALERT = {
    "id": "a1",
    "stream": "orders",
    "pattern": "stuck",
    "version": 1,
    "key": "t1",
    "start": "2026-01-01T00:00:00Z",
    "end": "2026-01-01T00:00:00Z",
    "detected_at": "2026-01-02T00:00:00Z",
    "bindings": {"o": ["e1"]},
    "why": "e1 is Order o",
}


def test_each_block_runs(tmp_path, capsys):
    blocks = [block for block in code_blocks(PAGE.read_text(encoding="utf-8")) if block.language == "python"]
    assert len(blocks) == 9
    with private_server(tmp_path) as server, empty_client(server) as redis:
        settings = settings_for(server, api_key=OTHER_KEY)
        Stores(redis, server, settings).alerts.append(
            [sink_row(kind="alert", stream="orders", id="a1", body=orjson.dumps(ALERT))], [], 0
        )
        names: dict[str, object] = {}
        with serving(create_app(settings)) as url:
            for block in blocks:
                code = "\n" * block.line + block.text.replace(ADDRESS, url).replace(KEY, OTHER_KEY)
                exec(compile(code, str(PAGE), "exec"), names)
            names["client"].close()  # type: ignore[attr-defined]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "stuck 1 []"
    assert "stuck t1 e1 is Order o" in lines
    assert lines[-1] == "orders"

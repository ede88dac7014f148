"""The content of tables in Redis: it lasts as long as a version has it, and commands that are sent twice do no harm."""

from dataclasses import replace

import orjson
import pytest

from service.errors import PreconditionFailed, StoreUnavailable
from service.stores import ANY, Condition
from service.stores.connection import connect
from service.stores.registry.tables import TableStore
from streams.tables import STORED, TableDeclaration, TableFiles, fetching, keep_table

pytestmark = pytest.mark.redis

A, B = "who,most\nx,5\n", "who,most\nx,6\n"


@pytest.fixture
def put(stores, tmp_path):
    """Registers rows as the next version of a table."""

    def make(text, name="limits", condition=ANY):
        path = tmp_path / "rows.csv"
        path.write_text(text)
        version = replace(keep_table(path, "csv", TableDeclaration(key=("who",))), name=name)
        return stores.tables.put(version, stores.tables.files.path(version.digest), 0, condition)

    return make


@pytest.fixture
def replaced(client, put):
    """The key of content that was replaced before the oldest entry of the log."""
    first, _ = put(A)
    put(B)
    for version in (1, 2):
        field = f"{version}@limits"
        record = orjson.loads(client.hget(TableStore.versions_key, field))
        record["since_ms"] -= 3_600_000
        client.hset(TableStore.versions_key, field, orjson.dumps(record))
    return STORED + first.digest


@pytest.fixture
def lives(client, server_url, monkeypatch):
    """The times to live of the current content of the table, after each command from now on."""
    found, run = set(), client.execute_command
    with connect(server_url) as watching:

        def watched(*args, **options):
            reply = run(*args, **options)
            record = orjson.loads(watching.hget(TableStore.key, "limits"))
            found.add(watching.ttl(STORED + record["digest"]))
            return reply

        monkeypatch.setattr(client, "execute_command", watched)
        yield found


def test_content_that_a_new_version_has_again_never_expires(put, replaced, lives):
    assert put(A)[0].version == 3
    assert lives == {-1}


def test_content_whose_version_was_forgotten_is_used_again(client, put, replaced, request):
    put(B, name="others")
    assert 0 < client.ttl(replaced) <= 86_400
    lives = request.getfixturevalue("lives")
    assert put(A)[0].version == 3
    assert lives == {-1}


def test_the_next_cleaning_keeps_content_in_use_that_would_expire(client, put):
    record, _ = put(A)
    client.expire(STORED + record.digest, 9)
    put(B, name="others")
    assert client.ttl(STORED + record.digest) == -1


def test_content_of_a_refused_upload_expires(client, put):
    with pytest.raises(PreconditionFailed):
        put(A, condition=Condition(matches=("limits@1.0",)))
    (content,) = client.keys(f"{STORED}*")
    assert 0 < client.ttl(content) <= 3_600


def fetched(client, stores, record):
    """The rows of a version on a machine that does not have their file."""
    stores.tables.files.path(record.digest).unlink()
    files = TableFiles(fetching(client.lindex))
    return dict(zip(*(files.open(record.digest).column(name).to_pylist() for name in ("who", "most")), strict=True))


def test_commands_that_are_sent_twice_store_every_piece_once(client, stores, put, monkeypatch):
    run = client.execute_command
    monkeypatch.setattr(client, "execute_command", lambda *args, **given: (run(*args, **given), run(*args, **given))[1])
    monkeypatch.setattr("streams.tables.files._PIECE_BYTES", 300)
    record, is_new = put(A)
    assert (record.version, is_new, client.llen(STORED + record.digest) > 1) == (1, True, True)
    assert fetched(client, stores, record) == {"x": 5}
    assert client.keys(f"{STORED}*:*") == []


def test_content_with_a_piece_too_many_is_replaced(client, stores, put):
    record, _ = put(A)
    content = STORED + record.digest
    client.rpush(content, client.lindex(content, 0))
    assert put(A) == (record, False)
    assert (client.llen(content), client.ttl(content)) == (1, -1)
    assert fetched(client, stores, record) == {"x": 5}


def test_content_of_which_a_piece_was_lost_is_refused(client, put, monkeypatch):
    run = client.execute_command

    def forgetting(*args, **given):
        reply = run(*args, **given)
        drafts = client.keys(f"{STORED}*:*") if args[0] == "EVALSHA" else []
        for draft in drafts:
            run("DEL", draft)
        return reply

    monkeypatch.setattr(client, "execute_command", forgetting)
    monkeypatch.setattr("streams.tables.files._PIECE_BYTES", 300)
    with pytest.raises(StoreUnavailable, match="try again"):
        put(A)

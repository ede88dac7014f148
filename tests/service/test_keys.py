"""Keys as use cases: what may be made, what is kept, and the first key of a service."""

import pytest

from service.access.keyring import KeyRing, is_token
from service.access.keys import KeyDraft, KeyLibrary
from service.errors import KeyRefused, KeyUnusable, TooManyKeys, UnknownKey
from service.stores import ApiKey, KeyStore
from streams import DeclarationError
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

OPERATOR = "the-key-of-the-environment"


@pytest.fixture
def library_of(stores, server_url, clock):
    """The use cases, by the settings."""

    def made(**changes):
        settings = settings_for(server_url, **changes)
        return KeyLibrary(stores.keys, KeyRing(stores.keys, settings, clock), settings, clock)

    return made


@pytest.fixture
def library(library_of):
    return library_of(api_key=OPERATOR)


def draft(**changes):
    return KeyDraft(**{"name": "shop", "scopes": ["read"], **changes})


def test_a_key_is_kept_without_its_secret(library, client):
    key, token = library.create(draft(scopes=["read", "ingest", "read"], streams=["b", "a", "b"]))
    assert (key.scopes, key.streams) == (("ingest", "read"), ("b", "a"))
    assert is_token(token)
    assert library.get(key.id).key == key
    secret = token.rpartition("_")[2].encode()
    kept = b"".join(client.dump(name) or b"" for name in client.keys("*"))
    assert secret not in kept


def test_keys_are_listed_by_age(library, clock):
    names = ["one", "two", "three"]
    for name in names:
        library.create(draft(name=name))
        clock.forward(1)
    assert [report.key.name for report in library.all()] == names


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "1 to 100 printable"),
        ({"name": "  "}, "1 to 100 printable"),
        ({"name": "x" * 101}, "1 to 100 printable"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "a\x1b[31m"}, "printable"),
        ({"name": "a\u2028b"}, "printable"),
        ({"scopes": []}, "at least one scope"),
        ({"scopes": ["admin"], "streams": ["orders"]}, "admin"),
        ({"streams": []}, "is useless"),
        ({"expires_us": 5}, "is over"),
    ],
)
def test_what_makes_no_sense_is_refused(library, changes, words):
    with pytest.raises(KeyRefused, match=words):
        library.create(draft(**changes))
    assert library.all() == []


@pytest.mark.parametrize("name", ["..", "a/b", "", "a\0", "a b"])
def test_streams_have_names_that_streams_can_have(library, name):
    with pytest.raises(DeclarationError):
        library.create(draft(streams=["orders", name]))


def test_the_first_key_can_make_others(library_of):
    library = library_of()
    with pytest.raises(KeyRefused, match="the first must have the scope admin"):
        library.create(draft())
    first, _ = library.create(draft(scopes=["admin"]))
    library.create(draft())
    library.revoke(first.id)
    with pytest.raises(KeyRefused, match="FORESTALL_API_KEY"):
        library.create(draft())
    assert library_of(auth="off").create(draft())


def test_rotation_changes_the_secret_only(library):
    key, token = library.create(draft(streams=["orders"]))
    rotated, newer = library.rotate(key.id, grace_s=5)
    assert (rotated.id, rotated.scopes, rotated.streams, rotated.created_us) == (
        key.id,
        key.scopes,
        key.streams,
        key.created_us,
    )
    assert newer != token
    assert rotated.former_digest == key.digest


def test_what_is_revoked_or_has_expired_is_not_rotated(library, clock):
    key, _ = library.create(draft())
    library.revoke(key.id)
    revoked_us = library.get(key.id).key.revoked_us
    clock.forward(1)
    library.revoke(key.id)  # again: nothing happens
    assert library.get(key.id).key.revoked_us == revoked_us
    with pytest.raises(KeyUnusable):
        library.rotate(key.id)
    other, _ = library.create(draft(expires_us=clock.now_us() + 1))
    clock.forward(1)
    with pytest.raises(KeyUnusable):
        library.rotate(other.id)


def test_an_unknown_key_is_named(library):
    for call in (library.get, library.rotate, library.revoke):
        with pytest.raises(UnknownKey, match="'nobody'"):
            call("nobody")


def test_two_who_change_a_key_do_not_undo_each_other(library, stores):
    key, _ = library.create(draft())
    rotated: list[ApiKey] = []

    def slowly(found):
        if not rotated:
            rotated.append(library.rotate(key.id)[0])
        return found

    assert stores.keys.change(key.id, slowly) == rotated[0]


def test_keys_that_are_over_make_room(client, clock, server_url):
    store = KeyStore(client, kept=2)
    settings = settings_for(server_url, api_key=OPERATOR)
    library = KeyLibrary(store, KeyRing(store, settings, clock), settings, clock)
    first, _ = library.create(draft(name="first"))
    library.create(draft(name="second"))
    with pytest.raises(TooManyKeys):
        library.create(draft(name="third"))
    library.revoke(first.id)
    library.create(draft(name="third"))
    assert {report.key.name for report in library.all()} == {"second", "third"}


def test_a_service_that_demands_keys_gets_a_first_one_once(library_of):
    library = library_of(auth="keys")
    assert is_token(library.create_first())
    assert library.create_first() is None
    (report,) = library.all()
    assert (report.key.name, report.key.scopes) == ("bootstrap", ("admin",))
    library.revoke(report.key.id)
    assert is_token(library.create_first())


@pytest.mark.parametrize("changes", [{}, {"auth": "off"}, {"api_key": OPERATOR}, {"auth": "keys", "api_key": OPERATOR}])
def test_others_get_none(library_of, changes):
    library = library_of(**changes)
    assert library.create_first() is None
    assert library.all() == []

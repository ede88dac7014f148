"""Whose a token is: what is taken, what is refused, how long a change may go unnoticed, and what is compared."""

import hmac
import secrets

import pytest

from service.access.keyring import ENVIRONMENT, KeyRing, digest_of, is_token, token_of
from service.access.keys import KeyDraft, KeyLibrary
from service.embedded import free_port
from service.errors import StoreUnavailable
from service.stores import KeyStore, connect
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

OPERATOR = "the-key-of-the-environment"


class Timer:
    """A clock that advances only when a test sets it."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def timer():
    return Timer()


@pytest.fixture
def make(stores, server_url, clock, timer):
    """A ring and its library, by the settings."""

    def made(**changes):
        settings = settings_for(server_url, **changes)
        ring = KeyRing(stores.keys, settings, clock, now=timer)
        return ring, KeyLibrary(stores.keys, ring, settings, clock)

    return made


@pytest.fixture
def ring_and_key(make):
    """A ring with a key of the environment, its library, a key and its token."""
    ring, library = make(api_key=OPERATOR)
    key, token = library.create(KeyDraft(name="shop", scopes=["read"], streams=["orders"]))
    return ring, library, key, token


def test_the_holder_of_a_token_is_known(ring_and_key):
    ring, _, key, token = ring_and_key
    assert token == token_of(key.id, token.rpartition("_")[2])
    caller = ring.verdict(token).caller
    assert (caller.id, caller.name, caller.scopes, caller.streams) == (key.id, "shop", ("read",), ("orders",))
    assert caller.may("read")
    assert not caller.may("patterns")
    assert [caller.may_touch(stream) for stream in ("orders", "payments", None)] == [True, False, False]


def test_the_key_of_the_environment_may_do_everything(ring_and_key):
    caller = ring_and_key[0].verdict(OPERATOR).caller
    assert (caller.id, caller.scopes, caller.streams) == (ENVIRONMENT, ("admin",), None)


def wrong_tokens(key, token):
    other = secrets.token_hex(32)
    return {
        "nothing": "",
        "no token at all": "Bearer",
        "an unknown id": token_of("0" * 16, other),
        "a wrong secret": token_of(key.id, other),
        "cut short": token[:-1],
        "capitals": token.upper(),
        "not even text": "\udcff",
        "the beginning of the operator's": OPERATOR[:-1],
    }


def test_what_is_wrong_is_refused_in_the_same_words(ring_and_key):
    ring, _, key, token = ring_and_key
    for what, wrong in wrong_tokens(key, token).items():
        verdict = ring.verdict(wrong)
        assert (verdict.caller, verdict.reason) == (None, "the API key is wrong"), what


def test_as_many_digests_are_compared_whatever_is_wrong(ring_and_key, monkeypatch):
    ring, _, key, token = ring_and_key
    compared = []

    def compare(given, expected):
        compared.append((len(given), len(expected)))
        return hmac_compare(given, expected)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr("service.access.keyring.hmac.compare_digest", compare)
    for what, sent in {**wrong_tokens(key, token), "right": token, "the operator's": OPERATOR}.items():
        compared.clear()
        ring.verdict(sent)
        assert compared == [(64, 64)] * 3, what


def test_redis_is_asked_once_for_an_id_whether_it_is_known_or_not(ring_and_key, timer, stores, monkeypatch):
    ring, _, key, token = ring_and_key
    asked = []
    find = KeyStore.find

    def asking(self, key_id):
        asked.append(key_id)
        return find(self, key_id)

    monkeypatch.setattr(KeyStore, "find", asking)
    unknown = token_of("f" * 16, secrets.token_hex(32))
    for sent in (token, token, unknown, unknown):
        ring.verdict(sent)
    assert asked == [key.id, "f" * 16]
    timer.now_s += 1.5
    ring.verdict(token)
    assert asked[2:] == [key.id]


def test_a_key_without_a_key_of_the_environment(make):
    ring, library = make()
    _, token = library.create(KeyDraft(name="first", scopes=["admin"]))
    assert ring.verdict(token).caller.may("ingest")
    assert ring.verdict("").caller is None


def test_a_revoked_key_is_refused_at_once_here_and_in_a_second_elsewhere(ring_and_key, make, timer):
    ring, library, key, token = ring_and_key
    elsewhere, _ = make(api_key=OPERATOR)
    assert elsewhere.verdict(token).caller is not None
    library.revoke(key.id)
    assert "revoked" in ring.verdict(token).reason
    assert elsewhere.verdict(token).caller is not None
    timer.now_s += 1.5
    assert elsewhere.verdict(token).caller is None


def test_a_key_expires(make, clock):
    ring, library = make(api_key=OPERATOR)
    _, token = library.create(KeyDraft(name="short", scopes=["read"], expires_us=clock.now_us() + 1_000_000))
    assert ring.verdict(token).caller is not None
    clock.forward(1)
    assert "expired at 2026-01-01" in ring.verdict(token).reason


def test_a_former_secret_is_taken_for_the_time_of_grace(ring_and_key, clock):
    ring, library, key, token = ring_and_key
    _, newer = library.rotate(key.id, grace_s=60)
    assert ring.verdict(newer).caller == ring.verdict(token).caller
    clock.forward(60)
    assert "rotated" in ring.verdict(token).reason
    assert ring.verdict(newer).caller.scopes == ("read",)


def test_without_grace_a_former_secret_is_refused_at_once(ring_and_key):
    ring, library, key, token = ring_and_key
    _, newer = library.rotate(key.id)
    assert ring.verdict(token).caller is None
    assert ring.verdict(newer).caller is not None


def test_only_the_last_former_secret_has_grace(ring_and_key):
    ring, library, key, token = ring_and_key
    _, second = library.rotate(key.id, grace_s=60)
    _, third = library.rotate(key.id, grace_s=60)
    assert [ring.verdict(sent).caller is not None for sent in (token, second, third)] == [False, True, True]


def test_use_is_noted_once_a_minute(ring_and_key, stores, clock, timer):
    ring, library, key, token = ring_and_key
    assert library.get(key.id).last_used_us is None
    caller = ring.verdict(token).caller
    first_us = clock.now_us()
    for seconds in (0, 30, 29):
        clock.forward(seconds)
        timer.now_s += seconds
        ring.note_use(caller)
    assert library.get(key.id).last_used_us == first_us
    timer.now_s += 2
    ring.note_use(caller)
    assert library.get(key.id).last_used_us == clock.now_us()
    ring.note_use(ring.verdict(OPERATOR).caller)
    assert set(stores.keys.last_used_us()) == {key.id}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"auth": "off"}, False),
        ({"auth": "off", "api_key": OPERATOR}, False),
        ({"auth": "keys"}, True),
        ({"api_key": OPERATOR}, True),
        ({"api_host": "0.0.0.0"}, True),
    ],
)
def test_who_needs_a_key_before_there_is_one(make, changes, expected):
    assert make(**changes)[0].is_demanded() is expected


def test_once_there_was_a_key_keys_are_demanded(make, stores, timer):
    ring, library = make()
    elsewhere, _ = make()
    assert not ring.is_demanded()
    assert not elsewhere.is_demanded()
    key, _ = library.create(KeyDraft(name="first", scopes=["admin"]))
    assert ring.is_demanded()
    assert not elsewhere.is_demanded()
    timer.now_s += 1.5
    assert elsewhere.is_demanded()
    library.revoke(key.id)
    assert make()[0].is_demanded()


def test_without_redis_nobody_is_let_in(settings, clock):
    url = f"redis://127.0.0.1:{free_port()}/0"
    with connect(url, retries=0) as client:
        ring = KeyRing(KeyStore(client), settings_for(url), clock)
        with pytest.raises(StoreUnavailable):
            ring.is_demanded()
        with pytest.raises(StoreUnavailable):
            ring.verdict(token_of("0" * 16, "0" * 64))


def test_a_token_has_a_form():
    assert is_token(token_of("0123456789abcdef", digest_of("x")))
    assert not is_token(OPERATOR)
    assert not is_token(token_of("0123456789abcdef", digest_of("x")) + "\n")


def test_a_check_that_needs_no_store_is_known_beforehand(ring_and_key, timer):
    ring, _, _, token = ring_and_key
    assert ring.is_remembered(OPERATOR)
    assert ring.is_remembered(None)
    assert not ring.is_remembered(token)
    ring.note_use(ring.verdict(token).caller)
    assert ring.is_remembered(token)
    timer.now_s += 2
    assert not ring.is_remembered(token)


def test_whether_a_key_is_demanded_is_read_again_after_a_second(make, timer):
    ring, _ = make(auth="auto")
    assert not ring.is_remembered(None)
    ring.is_demanded()
    assert ring.is_remembered(None)
    timer.now_s += 2
    assert not ring.is_remembered(None)

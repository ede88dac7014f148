"""Who is let in: with which key, how often, from where; and what is noted of what they do."""

import httpx
import pytest

from api import create_app
from tests.builders.api import serving
from tests.builders.service import settings_for
from tests.builders.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

WRONG = {"Authorization": "Bearer wrong-key-here"}
ADMIN = {"name": "first", "scopes": ["admin"]}


@pytest.fixture
def open_api(server_url, stores, clock):
    """A client of an API without any key."""
    with (
        serving(create_app(settings_for(server_url), clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        yield client


@pytest.fixture
def limited(server_url, stores, clock):
    """A client, with the key ``a-key-for-tests``, of an API with a rate limit: a burst of 3, then 0.001 a second."""
    settings = settings_for(server_url, api_key="a-key-for-tests", rate={"requests_per_s": 0.001, "burst": 3})
    with (
        serving(create_app(settings, clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        client.headers["Authorization"] = "Bearer a-key-for-tests"
        yield client


def test_from_the_first_key_on_keys_are_demanded(open_api, check_problem):
    assert open_api.get("/v1/streams").status_code == 200
    check_problem(open_api.post("/v1/keys", json={"name": "n", "scopes": ["read"]}), 400, "key-refused")
    assert open_api.get("/v1/streams").status_code == 200
    token = open_api.post("/v1/keys", json=ADMIN).json()["token"]
    check_problem(open_api.get("/v1/streams"), 401, "unauthorized")
    open_api.headers["Authorization"] = f"Bearer {token}"
    assert open_api.get("/v1/streams").status_code == 200
    (entry, _) = open_api.get("/v1/audit").json()["items"]
    assert (entry["key"], entry["key_name"], entry["http_status"]) == (None, None, 201)


def test_demanded_keys_are_demanded_from_the_beginning(server_url, stores, clock, check_problem):
    for changes in ({"auth": "keys"}, {"api_host": "0.0.0.0"}):
        with serving(create_app(settings_for(server_url, **changes), clock)) as url:
            check_problem(httpx.get(f"{url}/v1/streams", verify=False, timeout=PATIENCE_S), 401, "unauthorized")
            assert httpx.get(f"{url}/v1/health", verify=False, timeout=PATIENCE_S).status_code == 200


def test_where_auth_is_off_no_key_is_looked_at(server_url, stores, clock):
    with serving(create_app(settings_for(server_url, auth="off"), clock)) as url:
        assert httpx.post(f"{url}/v1/keys", json=ADMIN, verify=False, timeout=PATIENCE_S).status_code == 201
        assert httpx.get(f"{url}/v1/streams", headers=WRONG, verify=False, timeout=PATIENCE_S).status_code == 200
        assert (
            httpx.get(
                f"{url}/v1/streams", headers={"Host": "proxy.example"}, verify=False, timeout=PATIENCE_S
            ).status_code
            == 200
        )


@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        ({}, True),
        ({"Host": "localhost:8000"}, True),
        ({"Host": "[::1]"}, True),
        ({"Origin": "http://localhost:3000"}, True),
        ({"Host": "rebound.example"}, False),
        ({"Host": "127.0.0.1.example"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://[bad"}, False),
    ],
)
def test_pages_of_other_sites_do_not_reach_an_open_api(open_api, check_problem, headers, is_taken):
    answer = open_api.get("/v1/streams", headers=headers)
    if is_taken:
        assert answer.status_code == 200
    else:
        assert "forestall keys add" in check_problem(answer, 403, "foreign-page")["detail"]


def test_nobody_reads_a_body_before_its_sender_is_known(stranger, check_problem):
    huge = b"x" * 200_000
    for headers in ({}, WRONG):
        check_problem(stranger.post("/v1/events?stream=s", content=huge, headers=headers), 401, "unauthorized")
        malformed = {**headers, "content-type": "application/json"}
        check_problem(stranger.post("/v1/patterns", content=b"{", headers=malformed), 401, "unauthorized")


def test_what_is_not_there_is_not_told_to_strangers(stranger, check_problem):
    check_problem(stranger.get("/v1/nothing"), 401, "unauthorized")
    check_problem(stranger.put("/v1/streams"), 401, "unauthorized")


def test_a_key_that_is_over_says_so_to_its_holder(http, holder, clock, check_problem):
    client = holder("read", expires_at="2026-01-01T00:01:00Z")
    assert client.get("/v1/streams").status_code == 200
    clock.forward(61)
    answer = client.get("/v1/streams")
    assert "expired" in check_problem(answer, 401, "unauthorized")["detail"]
    assert answer.headers["www-authenticate"] == "Bearer"


def test_without_a_limit_no_header_speaks_of_one(http):
    assert not [name for name in http.get("/v1/streams").headers if name.startswith("ratelimit")]


def test_requests_beyond_the_rate_are_put_off(limited, check_problem):
    answers = [limited.get("/v1/streams") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers] == [
        '"requests";r=2',
        '"requests";r=1',
        '"requests";r=0',
        '"requests";r=0',
    ]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"requests";q=3;w=3000'}
    problem = check_problem(answers[-1], 429, "rate-limited")
    assert int(answers[-1].headers["retry-after"]) == problem["retry_after_s"] > 900
    assert limited.get("/v1/health").status_code == 200


def test_errors_count_and_say_what_is_left(limited):
    answers = [limited.get("/v1/nothing"), limited.post("/v1/patterns", content=b"{"), limited.get("/v1/streams/x")]
    assert all("ratelimit" in answer.headers for answer in answers)
    assert limited.get("/v1/streams").status_code == 429


def test_keys_have_rates_of_their_own(limited):
    tokens = [limited.post("/v1/keys", json={"name": name, "scopes": ["read"]}).json()["token"] for name in "ab"]
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}"}
        assert [limited.get("/v1/streams", headers=headers).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert limited.get("/v1/streams").status_code == 200


def test_guessing_is_put_off_but_whoever_has_a_made_key_is_not(server_url, stores, clock, check_problem):
    settings = settings_for(server_url, api_key="a-key-for-tests")
    with (
        serving(create_app(settings, clock)) as url,
        httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as client,
    ):
        right = {"Authorization": "Bearer a-key-for-tests"}
        token = client.post("/v1/keys", json={"name": "n", "scopes": ["read"]}, headers=right).json()["token"]
        answers = [client.get("/v1/streams", headers=WRONG) for _ in range(30)]
        assert {answer.status_code for answer in answers[:20]} == {401}
        late = [answer for answer in answers[20:] if answer.status_code == 429]
        assert late  # all but those for which a token came back meanwhile
        check_problem(late[0], 429, "rate-limited")
        assert {client.get("/v1/streams", headers=right).status_code for _ in range(3)} <= {200, 429}
        assert client.get("/v1/streams", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_requests_without_a_key_are_no_guesses(stranger, settings):
    assert {stranger.get("/v1/streams").status_code for _ in range(30)} == {401}
    key = settings.api_key.get_secret_value()
    assert stranger.get("/v1/streams", headers={"X-API-Key": key}).status_code == 200

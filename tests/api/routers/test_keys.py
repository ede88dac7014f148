import pytest

pytestmark = pytest.mark.redis

DRAFT = {"name": "shop", "scopes": ["read", "ingest"], "streams": ["orders"], "expires_at": "2026-02-01T00:00:00Z"}


@pytest.fixture
def created(http):
    answer = http.post("/v1/keys", json=DRAFT)
    assert answer.status_code == 201
    return answer.json()


def bearing(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_told_once(http, created):
    token = created.pop("token")
    assert token.startswith(f"fs_{created['id']}_")
    assert created == {
        "id": created["id"],
        "name": "shop",
        "scopes": ["ingest", "read"],
        "streams": ["orders"],
        "created_at": "2026-01-01T00:00:00.000000Z",
        "expires_at": "2026-02-01T00:00:00.000000Z",
        "last_used_at": None,
        "revoked": False,
    }
    shown = http.get("/v1/keys")
    assert shown.json() == {"items": [created], "next": None}
    assert http.get(f"/v1/keys/{created['id']}").json() == created
    assert token.rpartition("_")[2] not in shown.text


def test_its_last_use_is_told(http, created):
    assert http.get("/v1/streams", headers=bearing(created["token"])).status_code == 200
    assert http.get(f"/v1/keys/{created['id']}").json()["last_used_at"] == "2026-01-01T00:00:00.000000Z"


def test_a_revoked_key_is_listed_and_refused(http, created, check_problem):
    place = f"/v1/keys/{created['id']}"
    assert http.delete(place).status_code == 204
    assert http.delete(place).status_code == 204
    assert http.get(place).json()["revoked"] is True
    check_problem(http.get("/v1/streams", headers=bearing(created["token"])), 401, "unauthorized")
    check_problem(http.post(f"{place}/rotate"), 409, "key-unusable")


def test_rotation_with_grace_lets_both_secrets_in_for_a_while(http, created, clock, check_problem):
    rotated = http.post(f"/v1/keys/{created['id']}/rotate", json={"grace_s": 60}).json()
    assert {**rotated, "token": ""} == {**created, "token": ""}
    for token in (created["token"], rotated["token"]):
        assert http.get("/v1/streams", headers=bearing(token)).status_code == 200
    clock.forward(61)
    check_problem(http.get("/v1/streams", headers=bearing(created["token"])), 401, "unauthorized")
    assert http.get("/v1/streams", headers=bearing(rotated["token"])).status_code == 200


def test_rotation_without_a_body_is_at_once(http, created, check_problem):
    assert http.post(f"/v1/keys/{created['id']}/rotate").status_code == 200
    check_problem(http.get("/v1/streams", headers=bearing(created["token"])), 401, "unauthorized")


@pytest.mark.parametrize("body", [{"grace_s": -1}, {"grace_s": 604_801}, {"grace_s": 10**30}, {"scopes": ["admin"]}])
def test_rotation_takes_nothing_else(http, created, check_problem, body):
    check_problem(http.post(f"/v1/keys/{created['id']}/rotate", json=body), 422, "wrong-shape")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"name": "a\nb"}, 400, "key-refused"),
        ({"scopes": []}, 422, "wrong-shape"),
        ({"scopes": ["everything"]}, 422, "wrong-shape"),
        ({"scopes": ["admin"]}, 400, "key-refused"),
        ({"streams": []}, 422, "wrong-shape"),
        ({"streams": ["../orders"]}, 400, "stream-declaration"),
        ({"expires_at": "2025-12-31T00:00:00Z"}, 400, "key-refused"),
        ({"expires_at": "tomorrow"}, 422, "wrong-shape"),
        ({"id": "0123456789abcdef"}, 422, "wrong-shape"),
        ({"token": "fs_x_y"}, 422, "wrong-shape"),
    ],
)
def test_what_cannot_be_a_key_is_refused(http, check_problem, changes, status, code):
    check_problem(http.post("/v1/keys", json={**DRAFT, **changes}), status, code)
    assert http.get("/v1/keys").json() == {"items": [], "next": None}


def test_an_unknown_key_is_a_404(http, check_problem):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        check_problem(http.request(method, f"/v1/keys/nobody{path}"), 404, "unknown-key")

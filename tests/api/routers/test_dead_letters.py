"""Dead letters: chosen, looked up, sent again."""

import pytest

from streams import parse_plain

pytestmark = pytest.mark.redis

STREAM = {"name": "typed", "key": "data.id", "event_types": ["A"], "mapping": {"time": "at"}}


@pytest.fixture
def typed(http):
    """A service with a stream to which most events of this file are strange."""
    assert http.post("/v1/streams", json=STREAM).status_code == 201
    return http


def event(number, **changes):
    return {"id": f"e{number}", "type": "A", "at": number, "data": {"id": "k"}, **changes}


def send(http, *events, stream="typed"):
    return http.post(f"/v1/events?stream={stream}", json=list(events)).json()


def letters(http, query=""):
    return http.get(f"/v1/dead-letters{query}").json()["items"]


def events_in(stores):
    return sum(entry.kind == "events" for shard in range(3) for entry in stores.log.read_range(shard))


def test_a_letter_is_shown_with_its_whole_event(typed, check_problem):
    send(typed, event(1, at="never", data={"id": "k", "text": "x" * 9_000}))
    (listed,) = letters(typed)
    assert len(listed["event"]) == 4_001
    shown = typed.get(f"/v1/dead-letters/{listed['id']}").json()
    assert (len(shown["event"]) > 9_000, shown["whole"], shown["replay"]) == (True, True, None)
    check_problem(typed.get("/v1/dead-letters/nothing"), 404, "unknown-dead-letter")
    check_problem(typed.post("/v1/dead-letters/nothing/replay"), 404, "unknown-dead-letter")


def test_letters_are_chosen_by_code(typed):
    send(typed, event(1, at="never"), event(2), event(3, at="never"))
    codes = [letter["code"] for letter in letters(typed)]
    assert codes == ["event-rejected"] * 2
    for code in set(codes):
        assert len(letters(typed, f"?code={code}")) == codes.count(code)
        assert len(letters(typed, f"?code={code}&stream=typed&limit=1")) == 1
    assert letters(typed, "?code=other") == []


@pytest.fixture
def corrected(monkeypatch):
    """Lets the intake read from here on what it refused before."""

    def correct():
        def parse(value, declaration):
            return parse_plain({**value, "at": 7} if value.get("at") == "never" else value, declaration)

        monkeypatch.setattr("service.intake.posting.parse_plain", parse)

    return correct


def test_a_letter_is_sent_again_and_taken_once(typed, stores, corrected, clock):
    send(typed, event(1, at="never"))
    (letter,) = letters(typed)
    path = f"/v1/dead-letters/{letter['id']}"
    refused = typed.post(f"{path}/replay").json()
    assert (refused["is_accepted"], refused["code"]) == (False, letter["code"])
    assert len(letters(typed)) == 1
    assert typed.get(path).json()["replay"] == refused
    corrected()
    taken = typed.post(f"{path}/replay").json()
    assert (taken["is_accepted"], taken["code"], events_in(stores)) == (True, None, 1)
    clock.forward(9)
    assert typed.post(f"{path}/replay").json() == taken
    assert (events_in(stores), letters(typed)[0]["replay"]) == (1, taken)


def test_many_letters_are_sent_again_the_oldest_first(typed, stores, corrected):
    send(typed, *(event(number, at="never") for number in range(5)))
    ids = [letter["id"] for letter in letters(typed)][::-1]
    corrected()
    first = typed.post("/v1/dead-letters/replay?stream=typed&limit=2").json()
    assert ([one["id"] for one in first["items"]], first["left"]) == (ids[:2], 3)
    rest = typed.post("/v1/dead-letters/replay").json()
    assert ([one["id"] for one in rest["items"]], rest["left"]) == (ids[2:], 0)
    assert typed.post("/v1/dead-letters/replay?code=other").json() == {"items": [], "left": 0}
    assert events_in(stores) == 5


def test_letters_that_are_refused_again_do_not_hold_up_later_ones(typed, clock):
    send(typed, *(event(number, at="never") for number in range(5)))
    ids = [letter["id"] for letter in letters(typed)][::-1]
    sent = []
    for _ in range(4):
        clock.forward(1)
        answer = typed.post("/v1/dead-letters/replay?limit=2").json()
        assert answer["left"] == 5
        sent += [outcome["id"] for outcome in answer["items"]]
    assert sent == [*ids, *ids[:3]]


def test_what_is_not_whole_is_not_sent(typed, check_problem):
    send(typed, event(1, at="never", data={"id": "k", "text": "x" * 40_000}))
    (letter,) = letters(typed)
    assert typed.get(f"/v1/dead-letters/{letter['id']}").json()["whole"] is False
    check_problem(typed.post(f"/v1/dead-letters/{letter['id']}/replay"), 409, "not-replayable")
    assert typed.post("/v1/dead-letters/replay").json() == {"items": [], "left": 0}

"""How an answer is shown to people."""

from service.cli.calling import show


def test_names_that_users_have_chosen_stay_as_they_are(capsys):
    found = {
        "backlog_events": 1,
        "streams": {"paid_orders": {"open_traces": 2}},
        "keys": {"customer_id": "data.customer_id"},
        "template": {"alert_text": {"some_part": 1}},
    }
    show(found, is_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "backlog events: 1",
        "streams:",
        "  paid_orders:",
        "    open traces: 2",
        "keys:",
        "  customer_id: data.customer_id",
        "template:",
        "  alert_text:",
        "    some_part: 1",
    ]


def test_a_text_of_several_lines_has_no_empty_lines_between_them(capsys):
    show({"text": "PATTERN p\nEVENT SEQ(A a, B b)\n  WITHIN 1 h", "name": "p"}, is_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["text: |-", "  PATTERN p", "  EVENT SEQ(A a, B b)", "    WITHIN 1 h", "name: p"]

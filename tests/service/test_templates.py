"""Templates put members of bodies into JSON, and do nothing else."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.delivery.templates import MOST_BODY_BYTES, BodyTooLong, check_template, fill
from service.errors import WebhookRefused

MEMBERS = ("id", "pattern", "why", "bindings", "returns", "version")
BODY = {
    "id": "a1",
    "pattern": "p",
    "why": 'said "no"\n{{id}}',
    "version": 3,
    "bindings": {"q": ["e1", "e2"], "c-d": ["e3"]},
    "returns": {"price": 250.5, "ok": True, "none": None},
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def filled(template, body=BODY):
    check_template(template, MEMBERS)
    return orjson.loads(fill(template, body))


def test_a_string_that_is_one_place_becomes_the_member_itself():
    template = {"v": "{{version}}", "b": "{{ bindings }}", "p": "{{returns.price}}", "n": "{{returns.none}}", "x": 5}
    assert filled(template) == {"v": 3, "b": BODY["bindings"], "p": 250.5, "n": None, "x": 5}


def test_elsewhere_members_are_put_in_as_text():
    assert filled({"t": "{{pattern}} v{{version}}: {{returns.ok}} {{returns.none}}|{{bindings.q}}"}) == {
        "t": 'p v3: true |["e1","e2"]'
    }


def test_lists_are_entered_by_number_and_names_may_have_hyphens():
    assert filled({"a": "{{bindings.q.1}}", "b": "{{bindings.c-d.0}}", "c": "{{bindings.q.9}}"}) == {
        "a": "e2",
        "b": "e3",
        "c": None,
    }


def test_what_is_put_in_is_not_read_again():
    assert filled({"a": "why: {{why}}"}) == {"a": 'why: said "no"\n{{id}}'}


def test_a_chat_message_can_be_made():
    template = {
        "text": "{{pattern}}",
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "*{{pattern}}* {{why}}"}}],
    }
    assert filled(template)["blocks"][0]["text"]["text"] == f"*p* {BODY['why']}"


@pytest.mark.parametrize(
    "text",
    [
        "{{id.__class__}}",
        "{{id.__class__.__mro__}}",
        "{{bindings.keys}}",
        "{{returns.items.0}}",
        "{{bindings.__len__}}",
        "{{version.real}}",
        "{{bindings.q.-1}}",
    ],
)
def test_paths_lead_to_members_and_nowhere_else(text):
    assert filled({"a": text}) == {"a": None}


@pytest.mark.parametrize(
    "text",
    [
        "{{7*7}}",
        "{{id()}}",
        "{{id|upper}}",
        "{{ __import__('os').system('id') }}",
        "{{id[0]}}",
        "{{}}",
        "{{id",
        "id}}",
        "{{id.}}",
        "{{.id}}",
        "{{#each bindings}}{{/each}}",
        "{{'a'}}",
    ],
)
def test_whatever_looks_like_code_is_refused(text):
    with pytest.raises(WebhookRefused, match="malformed placeholder"):
        check_template({"a": text}, MEMBERS)


@pytest.mark.parametrize("text", ["{% for x in y %}", "${id}", "#{id}", "<%= id %>", "{id}", "{0.__class__}", "%(id)s"])
def test_other_languages_of_templates_are_plain_text(text):
    assert filled({"a": text}) == {"a": text}


def test_what_no_body_has_is_refused():
    with pytest.raises(WebhookRefused, match="bodies do not have __class__, secret; their members are"):
        check_template({"a": "{{secret}} {{__class__}} {{id}}"}, MEMBERS)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"a": "x" * 17_000}, "16384 are allowed"),
        ({"a": ["{{id}}"] * 201}, "201 placeholders"),
        ({"{{id}}": "a"}, "which is only filled in values"),
        ({"a": 2**70}, "cannot be sent"),
        ({"a": "\ud800"}, "cannot be sent"),
    ],
)
def test_bounds_of_a_template(template, message):
    with pytest.raises(WebhookRefused, match=message):
        check_template(template, MEMBERS)


def test_a_deep_template_is_refused():
    template: dict[str, object] = {"a": "x"}
    for _ in range(100_000):
        template = {"a": template}
    with pytest.raises(WebhookRefused, match="levels deep"):
        check_template(template, MEMBERS)


@pytest.mark.parametrize("text", ["{{why}}", "{{why}}-", "{{returns}}"])
def test_a_body_that_would_be_huge_is_given_up_while_it_is_made(text):
    body = {**BODY, "why": "x" * 100_000, "returns": {"x": "y" * 100_000}}
    with pytest.raises(BodyTooLong, match=str(MOST_BODY_BYTES)):
        fill({"a": [text] * 200}, body)


@given(st.dictionaries(st.sampled_from(MEMBERS), json_values), st.lists(st.sampled_from(MEMBERS), max_size=4))
def test_the_result_is_json_whatever_the_body_holds(body, names):
    template = {"whole": [f"{{{{{name}}}}}" for name in names], "text": " \"' ".join(f"{{{{{n}.0.x}}}}" for n in names)}
    found = orjson.loads(fill(template, body))
    assert found.keys() == {"whole", "text"}
    assert found["whole"] == [body.get(name) for name in names]

"""The description of the API: what people and tools find in it beside the operations themselves."""

import re
from collections import Counter
from importlib.resources import files

import jsonschema_rs
import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing.exceptions import PointerToNowhere

from api.problem_codes import all_codes
from tests.builders.api import unserved_app
from tests.builders.problem_page import problem_page

READING = ("get", "head")


@pytest.fixture(scope="module")
def document():
    return unserved_app().openapi()


def operations(document):
    return [(verb, path, one) for path, verbs in document["paths"].items() for verb, one in verbs.items()]


def test_it_is_valid_and_a_broken_reference_is_found(document):
    assert document["openapi"] == "3.1.0"
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    broken = {**document, "components": {**document["components"], "schemas": {}}}
    with pytest.raises(PointerToNowhere):
        list(OpenAPIV31SpecValidator(broken).iter_errors())


def test_receivers_find_the_bodies_of_webhooks(document):
    kinds = set(document["components"]["schemas"]["NewWebhook"]["properties"]["kinds"]["items"]["enum"])
    bodies = {
        kind: message["post"]["requestBody"]["content"]["application/json"]["schema"]
        for kind, message in document["webhooks"].items()
    }
    assert bodies.keys() == kinds
    assert {kind for kind, body in bodies.items() if "$ref" not in body} == {"join.suspended", "aggregate.suspended"}


def test_examples_of_schemas_are_of_their_form(document):
    schemas = document["components"]["schemas"]
    examples = [(name, form, example) for name, form in schemas.items() for example in form.get("examples", ())]
    assert len(examples) > 20
    for name, form, example in examples:
        assert jsonschema_rs.is_valid({**form, "components": document["components"]}, example), name


def test_members_that_are_times_have_the_format(document):
    plain = [
        (name, member)
        for name, form in document["components"]["schemas"].items()
        for member, kind in form.get("properties", {}).items()
        if member.endswith("_at") and "date-time" not in str(kind)
    ]
    assert plain == []


def test_ids_are_names_and_nobody_elses(document):
    ids = [one["operationId"] for *_, one in operations(document)]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert all(name.isidentifier() and "v1" not in name for name in ids)


def test_every_tag_is_described_and_used(document):
    used = {tag for *_, one in operations(document) for tag in one["tags"]}
    described = {tag["name"]: tag["description"] for tag in document["tags"]}
    assert used == set(described)
    assert all(text.endswith(".") for text in described.values())


def test_it_says_where_and_with_which_key(document):
    assert [server["url"] for server in document["servers"]] == ["/"]
    schemes = document["components"]["securitySchemes"]
    assert sorted((scheme["type"], scheme.get("scheme"), scheme.get("name")) for scheme in schemes.values()) == [
        ("apiKey", None, "X-API-Key"),
        ("http", "bearer", None),
    ]
    for verb, path, one in operations(document):
        if path in ("/v1/health", "/v1/ready"):
            assert one["security"] == []
        else:
            assert {name for choice in one["security"] for name in choice} == set(schemes), (verb, path)


def test_every_problem_is_a_problem_document_with_an_example(document):
    assert "default" not in {status for *_, one in operations(document) for status in one["responses"]}
    for verb, path, one in operations(document):
        for status, answer in one["responses"].items():
            if status >= "4":
                content = answer["content"]["application/problem+json"]
                assert set(answer["content"]) == {"application/problem+json"}, (verb, path, status)
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
                assert str(content["example"]["status"]) == status
    assert document["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail", "code"]


def test_problems_are_those_that_an_operation_can_have(document):
    for verb, path, one in operations(document):
        if path in ("/v1/health", "/v1/ready"):
            continue
        statuses = set(one["responses"])
        assert statuses >= {"401", "403", "422", "429", "503"}, (verb, path)
        assert ("507" in statuses) == (verb not in READING), (verb, path)
        assert ("415" in statuses) == ("requestBody" in one), (verb, path)
        conditional = any(parameter["name"] == "if-match" for parameter in one.get("parameters", []))
        assert ("412" in statuses) == conditional, (verb, path)


def test_the_table_of_codes_has_those_of_the_classes_of_errors_with_their_status():
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", problem_page(), re.MULTILINE)
    of_http = {"internal", "method-not-allowed"}
    assert all_codes() == {code: int(status) for code, status in rows if code not in of_http}


def test_problems_have_the_codes_of_their_operation(document):
    paths = document["paths"]
    assert paths["/v1/patterns"]["get"]["responses"]["404"]["x-codes"] == [
        "not-found",
        "unknown-operator",
        "unknown-pattern",
        "unknown-stream",
        "unknown-table",
    ]
    assert paths["/v1/patterns"]["post"]["responses"]["409"]["x-codes"][-1] == "unsatisfiable-pattern"
    for verb, path, one in operations(document):
        for status, answer in one["responses"].items():
            if status >= "4" and path not in ("/v1/health", "/v1/ready"):
                example = answer["content"]["application/problem+json"]["example"]
                assert example["code"] in answer["x-codes"], (verb, path, status)


def test_no_parameter_is_null_and_answers_have_their_headers(document):
    parameters = [one for *_, operation in operations(document) for one in operation.get("parameters", ())]
    assert [one["name"] for one in parameters if "null" in str(one["schema"])] == []
    for *_, one in operations(document):
        for status, answer in one["responses"].items():
            assert status == "304" or "X-Request-Id" in answer["headers"]
    assert "ETag" in document["paths"]["/v1/streams/{stream}"]["get"]["responses"]["200"]["headers"]
    assert "Idempotency-Replayed" in document["paths"]["/v1/patterns"]["post"]["responses"]["201"]["headers"]


def test_what_asks_for_another_try_or_a_key_says_how(document):
    named = {"401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After", "507": "Retry-After"}
    for *_, one in operations(document):
        for status, header in named.items():
            if status in one["responses"]:
                assert one["responses"][status]["headers"][header]["required"]


def test_what_is_created_has_an_address(document):
    without = {
        (verb, path)
        for verb, path, one in operations(document)
        if "201" in one["responses"] and "Location" not in one["responses"]["201"].get("headers", {})
    }
    assert without == {  # what is PUT is where it was put, and notes are part of their alert
        ("put", "/v1/patterns/{name}"),
        ("put", "/v1/joins/{name}"),
        ("put", "/v1/aggregates/{name}"),
        ("put", "/v1/taps/{name}"),
        ("put", "/v1/workflows/{name}"),
        ("put", "/v1/tables/{name}"),
        ("put", "/v1/calendars/{name}"),
        ("put", "/v1/streams/{stream}/event-types/{event_type}"),
        ("post", "/v1/alerts/{alert_id}/notes"),
    }


def test_a_template_of_a_test_message_has_the_same_members_for_every_receiver(document):
    for path in ("/v1/webhooks/{webhook_id}/test", "/v1/sinks/{sink_id}/test"):
        assert "``type``, ``id``, ``webhook`` and ``sent_at``" in document["paths"][path]["post"]["description"]


def test_every_answer_says_what_it_means(document):
    said = {
        (verb, path, status): answer["description"]
        for verb, path, one in operations(document)
        for status, answer in one["responses"].items()
    }
    assert [place for place, text in said.items() if text == "Successful Response" or not text.endswith(".")] == []


def test_no_outcome_is_of_an_operation_that_is_gone(document):
    table = orjson.loads(files("api").joinpath("outcomes.json").read_bytes())
    assert set(table) <= {one["operationId"] for *_, one in operations(document)}


def test_no_example_is_of_a_model_that_is_gone(document):
    table = orjson.loads(files("api").joinpath("examples.json").read_bytes())
    assert set(table) <= set(document["components"]["schemas"])


def test_bodies_and_main_answers_have_examples(document):
    schemas = document["components"]["schemas"]
    lacking = []
    for verb, path, one in operations(document):
        for status, answer in one["responses"].items():
            content = answer.get("content", {}).get("application/json", {}) if status < "3" else {}
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if name and not schemas[name].get("examples") and "example" not in content:
                lacking.append((verb, path, name))
    assert lacking == []


def test_examples_of_answers_are_of_the_described_form(document):
    for verb, path, one in operations(document):
        for status, answer in one["responses"].items():
            content = answer.get("content", {}).get("application/json", {})
            if status < "3" and "example" in content:
                form = {**content["schema"], "components": document["components"]}
                assert jsonschema_rs.is_valid(form, content["example"]), (verb, path, status)


# Members of declarations keep the names that documents give them, and RFC 9457 and probes of health have theirs.
SEVERAL = {
    "by": "the columns of a group in declarations; elsewhere a person, or the key of a punctuation",
    "constraints": "of a pattern whether they apply to it; elsewhere constraints in words",
    "data": "of a mapping the path of the attributes; of an event the attributes",
    "duplicates": "of a stream what happens to them; of an intake their number",
    "id": "of a mapping its path, or several; elsewhere an id",
    "incident": "of a pattern the rules; of an alert the id of its incident",
    "key": "of a stream or table where the key is; of a result the key",
    "keys": "of a stream its further keys; of a punctuation the finished keys",
    "status": "of a problem the HTTP status; of health `ok`",
    "version": "of health that of the release; elsewhere that of a resource",
}


def kind_of(schemas, form):
    """The JSON type of a form; numbers are of one type, and null is none."""
    if "$ref" in form:
        return kind_of(schemas, schemas[form["$ref"].rpartition("/")[2]])
    choices = form.get("anyOf") or form.get("oneOf") or form.get("allOf")
    if choices:
        return "|".join(sorted({kind_of(schemas, one) for one in choices} - {"null"}))
    if "enum" in form or "const" in form:
        return "boolean" if isinstance(form.get("const"), bool) else "string"
    return {"integer": "number"}.get(form.get("type"), form.get("type", "any"))


def reached(document, forms):
    """The names of the schemas that some forms refer to, directly or through others."""
    found: set[str] = set()
    left = [forms]
    while left:
        form = left.pop()
        for name in set(re.findall(r'"#/components/schemas/(\w+)"', orjson.dumps(form).decode())) - found:
            found.add(name)
            left.append(document["components"]["schemas"][name])
    return found


def kinds_by_member(document, names):
    schemas = document["components"]["schemas"]
    kinds: dict[str, set[str]] = {}
    for name in names:
        for member, described in schemas[name].get("properties", {}).items():
            kinds.setdefault(member, set()).add(kind_of(schemas, described))
    return kinds


def test_a_member_name_has_one_type(document):
    answers = reached(document, [one["responses"] for *_, one in operations(document)])
    kinds = kinds_by_member(document, answers)
    assert {member for member, found in kinds.items() if len(found) > 1} <= SEVERAL.keys()
    unions = {member: found for member, found in kinds.items() if any("|" in one for one in found)}
    assert unions == {"id": {"string", "array|string"}, "key": {"string", "object|string", "array"}}


def test_requests_have_the_types_of_answers_or_short_forms_of_them(document):
    asked = kinds_by_member(document, reached(document, [one.get("requestBody") for *_, one in operations(document)]))
    answered = kinds_by_member(document, reached(document, [one["responses"] for *_, one in operations(document)]))
    other = {
        member
        for member, found in asked.items()
        for kind in found
        if member in answered and not answered[member] & set(kind.split("|"))
    }
    assert other - SEVERAL.keys() == {"against", "traces"}  # asked: one pattern, answered: a list; and transactions


def test_durations_have_their_unit_and_times_their_format(document):
    schemas = document["components"]["schemas"]
    answers = reached(document, [one["responses"] for *_, one in operations(document)])
    numbers = {
        member
        for name in answers
        for member, form in schemas[name].get("properties", {}).items()
        if kind_of(schemas, form) == "number"
    }
    assert not {member for member in numbers if re.search(r"(_ms|second|timeout|duration|lag|took)$", member)}
    words = r"(^|_)(at|since|until|watermark|expires)$"
    times = {
        (name, member)
        for name in answers
        for member, form in schemas[name].get("properties", {}).items()
        if re.search(words, member) and "date-time" not in str(form)
    }
    assert times == set()

"""The demo's receiver takes what is signed and nothing else."""

import httpx
import orjson

from service.delivery.attempts import Message, signed_headers
from service.delivery.receiver import receiver
from streams import SystemClock
from tests.builders.waiting import PATIENCE_S

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def message(alert, secret=SECRET):
    body, now_us = orjson.dumps(alert), SystemClock().now_us()
    return Message(id=alert["id"], kind="alert", url="", secrets=[secret], body=body, sent_us=now_us)


def send(url, sent):
    return httpx.post(
        url, content=sent.body, headers=signed_headers(sent), verify=False, timeout=PATIENCE_S
    ).status_code


def test_signed_alerts_are_taken_once_each():
    told: list[dict] = []
    with receiver(told.append) as (url, received):
        received.secret = SECRET
        statuses = [send(url, message({"id": name})) for name in ("a1", "a2", "a1")]
    assert statuses == [204, 204, 204]
    assert (list(received.alerts), received.deliveries) == (["a1", "a2"], 3)
    assert told == [{"id": "a1"}, {"id": "a2"}]


def test_a_wrong_signature_is_refused():
    with receiver() as (url, received):
        received.secret = SECRET
        other = "whsec_" + "A" * 32
        statuses = [
            send(url, message({"id": "a1"}, other)),
            httpx.post(url, content=b"{}", verify=False, timeout=PATIENCE_S).status_code,
        ]
    assert statuses == [401, 401]
    assert (received.alerts, received.refused) == ({}, 2)

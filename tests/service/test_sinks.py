"""Sinks beside webhooks against real counterparts: files read by other libraries, a mail server, Kafka brokers."""

import asyncio
import random
import socket
import ssl
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import duckdb
import orjson
import pyarrow.parquet as pq
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from service import WebhookDraft, WebhookLibrary
from service.delivery import digests
from service.delivery.deliverer import Deliverer
from service.delivery.templates import fill
from service.delivery.transports import mail
from service.delivery.transports.sending import Item
from service.errors import UnknownSink, UnknownWebhook, WebhookRefused
from service.settings import WebhookSettings
from service.stores import DeliveryOutcome
from tests.builders.certificates import certificate
from tests.builders.delivering import deliver_due
from tests.builders.feeds import mock_brokers
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis
KINDS = ("alert", "deviation", "ending", "derived")
MAIL = {"kind": "email", "sender": "forestall@example.org", "recipients": ["ann@example.org", "bob@example.org"]}


@pytest.fixture
def hooks(tmp_path):
    return WebhookSettings(
        allow_private_targets=True, attempts=3, timeout_s=5, folder=tmp_path / "files", poll_interval_s=0.05
    )


@pytest.fixture
def library(stores, settings, clock, hooks):
    return WebhookLibrary(stores, settings.model_copy(update={"webhooks": hooks}), clock)


def write(stores, clock, *results, epoch=1):
    """Write results, given by kind, id and members."""
    webhooks = stores.webhooks.all()
    for kind, name, members in results:
        body = orjson.dumps({"id": name, "stream": "s", "pattern": "p", "key": "k", **members})
        row = sink_row(kind=kind, stream="s", id=name, body=body)
        if kind == "alert":
            stores.alerts.append([row], webhooks, clock.time_us, severities={"p": "high"})
        else:
            stores.results[kind].append([row], epoch, webhooks, clock.time_us)


def alert(name, day=1, **members):
    detected = {"type": "alert", "detected_at": f"2026-03-0{day}T10:00:00.5Z", "returns": {"v": 7}}
    return "alert", name, {**detected, **members}


def deliver(stores, clock, hooks):
    worker = Deliverer(stores, hooks, clock, random.Random(7))
    while asyncio.run(deliver_due(worker)) or asyncio.run(deliver_due(worker)):  # the first one closes digests
        pass


def closed_to_private(stores, settings, clock):
    return WebhookLibrary(stores, settings.model_copy(update={"webhooks": WebhookSettings()}), clock)


def closed(stores, clock, webhook):
    digests.close_digest(stores, webhook, clock.time_us)


class TestParquet:
    @pytest.fixture
    def sink(self, library):
        return library.register(WebhookDraft(sink={"kind": "parquet", "path": "shop/found"}, kinds=KINDS))

    def test_what_is_delivered_is_read_back_by_day_and_kind(self, stores, clock, hooks, sink):
        time = {"time": "2026-03-02T11:00:00Z"}
        write(stores, clock, alert("a1"), alert("a2", 2), alert("a3", 2), ("ending", "t1", {**time, "reason": "gone"}))
        write(stores, clock, ("deviation", "d1", {"type": "deviation", **time}), ("correction", "c1", time))
        write(stores, clock, ("derived", "x1", {"type": "Picked", **time, "data": {"n": [1, None]}}))
        deliver(stores, clock, hooks)
        assert not hooks.folder.exists()
        clock.forward(60)
        deliver(stores, clock, hooks)
        root = hooks.folder / "shop/found"
        files = sorted(path.relative_to(root).parent.as_posix() for path in root.rglob("*") if path.is_file())
        assert files == [
            "alert/2026-03-01", "alert/2026-03-02", "derived/2026-03-02", "deviation/2026-03-02", "ending/2026-03-02",
        ]  # fmt: skip
        found = duckdb.execute(
            "SELECT id, kind, severity, epoch_us(time), body->>'$.returns.v' "
            f"FROM read_parquet('{root}/*/*/*.parquet') ORDER BY id"
        ).fetchall()
        assert [one[:2] for one in found] == [
            ("a1", "alert"), ("a2", "alert"), ("a3", "alert"), ("d1", "deviation"), ("t1", "ending"), ("x1", "derived"),
        ]  # fmt: skip
        assert found[0][2:] == ("high", 1_772_359_200_500_000, "7")
        table = pq.read_table(root / "derived")
        assert orjson.loads(table.column("body")[0].as_py())["data"] == {"n": [1, None]}
        assert table.schema.names == ["id", "kind", "stream", "pattern", "version", "severity", "key", "time", "body"]
        assert stores.webhooks.stats(sink.id).delivered == 1

    def test_a_repetition_writes_the_same_files(self, stores, clock, hooks, sink, monkeypatch):
        monkeypatch.setattr(digests, "BULK_RESULTS", 2)
        write(stores, clock, *(alert(f"a{n}") for n in range(5)))
        clock.forward(60)
        claimed = []
        for _ in range(4):  # one delivery per poll, each with two results at most
            claimed += stores.deliveries.claim(clock.time_us, 1, 9, partial(closed, stores, clock))
            clock.forward(1)
        assert len({one.id for one in claimed}) == 3
        deliver(stores, clock, hooks)
        files = sorted(hooks.folder.rglob("*.parquet"))
        assert sorted(pq.read_table(files).column("id").to_pylist()) == [f"a{n}" for n in range(5)]
        for one in claimed:
            stores.deliveries.send_again(sink.id, [one], clock.time_us)
        deliver(stores, clock, hooks)
        assert sorted(hooks.folder.rglob("*.parquet")) == files
        assert list(hooks.folder.rglob(".*")) == []

    def test_a_folder_that_cannot_be_written_is_tried_again(self, stores, clock, hooks, sink):
        hooks.folder.mkdir()
        (hooks.folder / "shop").write_text("in the way")
        write(stores, clock, alert("a1"))
        clock.forward(60)
        deliver(stores, clock, hooks)
        stats = stores.webhooks.stats(sink.id)
        assert (stats.delivered, stats.failed_attempts) == (0, 1)
        assert "cannot be written" in stats.last_error
        (hooks.folder / "shop").unlink()
        clock.forward(60)
        deliver(stores, clock, hooks)
        assert len(list(hooks.folder.rglob("*.parquet"))) == 1

    @pytest.mark.parametrize("path", ["../out", "/tmp/x", "a/../../b", "", ".", "a//b", "link/x", "a\\b", "a\x00"])
    def test_no_path_leads_out_of_the_folder(self, library, hooks, path, tmp_path):
        hooks.folder.mkdir()
        (hooks.folder / "link").symlink_to(tmp_path)
        with pytest.raises(WebhookRefused) as refusal:
            library.register(WebhookDraft(sink={"kind": "parquet", "path": path}))
        assert refusal.value.details["field"] == "path"

    def test_without_a_folder_nothing_is_written(self, stores, settings, clock):
        with pytest.raises(WebhookRefused, match="FORESTALL_WEBHOOKS__FOLDER is not set"):
            WebhookLibrary(stores, settings, clock).register(WebhookDraft(sink={"kind": "parquet", "path": "a"}))

    def test_a_test_message_leaves_no_file(self, library, hooks, sink):
        assert asyncio.run(library.ping(sink)).error is None
        assert [path for path in hooks.folder.rglob("*") if path.is_file()] == []

    @pytest.mark.parametrize("members", [{"template": {"a": "b"}}, {"digest": {"every": "1 min", "at_once": "high"}}])
    def test_templates_and_results_at_once_are_refused(self, library, members):
        with pytest.raises(WebhookRefused):
            library.register(WebhookDraft(sink={"kind": "parquet", "path": "a"}, **members))


@dataclass
class Mailbox:
    """Takes mail, refuses one recipient, and fails while ``is_away``."""

    received: list = field(default_factory=list)
    is_away: bool = False

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - named by the server
        if address.startswith("bob"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - as above
        if self.is_away:
            return "451 try later"
        self.received.append(envelope)
        return "250 OK"


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Context of a server and of its clients, with a certificate for ``localhost``."""
    cert, key = certificate(tmp_path_factory.mktemp("tls"), "localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=cert)


@pytest.fixture(params=["tls", "starttls"])
def mailbox(request, tls, monkeypatch):
    """A mail server that demands a login; yields its mailbox and the members of its sink."""
    server, client = tls
    monkeypatch.setattr(mail, "tls_context", lambda: client)
    is_direct = request.param == "tls"
    box = Mailbox()

    def login(server, session, envelope, mechanism, data):
        is_right = (data.login, data.password) == (b"forestall", b"secret word")
        return AuthResult(success=is_right, handled=False)

    class Mails(Controller):
        def factory(self):
            return SMTP(
                self.handler,
                hostname="localhost",
                tls_context=None if is_direct else server,
                require_starttls=not is_direct,
                auth_required=True,
                auth_require_tls=not is_direct,
                authenticator=login,
            )

    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    controller = Mails(box, hostname="127.0.0.1", port=port, ssl_context=server if is_direct else None)
    controller.start()
    try:
        yield box, {**MAIL, "host": "localhost", "port": port, "security": request.param, "user": "forestall"}
    finally:
        controller.stop(no_assert=True)


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # the connection has it
class TestMail:
    def test_results_are_mailed_with_one_id_over_all_attempts(self, stores, clock, hooks, library, mailbox):
        box, members = mailbox
        sink = library.register(WebhookDraft(sink=members, secret="secret word"))
        box.is_away = True
        write(stores, clock, alert("a1", why="e1 is A a", key="k\r\nBcc: eve@example.org"))
        deliver(stores, clock, hooks)
        stats = stores.webhooks.stats(sink.id)
        assert (stats.failed_attempts, stats.last_status) == (1, 451)
        assert "try later" in stats.last_error
        box.is_away = False
        clock.forward(60)
        deliver(stores, clock, hooks)
        (envelope,) = box.received
        text = envelope.content.decode()
        assert envelope.rcpt_tos == ["ann@example.org"]  # the server refuses the other one
        assert "Subject: Forestall alert: high p k Bcc: eve@example.org" in text
        assert "Message-ID: <a1@example.org>" in text
        assert "\nBcc:" not in text
        assert "e1 is A a" in text

    def test_templates_make_subject_and_text(self, stores, clock, hooks, library, mailbox):
        box, members = mailbox
        template = {"subject": "{{severity}}: {{pattern}}", "text": "{{returns.v}} é"}
        library.register(WebhookDraft(sink=members, secret="secret word", template=template))
        write(stores, clock, alert("a1"))
        deliver(stores, clock, hooks)
        assert "Subject: high: p" in box.received[0].content.decode()

    @pytest.mark.parametrize(
        ("template", "subject", "text"),
        [
            ({"subject": "{{why}}", "text": "{{why}}"}, "Forestall alert: p k", ""),
            ({"subject": "{{version}}", "text": "{{returns}}"}, "0", '{"v":7,"is_new":true}'),
        ],
    )
    def test_a_member_by_itself_is_no_text_of_python(self, template, subject, text):
        body = {"type": "alert", "id": "a1", "pattern": "p", "key": "k", "version": 0}
        body["returns"] = {"v": 7, "is_new": True}
        item = Item(id="a1", sink="s", body=orjson.dumps(body), filled=fill(template, body), secret="")
        message = mail.MailSink(host="h", sender="f@example.org", recipients=["ann@example.org"])._message(item)
        assert (message["Subject"], message.get_content().strip()) == (subject, text)

    def test_a_digest_is_one_mail(self, stores, clock, hooks, library, mailbox):
        box, members = mailbox
        library.register(WebhookDraft(sink=members, secret="secret word", digest={"every": "10 min"}))
        write(stores, clock, alert("a1"), alert("a2"))
        clock.forward(600)
        deliver(stores, clock, hooks)
        assert "Subject: Forestall: 2 alert" in box.received[0].content.decode()

    def test_a_wrong_password_is_a_failed_attempt(self, library, mailbox):
        _, members = mailbox
        reply = asyncio.run(library.ping(library.register(WebhookDraft(sink=members, secret="wrong"))))
        assert reply.status == 535

    def test_a_certificate_of_another_host_is_not_accepted(self, library, mailbox, monkeypatch):
        _, members = mailbox
        sink = library.register(WebhookDraft(sink={**members, "host": "127.0.0.1"}, secret="secret word"))
        assert "certificate verify failed" in asyncio.run(library.ping(sink)).error

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"recipients": []}, "recipients"),
            ({"recipients": ["ann@example.org\r\nBcc: x@example.org"]}, "recipients"),
            ({"recipients": ["nobody"]}, "recipients"),
            ({"sender": "a b@example.org"}, "sender"),
            ({"host": "smtp/evil"}, "host"),
            ({"port": 0}, "host"),
        ],
    )
    def test_addresses_are_checked(self, library, changes, field):
        with pytest.raises(WebhookRefused) as refusal:
            library.register(WebhookDraft(sink={**MAIL, "host": "localhost", **changes}))
        assert refusal.value.details["field"] == field

    def test_private_servers_are_refused(self, stores, settings, clock):
        with pytest.raises(WebhookRefused, match="private or reserved"):
            closed_to_private(stores, settings, clock).register(WebhookDraft(sink={**MAIL, "host": "127.0.0.1"}))

    def test_a_template_has_no_other_parts(self, library):
        with pytest.raises(WebhookRefused, match="subject"):
            library.register(WebhookDraft(sink={**MAIL, "host": "localhost"}, template={"body": "x"}))


@pytest.fixture(scope="module")
def brokers():
    with mock_brokers() as brokers:
        yield brokers


class TestKafka:
    def consumed(self, brokers, topic, count):
        consumer = Consumer({"bootstrap.servers": brokers.address, "group.id": topic})
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(4)])
        found: list[Any] = []
        while len(found) < count:
            found += [one for one in consumer.consume(count - len(found), timeout=20) if one.error() is None]
        found += consumer.consume(1, timeout=0.5)
        consumer.close()
        return [((one.key() or b"").decode(), orjson.loads(one.value() or b"")) for one in found]

    def test_records_have_the_id_as_key(self, stores, clock, hooks, library, brokers):
        sink = library.register(WebhookDraft(sink={"kind": "kafka", "servers": brokers.address, "topic": "alerts"}))
        write(stores, clock, *(alert(f"a{n}") for n in range(5)))
        deliver(stores, clock, hooks)
        found = self.consumed(brokers, "alerts", 5)
        assert sorted(key for key, _ in found) == [f"a{n}" for n in range(5)]
        assert all(value["id"] == key and value["severity"] == "high" for key, value in found)
        assert stores.webhooks.stats(sink.id).delivered == 5

    def test_templates_are_filled(self, stores, clock, hooks, library, brokers):
        draft = WebhookDraft(
            sink={"kind": "kafka", "servers": brokers.address, "topic": "short"}, template={"p": "{{pattern}}"}
        )
        library.register(draft)
        write(stores, clock, alert("a1"))
        deliver(stores, clock, hooks)
        assert self.consumed(brokers, "short", 1) == [("a1", {"p": "p"})]

    def test_brokers_that_are_away_are_a_failed_attempt(self, library, hooks):
        hooks.__dict__["timeout_s"] = 0.5
        sink = library.register(WebhookDraft(sink={"kind": "kafka", "servers": "127.0.0.1:1", "topic": "alerts"}))
        assert "did not take it" in asyncio.run(library.ping(sink)).error

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"servers": "broker"}, "servers"),
            ({"servers": "a:9092,file:///x:1"}, "servers"),
            ({"topic": "a b"}, "topic"),
            ({"options": {"ssl.ca.location": "/etc/passwd"}}, "options"),
            ({"options": {"plugin.library.paths": "x"}}, "options"),
        ],
    )
    def test_names_and_options_are_checked(self, library, changes, field):
        members = {"kind": "kafka", "servers": "127.0.0.1:9092", "topic": "t", **changes}
        with pytest.raises(WebhookRefused) as refusal:
            library.register(WebhookDraft(sink=members))
        assert refusal.value.details["field"] == field

    def test_private_brokers_are_refused_also_those_that_brokers_name(self, stores, settings, clock, brokers, hooks):
        members = {"kind": "kafka", "servers": brokers.address, "topic": "t"}
        with pytest.raises(WebhookRefused, match="private or reserved"):
            closed_to_private(stores, settings, clock).register(WebhookDraft(sink=members))
        port = brokers.address.rpartition(":")[2]
        rules = hooks.model_copy(update={"allow_private_targets": False, "allowed_targets": "localhost"})
        partly = WebhookLibrary(stores, settings.model_copy(update={"webhooks": rules}), clock)
        sink = partly.register(WebhookDraft(sink={**members, "servers": f"localhost:{port}"}))
        assert "private or reserved" in (asyncio.run(partly.ping(sink)).error or "")  # they name 127.0.0.1


def test_sinks_are_no_webhooks(stores, library):
    hook = library.register(WebhookDraft(url="http://127.0.0.1:1/"))
    sink = library.register(WebhookDraft(sink={"kind": "parquet", "path": "a"}))
    assert stores.webhooks.of_kind(hook.id, is_sink=False) == hook
    assert stores.webhooks.of_kind(sink.id, is_sink=True) == sink
    with pytest.raises(UnknownSink):
        stores.webhooks.of_kind(hook.id, is_sink=True)
    with pytest.raises(UnknownWebhook):
        stores.webhooks.of_kind(sink.id, is_sink=False)


def test_members_change_and_are_checked(stores, library):
    sink = library.register(WebhookDraft(sink={"kind": "parquet", "path": "a"}))
    changed = library.change(sink.id, {"sink": {"path": "b/c"}, "digest": None})
    assert (changed.url, changed.digest.every) == ("parquet:b/c", "1 min")
    with pytest.raises(WebhookRefused):
        library.change(sink.id, {"sink": {"path": "../b"}})
    with pytest.raises(WebhookRefused, match="has no member 'topic'; it has path"):
        library.change(sink.id, {"sink": {"topic": "t"}})


@pytest.mark.parametrize("changes", [{"host": "127.0.0.2"}, {"port": 25}, {"security": "starttls"}])
def test_another_server_gets_no_password_that_is_not_sent_again(library, changes):
    sink = library.register(WebhookDraft(sink={**MAIL, "host": "127.0.0.1"}, secret="secret word"))
    with pytest.raises(WebhookRefused, match="sent to another server") as refusal:
        library.change(sink.id, {"sink": changes})
    assert refusal.value.details["field"] == "secret"
    assert library.change(sink.id, {"sink": {"recipients": ["c@example.org"]}}).secret == "secret word"
    assert library.change(sink.id, {"sink": changes, "secret": "other"}).secret == "other"


def test_an_item_that_is_sent_by_hand_leaves_its_digest(stores, clock, hooks, library):
    sink = library.register(WebhookDraft(sink={"kind": "parquet", "path": "a"}))
    write(stores, clock, alert("a1"), alert("a2"))
    stores.deliveries.claim(clock.time_us, 1, 9)
    waiting = stores.deliveries.delivery(sink.id, f"{sink.id}:+a1")
    assert stores.deliveries.send_again(sink.id, [waiting], clock.time_us) == 1
    (claimed,) = stores.deliveries.claim(clock.time_us, 10**9, 9)
    clock.forward(60)
    digests.close_digest(stores, sink.id, clock.time_us)
    stores.deliveries.settle(claimed, DeliveryOutcome(verdict="delivered", at_us=clock.time_us))
    (digest,) = stores.deliveries.claim(clock.time_us, 10**9, 9)
    assert [one["id"] for one in orjson.loads(digest.body)["results"]] == ["a2"]

"""Where webhooks may go: public addresses, and what the settings list."""

import asyncio
import random
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpcore
import pytest

from service import WebhookDraft, WebhookLibrary
from service.delivery.attempts import Message, send
from service.delivery.deliverer import Deliverer
from service.delivery.outbound import GuardedBackend, Outbound
from service.errors import WebhookRefused
from service.settings import WebhookSettings
from service.targets import TargetRules, check_target, resolve
from tests.builders.delivering import deliver_due
from tests.builders.service import settings_for, sink_row

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PUBLIC = TargetRules()


def resolving_to(*addresses):
    return lambda host, port: list(addresses)


class Server(ThreadingHTTPServer):
    """On loopback; keeps the host names by which it was reached."""

    def __init__(self):
        reached: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                reached.append(self.headers["host"])
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.reached = reached


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def post(url, rules, resolver=resolve, timeout_s=60.0):
    message = Message(id="a1", kind="alert", url=url, secrets=[SECRET], body=b"{}", sent_us=1_767_225_600_000_000)

    async def once():
        async with Outbound(rules, connections=2, resolver=resolver) as outbound:
            return await send(outbound, message, timeout_s=timeout_s)

    return asyncio.run(once())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "unix:///var/run/docker.sock",
        "http://",
        "http:///path",
        "http://user:password@example.org/",
        "http://user@example.org/",
        "http://@example.org/",
        "http://example.org:99999/",
        "http://example.org:0/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://example.org/" + "x" * 2000,
        "http://exa mple.org/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org/\r\nX-Injected: 1",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://\uff11\uff12\uff17.0.0.1/",
    ],
)
@pytest.mark.parametrize("rules", [PUBLIC, TargetRules(allow_private=True)])
def test_what_is_no_address_is_refused_whatever_is_allowed(url, rules):
    with pytest.raises(WebhookRefused):
        check_target(url, rules, resolving_to("93.184.216.34"))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127。0。0。1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://db.localhost/",
        "http://0.0.0.0/",
        "http://10.1.2.3/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.64.0.1/",
        "http://192.168.1.1:8080/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[ff02::1]/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
    ],
)
def test_addresses_of_this_machine_and_its_network_are_refused(url):
    with pytest.raises(WebhookRefused, match="private or reserved"):
        check_target(url, PUBLIC)
    reply = post(url, PUBLIC)
    assert reply.status is None
    assert "private or reserved" in reply.error


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "172.16.0.1",
        "198.18.0.1",
        "240.0.0.1",
        "fe80::1%eth0",
        "fd00::1",
        "fec0::1",
        "::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::7f00:1",
        "2002:a00:1::1",
        "2002:a9fe:a9fe::",
        "2001::1",
        "100::1",
        "nonsense",
    ],
)
def test_one_private_address_among_public_ones_is_enough(address):
    with pytest.raises(WebhookRefused, match="private or reserved"):
        check_target("https://example.org/", PUBLIC, resolving_to("93.184.216.34", address))
    check_target("https://example.org/", TargetRules(allow_private=True), resolving_to(address))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"],
)
def test_public_addresses_are_taken(address):
    check_target("https://example.org/alerts", PUBLIC, resolving_to(address))


def test_a_host_that_does_not_exist_is_told():
    def fail(host, port):
        raise OSError("unknown")

    with pytest.raises(WebhookRefused, match="cannot be resolved"):
        check_target("https://nowhere.invalid/", PUBLIC, fail)
    with pytest.raises(WebhookRefused, match="has no address"):
        check_target("https://nowhere.invalid/", PUBLIC, resolving_to())


def test_what_is_listed_is_allowed():
    rules = TargetRules.of(" hooks.internal, *.corp.example ,10.1.0.0/16, fd00:1::/32", allow_private=False)
    for url, address in [
        ("http://hooks.internal/", "192.168.0.1"),
        ("http://HOOKS.internal./", "192.168.0.1"),
        ("http://a.b.corp.example/", "127.0.0.1"),
        ("http://other.example/", "10.1.2.3"),
        ("http://other.example/", "::ffff:10.1.2.3"),
        ("http://[fd00:1::5]/", "fd00:1::5"),
        ("http://10.1.0.9/", "10.1.0.9"),
    ]:
        check_target(url, rules, resolving_to(address))
    for url, address in [
        ("http://corp.example/", "127.0.0.1"),
        ("http://nothooks.internal/", "127.0.0.1"),
        ("http://evilcorp.example/", "127.0.0.1"),
        ("http://other.example/", "10.2.0.1"),
    ]:
        with pytest.raises(WebhookRefused):
            check_target(url, rules, resolving_to(address))


@pytest.mark.parametrize("listed", ["http://hooks.internal", "10.1.0.5/16", "a b", "*", "10.1", "hooks.internal:80"])
def test_a_list_that_cannot_be_read_is_refused(listed):
    with pytest.raises(ValueError, match="neither a host name"):
        WebhookSettings(allowed_targets=listed)


def test_a_name_that_resolves_differently_a_moment_later_gains_nothing(server):
    """DNS rebinding: public when it is looked at first, loopback when the connection is made."""
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    url = f"http://rebound.example:{server.server_port}/"
    check_target(url, PUBLIC, lambda host, port: answers.pop(0))
    reply = post(url, PUBLIC, lambda host, port: answers.pop(0))
    assert "the address 127.0.0.1, which is private" in reply.error
    assert (answers, server.reached) == ([], [])


def test_the_connection_goes_to_the_very_address_that_was_looked_at(server):
    """The resolver is asked once for a connection; where its answer would lead a moment later makes no difference."""
    answers = [["127.0.0.1"], ["127.0.0.2"], ["10.0.0.1"]]
    rules = TargetRules.of("127.0.0.1/32", allow_private=False)
    reply = post(f"http://changing.example:{server.server_port}/", rules, lambda host, port: answers.pop(0))
    assert reply.status == 204
    assert answers == [["127.0.0.2"], ["10.0.0.1"]]
    assert server.reached == [f"changing.example:{server.server_port}"]


def test_the_next_permitted_address_is_tried_where_one_takes_no_connections(server):
    rules = TargetRules.of("127.0.0.0/8", allow_private=False)
    url = f"http://two.example:{server.server_port}/"
    assert post(url, rules, resolving_to("127.0.0.7", "127.0.0.1")).status == 204
    assert "ConnectError" in post(url, rules, resolving_to("127.0.0.7")).error


def test_the_certificate_must_be_that_of_the_name(server, monkeypatch):
    """The address is chosen below TLS: the name that is asked for stays the webhook's."""
    asked: list[bytes] = []
    context = ssl.create_default_context()
    wrapped = context.wrap_bio

    def wrap_bio(*args, **options):
        asked.append(options["server_hostname"])
        return wrapped(*args, **options)

    monkeypatch.setattr(context, "wrap_bio", wrap_bio)
    message = Message(
        id="a",
        kind="alert",
        url=f"https://named.example:{server.server_port}/",
        secrets=[SECRET],
        body=b"{}",
        sent_us=1,
    )

    async def once():
        rules = TargetRules.of("127.0.0.0/8", allow_private=False)
        async with Outbound(rules, connections=1, resolver=resolving_to("127.0.0.1"), tls=context) as outbound:
            return await send(outbound, message, timeout_s=60)

    assert asyncio.run(once()).status is None
    assert asked == [b"named.example"]
    assert context.check_hostname


def test_sockets_of_this_machine_are_out_of_reach():
    async def once():
        with ThreadPoolExecutor(1) as threads, pytest.raises(httpcore.ConnectError, match="not to sockets"):
            await GuardedBackend(TargetRules(allow_private=True), resolve, threads).connect_unix_socket("/tmp/x")

    asyncio.run(once())


@pytest.mark.redis
def test_a_rebound_target_is_refused_at_delivery(stores, server_url, clock, server):
    """The whole way: registered while the name was public, delivered when it is loopback."""
    answers = [["93.184.216.34"]]

    def resolver(host, port):
        return answers.pop(0) if answers else ["127.0.0.1"]

    url = f"http://rebound.example:{server.server_port}/"
    webhook = WebhookLibrary(stores, settings_for(server_url), clock, resolver).register(WebhookDraft(url=url))
    stores.alerts.append(
        [sink_row(kind="alert", stream="s", id="a", body=b'{"id":"a","pattern":"p"}')], [webhook], clock.now_us()
    )
    worker = Deliverer(stores, WebhookSettings(), clock, random.Random(1), resolver)
    assert asyncio.run(deliver_due(worker)) == 1
    assert server.reached == []
    assert "private" in stores.webhooks.stats(webhook.id).last_error

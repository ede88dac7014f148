"""The sink that sends results as e-mail over SMTP with TLS.

Connections are opened to a checked address of the host, and the certificate is verified for the host's name. All
attempts have the same message id, so that mailboxes can drop repetitions.
"""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, ClassVar, Literal

import orjson
import structlog

from service.delivery.templates import as_text
from service.delivery.transports.sending import Item, SendFailed, Sending
from service.errors import WebhookRefused

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?")
_MOST_RECIPIENTS = 20
_MOST_SUBJECT = 200
_TEMPLATE = {"subject", "text"}

tls_context: Callable[[], ssl.SSLContext] = ssl.create_default_context


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSink:
    """A mail server and recipients as a sink.

    ``security`` is ``tls`` for a connection that uses TLS from the first byte, or ``starttls``.
    """

    is_bulk: ClassVar[bool] = False

    host: str
    recipients: Sequence[str]
    sender: str
    port: int = 465
    security: Literal["tls", "starttls"] = "tls"
    user: str | None = None

    @property
    def address(self) -> str:
        return f"smtp://{self.host}:{self.port}/{','.join(self.recipients)}"

    def check(self, sending: Sending) -> None:
        """Raise ``WebhookRefused`` if a mail address is invalid or the mail server is not a permitted target."""
        if not 1 <= len(self.recipients) <= _MOST_RECIPIENTS:
            raise WebhookRefused(f"e-mail goes to 1 to {_MOST_RECIPIENTS} recipients", field="recipients")
        for name, addresses in (("recipients", self.recipients), ("sender", [self.sender])):
            if invalid := [address for address in addresses if not _ADDRESS.fullmatch(address)]:
                raise WebhookRefused(f"{invalid[0][:100]!r} is not an address such as ann@example.org", field=name)
        if not _HOST.fullmatch(self.host) or not 1 <= self.port <= 65_535:
            raise WebhookRefused(f"{self.host[:100]!r}:{self.port} is not a mail server", field="host")
        sending.addresses(self.host, self.port)

    def send(self, item: Item, sending: Sending) -> None:
        """Send a message to all recipients. If the server refuses all recipients, raise ``SendFailed``.

        If the server refuses only some recipients, log them.
        """
        message = self._message(item)
        address = sending.addresses(self.host, self.port)[0]
        try:
            with self._connected(address, sending.timeout_s) as server:
                if self.user is not None:
                    server.login(self.user, item.secret)
                refused = server.send_message(message)
        except smtplib.SMTPResponseException as error:
            raise SendFailed(
                f"the mail server answered {error.smtp_code} {_text(error.smtp_error)}", error.smtp_code
            ) from error
        except smtplib.SMTPRecipientsRefused as error:
            code, reason = next(iter(error.recipients.values()))
            raise SendFailed(f"the mail server refuses all recipients: {code} {_text(reason)}", code) from error
        except (smtplib.SMTPException, OSError) as error:
            raise SendFailed(f"{type(error).__name__}: {error}") from error
        if refused:
            structlog.get_logger(__name__).warning("recipients-refused", webhook=item.sink, recipients=sorted(refused))

    def _connected(self, address: str, timeout_s: float) -> smtplib.SMTP:
        context, is_direct = tls_context(), self.security == "tls"
        server = smtplib.SMTP_SSL(timeout=timeout_s, context=context) if is_direct else smtplib.SMTP(timeout=timeout_s)
        server._host = self.host  # type: ignore[attr-defined] # the name to verify, as the address was resolved before
        server.connect(address, self.port)
        if not is_direct:
            server.starttls(context=context)
        return server

    def _message(self, item: Item) -> EmailMessage:
        body: dict[str, Any] = orjson.loads(item.body)
        parts = {} if item.filled is None else orjson.loads(item.filled)
        message = EmailMessage()
        message["Subject"] = " ".join((as_text(parts.get("subject")) or _subject(body)).split())[:_MOST_SUBJECT]
        message["From"], message["To"] = self.sender, ", ".join(self.recipients)
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{item.id}@{self.sender.rpartition('@')[2]}>"
        message["X-Forestall-Id"] = item.id
        message.set_content(as_text(parts["text"]) if "text" in parts else _content(body))
        return message


def check_mail_template(template: Mapping[str, Any]) -> None:
    """Raise ``WebhookRefused`` if a template has parts other than the texts ``subject`` and ``text``."""
    if not template.keys() <= _TEMPLATE or not all(isinstance(text, str) for text in template.values()):
        raise WebhookRefused(
            "the template of e-mail has texts for 'subject' and 'text', and nothing else", field="template"
        )


def _subject(body: dict[str, Any]) -> str:
    if body["type"] == "digest":
        return "Forestall: " + ", ".join(f"{number} {kind}" for kind, number in body["counts"].items())
    members = [body.get(name) for name in ("severity", "pattern", "key")]
    return f"Forestall {body['type']}: {' '.join(str(member) for member in members if member)}"


def _content(body: dict[str, Any]) -> str:
    words = [str(body[name]) for name in ("why", "reason") if body.get(name)]
    return "\n\n".join([*words, orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()]) + "\n"


def _text(answer: bytes | str) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer

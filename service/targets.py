"""Permitted targets of webhooks: valid URLs, and the network addresses to which connections may be opened.

A host is resolved once per connection, and all its addresses must be permitted. The connection then uses one of exactly
these addresses (``service.delivery.outbound``). So a host cannot evade the check by resolving to a different address
afterwards.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias
from urllib.parse import urlsplit

import httpx

from service.errors import WebhookRefused

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""A function that resolves host and port to network addresses. It raises ``OSError`` if there are none."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_LONGEST_URL = 2_000
_PORTS = {"http": 80, "https": 443}
_NUMBER = re.compile("[0-9]+|0[xX][0-9a-fA-F]*")
_HOST_RULE = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRules:
    """The targets that webhooks may call in addition to public ones: networks, and hosts with any address.

    A host ``*.name`` means all subdomains of ``name``.
    """

    allow_private: bool = False
    hosts: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, listed: str, *, allow_private: bool) -> Self:
        """Parse a comma-separated list of hosts and networks. Raises ``ValueError`` for an item that is neither."""
        hosts: list[str] = []
        networks: list[Network] = []
        for item in filter(None, (part.strip() for part in listed.split(","))):
            try:
                networks.append(ipaddress.ip_network(item))
            except ValueError:
                if not _HOST_RULE.fullmatch(item.lower()) or _ends_in_a_number(item):
                    raise ValueError(
                        f"{item!r} is neither a host name, such as hooks.example.org or *.example.org, nor a network, "
                        "such as 10.1.0.0/16"
                    ) from None
                hosts.append(item.lower())
        return cls(allow_private=allow_private, hosts=tuple(hosts), networks=tuple(networks))

    def trusts_host(self, host: str) -> bool:
        """Return whether webhooks may call a host, whichever address it has."""
        return self.allow_private or any(
            host == rule or (rule.startswith("*.") and host.endswith(rule[1:])) for rule in self.hosts
        )

    def permits(self, text: str) -> bool:
        """Return whether connections to a network address, given as text, are permitted."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:  # for example an IPv6 address with a zone
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return is_public(address) or any((mapped or address) in network for network in self.networks)


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the network addresses of a host, as this machine resolves it."""
    address_infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in address_infos))


def check_target(url: str, rules: TargetRules, resolver: Resolver = resolve) -> None:
    """Check that webhooks may be sent to a URL. Its scheme is http or https, and its host is public or trusted.

    Raises ``WebhookRefused`` otherwise, or if the URL contains a user name or password.
    """
    target = parse_target(url)
    permitted_addresses(target.raw_host.decode(), target.port or _PORTS[target.scheme], rules, resolver)


def parse_target(url: str) -> httpx.URL:
    """Parse a webhook's address in the same way as the client that sends to it.

    Refuses user names, passwords, and hosts that are numbers in an unusual form.
    """
    target = _split(url)
    if target is None or target.scheme not in _PORTS or not target.host or len(url) > _LONGEST_URL:
        raise _refused(
            f"a webhook's address is an http or https URL of at most {_LONGEST_URL} characters, "
            "such as https://example.org/alerts"
        )
    if target.userinfo or "@" in urlsplit(url).netloc:
        raise _refused("a webhook's address must not contain a user name or password")
    if "%" in target.host or (_ends_in_a_number(target.host) and not _is_dotted(target.host)):
        raise _refused(
            f"the webhook's host {target.host!r} is an unusual form of a number; write the address as 192.0.2.1"
        )
    return target


def permitted_addresses(host: str, port: int, rules: TargetRules, resolver: Resolver = resolve) -> Sequence[str]:
    """Return the addresses to which a connection to a host may be opened, or the host itself if it is trusted.

    Raises ``WebhookRefused`` if any address is forbidden or the host has none.
    """
    name = host.lower().rstrip(".")
    if rules.trusts_host(name):
        return [host]
    if name == "localhost" or name.endswith(".localhost"):
        addresses: Sequence[str] = ["127.0.0.1"]
    else:
        try:
            addresses = resolver(host, port)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise _refused(f"the webhook's host {host!r} cannot be resolved: {reason or error}") from error
    for address in addresses:
        if not rules.permits(address):
            raise _refused(
                f"the webhook's host {host!r} has the address {address}, which is private or reserved; to allow that, "
                "list the host or its network in FORESTALL_WEBHOOKS__ALLOWED_TARGETS, or allow all with "
                "FORESTALL_WEBHOOKS__ALLOW_PRIVATE_TARGETS=true"
            )
    if not addresses:
        raise _refused(f"the webhook's host {host!r} has no address")
    return addresses


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet.

    For an IPv6 address that embeds an IPv4 address, only the IPv4 address is checked.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    inner = _embedded_address(address)
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL_UNICAST and address.is_global


def _embedded_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def _split(url: str) -> httpx.URL | None:
    if " " in url or not url.isprintable() or "\\" in url:
        return None
    try:
        target = httpx.URL(url)
        port = urlsplit(url).port
    except (ValueError, httpx.InvalidURL):
        return None
    return None if port == 0 else target


def _ends_in_a_number(host: str) -> bool:
    return ":" not in host and _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def _is_dotted(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)  # accepts only four decimal parts without leading zeros
    except ValueError:
        return False
    return True


def _refused(message: str) -> WebhookRefused:
    return WebhookRefused(message, field="url")

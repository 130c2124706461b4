from __future__ import annotations

import doctest
from collections.abc import Sequence

import pytest

from router.live import probe_hosts as module
from router.live.probe_hosts import ProbeHosts

DELICATE = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.0.1",
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:5601:5601",  # Teredo of a client 169.254.169.254
]
PLAIN = ["10.0.0.1", "192.168.1.1", "192.0.2.1", "8.8.8.8", "100.64.0.1", "fd00::1", "2001:db8::1", "::ffff:8.8.8.8"]


def test_the_example_holds() -> None:
    assert doctest.testmod(module) == (0, 3)


@pytest.mark.parametrize("address", DELICATE)
@pytest.mark.parametrize("pattern", ["*", "agent.example", "*.example"])
def test_no_name_allows_a_delicate_address(address: str, pattern: str) -> None:
    assert not ProbeHosts([pattern]).allows("agent.example", address)


@pytest.mark.parametrize("address", PLAIN)
def test_any_other_address_is_allowed_by_a_star(address: str) -> None:
    assert ProbeHosts(["*"]).allows("agent.example", address)


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("169.254.0.0/16", "169.254.169.254"),
        ("::1", "::1"),
        ("fe80::/10", "fe80::1%eth0"),
        ("ff00::/8", "ff02::1"),
    ],
)
def test_a_network_or_an_address_allows_what_it_covers(pattern: str, address: str) -> None:
    hosts = ProbeHosts([pattern])
    assert hosts.allows("agent.example", address)
    assert not hosts.allows("agent.example", "192.0.2.1")


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("agent.example", "agent.example", True),
        ("agent.example", "AGENT.Example.", True),
        ("agent.example.", "agent.example", True),
        ("agent.example", "other.agent.example", False),
        ("*.example", "a.b.example", True),
        ("*.example", "example", False),
        ("*.example", "badexample", False),
        ("*.EXAMPLE", "a.example", True),
        ("10.0.0.0/8", "agent.example", False),
    ],
)
def test_names_are_compared_as_dns_does(pattern: str, host: str, allowed: bool) -> None:
    assert ProbeHosts([pattern]).allows(host, "192.0.2.1") is allowed


def test_without_a_pattern_nothing_is_allowed() -> None:
    assert not ProbeHosts([]).allows("agent.example", "192.0.2.1")


def test_a_pattern_that_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="host bits"):
        ProbeHosts(["10.0.0.1/8"])


async def address_of(patterns: list[str], *found: str, host: str = "agent.example") -> str | None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return await ProbeHosts(patterns, resolve).address_of(host, 80)


async def test_every_address_of_a_name_is_checked_and_the_first_is_taken() -> None:
    assert await address_of(["*"], "192.0.2.1", "192.0.2.2") == "192.0.2.1"
    assert await address_of(["*"], "192.0.2.1", "127.0.0.1") is None
    assert await address_of(["*", "127.0.0.0/8"], "192.0.2.1", "127.0.0.1") == "192.0.2.1"
    assert await address_of(["192.0.2.0/31"], "192.0.2.1", "192.0.2.2") is None
    assert await address_of(["*"]) is None


async def test_an_address_is_not_resolved() -> None:
    assert await address_of(["*"], "127.0.0.1", host="192.0.2.7") == "192.0.2.7"
    assert await address_of(["*"], "192.0.2.7", host="127.0.0.1") is None


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1"])
async def test_whatever_the_system_resolves_to_loopback_is_refused(host: str) -> None:
    assert await ProbeHosts(["*", host]).address_of(host, 80) is None


async def test_a_name_that_does_not_resolve_raises() -> None:
    with pytest.raises((OSError, UnicodeError)):
        await ProbeHosts(["*"]).address_of("a" * 64, 80)

"""Probe hosts: which addresses may be probed, whatever a card names as its endpoint."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""(host, port) → all its addresses; raises OSError or UnicodeError where it has none."""

_DELICATE = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, and where most clouds tell metadata
        "100.100.100.200/32",  # metadata of Alibaba Cloud
        "168.63.129.16/32",  # Azure's host agent
        "192.0.0.192/32",  # metadata of Oracle Cloud
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/128",
        "::1/128",
        "fe80::/10",
        "fec0::/10",  # site-local, as it was
        "ff00::/8",
        "fd00:ec2::254/128",  # metadata of AWS
        "fd20:ce::254/128",  # metadata of Google Cloud
        "fd00:c1::a9fe:a9fe/128",  # metadata of Oracle Cloud
    )
]
"""What a service can reach and a stranger should not: probed where a network or address that covers it is named."""

_CARRIES_IPV4 = [ip_network(text) for text in ("::ffff:0:0/96", "64:ff9b::/96", "::/96")]
"""IPv4 as IPv6, by translation (RFC 6052), and the deprecated compatible form: the last 32 bits are the address."""

# of their own: names that do not resolve must not hold up what else runs in threads
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="probe-dns")


async def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a host as the system resolves it."""
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, _resolve, host, port)
    return list(dict.fromkeys(found))


def _resolve(host: str, port: int) -> list[str]:
    return [str(item[4][0]) for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class ProbeHosts:
    """The hosts that the operator allows to be probed.

    Args:
        patterns: names (`agent.example`), `*.suffix`, addresses, networks (`10.0.0.0/8`), `*`. Loopback, link-local,
            metadata, multicast and unspecified addresses are allowed by an address or network that covers them alone.
        resolve: how names are resolved.

    Raises:
        ValueError: a pattern with a `/` is no network.

    >>> hosts = ProbeHosts(["*.example", "127.0.0.0/8"])
    >>> hosts.allows("a.example", "192.0.2.1"), hosts.allows("b.test", "192.0.2.1"), hosts.allows("b.test", "127.0.0.1")
    (True, False, True)
    >>> ProbeHosts(["*"]).allows("a.example", "169.254.169.254")
    False
    """

    def __init__(self, patterns: Sequence[str], resolve: Resolve = addresses_of) -> None:
        self._resolve = resolve
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: set[str] = set()
        self._suffixes: tuple[str, ...] = ()
        for pattern in patterns:
            if "/" in pattern or _address(pattern) is not None:
                self._networks.append(ip_network(pattern))
            elif pattern.startswith("*"):
                self._suffixes += (_plain(pattern[1:]),)
            else:
                self._names.add(_plain(pattern))

    def allows(self, host: str, address: str) -> bool:
        """Whether a host may be probed at one of its addresses."""
        meant = _meant(ip_address(address))
        if any(meant in network for network in self._networks):
            return True
        if any(meant in network for network in _DELICATE):
            return False
        name = _plain(host)
        return name in self._names or name.endswith(self._suffixes)

    async def address_of(self, host: str, port: int) -> str | None:
        """The address to connect to; None where any of the host's addresses may not be probed.

        Whoever connects to it, and does not resolve the name again, reaches an address that was checked.

        Raises:
            OSError: the name does not resolve, as does UnicodeError for one that cannot be a name.
        """
        addresses = [host] if _address(host) is not None else await self._resolve(host, port)
        if not addresses or not all(self.allows(host, address) for address in addresses):
            return None
        return addresses[0]


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if int(address) > 1 and any(address in network for network in _CARRIES_IPV4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    # a scope (`%eth0`) says over which interface, not which address
    return IPv6Address(int(address))

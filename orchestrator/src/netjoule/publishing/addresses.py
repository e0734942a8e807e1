# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for IP and MAC addresses: numbered by first appearance, networks stay networks.

A stand-in says nothing of the address behind it: there is no key and no hash, only the order in which
addresses were met, and which of them shared a network. So routes and prefixes of a masked topology hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from netjoule.core.errors import RunFailed

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_ByNetwork = Mapping[Network | None, Sequence[Network]]
_HostsOf = Mapping[Network | None, Sequence[Address]]

_USUAL_PREFIX = {4: 24, 6: 64}  # of an address whose network nobody tells
_SHORTEST_PREFIX = {4: 4, 6: 3}  # a larger network fits into no pool
_LONGEST_PREFIX = {4: 30, 6: 126}  # beyond it a network has no host in it: it is an address
# What no host of a lab has: benchmarking (RFC 2544), documentation (RFC 3849, RFC 9637); then, for networks
# of a size that fits into none of these, what is reserved (RFC 1112) or unassigned.
_POOLS: dict[int, tuple[Network, ...]] = {
    4: (IPv4Network("198.18.0.0/15"), IPv4Network("240.0.0.0/4")),
    6: (IPv6Network("2001:db8::/32"), IPv6Network("3fff::/20"), IPv6Network("4000::/2")),
}
_LINK_LOCAL = IPv6Network("fe80::/64")
_MAC_STEM = 0x02005E000000  # locally administered


def parsed(text: str) -> Address | None:
    """An address as it is written, leading zeros of IPv4 included; None when it is none."""
    if ":" not in text:
        text = ".".join(part.lstrip("0") or "0" for part in text.split("."))
    try:
        return ip_address(text)
    except ValueError:
        return None


def names_nobody(address: Address) -> bool:
    """Whether an address is the same on every machine: loopback, none, broadcast, multicast, a netmask."""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        if mapped is not None:
            return names_nobody(mapped)
        return address.is_loopback or address.is_unspecified or address.is_multicast
    return address.is_loopback or address.is_multicast or int(address) >> 24 in (0, 255)


def spelled(address: Address) -> str:
    """An address as text; one of IPv4 inside IPv6 with its dots, whatever Python's version prefers."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address) if mapped is None else f"::ffff:{mapped}"


def from_mac(address: Address) -> bool:
    """Whether an IPv6 address was made from a MAC address (RFC 4291, appendix A), which it then tells."""
    return isinstance(address, IPv6Address) and int(address) >> 24 & 0xFFFF == 0xFFFE


class IpBook:
    """Addresses and networks as they are met (``note``), then their stand-ins (``freeze``, ``mask``)."""

    def __init__(self) -> None:
        self._addresses: dict[Address, None] = {}
        self._networks: dict[Network, None] = {}
        self._stand_ins: dict[Address, Address] = {}
        self._network_stand_ins: dict[Network, Network] = {}
        self._given: frozenset[Address] = frozenset()

    def note(self, address: Address) -> None:
        """Take an address in; of one that is written inside IPv6 (RFC 4291, 2.5.5.2) the IPv4 address."""
        address = _innermost(address)
        if not names_nobody(address):
            self._addresses.setdefault(address)

    def note_network(self, text: str) -> None:
        """Take in the network of ``ADDRESS/PREFIX``; anything else is none."""
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            return
        if _SHORTEST_PREFIX[network.version] <= network.prefixlen <= _LONGEST_PREFIX[network.version]:
            self._networks.setdefault(network)

    def addresses(self) -> Iterator[Address]:
        """Every address that was met."""
        return iter(self._addresses)

    def knows(self, address: Address) -> bool:
        """Whether an address was met."""
        return _innermost(address) in self._addresses

    def leaks(self, address: Address) -> bool:
        """Whether an address was met and is not the stand-in of another one as well."""
        address = _innermost(address)
        return address in self._addresses and address not in self._given

    def freeze(self) -> None:
        """Settle the stand-ins of all that was met."""
        for version in (4, 6):
            self._settle(version)
        networks = (network.network_address for network in self._network_stand_ins.values())
        self._given = frozenset((*self._stand_ins.values(), *networks))

    def mask(self, address: Address, prefix: int | None = None) -> Address:
        """The stand-in.

        Args:
            address: one that was noted; another one is its own.
            prefix: length that is written behind it: the address of a network is that network's then.
        """
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return IPv6Address(f"::ffff:{self.mask(address.ipv4_mapped)}")
        if prefix is not None:
            try:
                network = self._network_stand_ins.get(ip_network((address, prefix)))
            except ValueError:
                network = None
            if network is not None:
                return network.network_address
        return self._stand_ins.get(address, address)

    def _settle(self, version: int) -> None:
        met = [address for address in self._addresses if address.version == version]
        tree = _Tree([network for network in self._networks if network.version == version])
        for address in met:
            if tree.smallest(address) is None:
                tree.add(ip_network((address, _USUAL_PREFIX[version]), strict=False))
        hosts: dict[Network | None, list[Address]] = {}
        for address in met:
            hosts.setdefault(tree.smallest(address), []).append(address)
        pool, inner = _Pool(version), tree.inner()
        for root in inner.get(None, ()):
            self._place(root, _LINK_LOCAL if root == _LINK_LOCAL else pool.take(root.prefixlen), inner, hosts)

    def _place(self, network: Network, stand_in: Network, inner: _ByNetwork, hosts: _HostsOf) -> None:
        """Give a block to a network: those inside it from the end, largest first, hosts from the start."""
        self._network_stand_ins[network] = stand_in
        children = sorted(inner.get(network, ()), key=lambda child: child.prefixlen)
        end = int(stand_in.broadcast_address) + 1
        for child in children:
            end -= child.num_addresses
            self._place(child, _network(end, child.prefixlen, stand_in), inner, hosts)
        number = int(stand_in.network_address)
        for address in hosts.get(network, ()):
            if address == network.network_address:
                self._stand_ins[address] = stand_in.network_address
            elif address == network.broadcast_address and address.version == 4 and not children:
                self._stand_ins[address] = stand_in.broadcast_address
            else:
                number += 1
                self._stand_ins[address] = _like(address, number)


class MacBook:
    """MAC addresses as they are met, and their stand-ins in the writing of the original."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def note(self, text: str) -> None:
        """Take an address in, however it is written; broadcast and all zeros name nobody."""
        digits = _digits(text)
        if set(digits) not in ({"0"}, {"f"}):
            self._numbers.setdefault(digits, len(self._numbers) + 1)

    def addresses(self) -> Iterator[str]:
        """Every address that was met: its hexadecimal digits, lower case."""
        return iter(self._numbers)

    def leaks(self, text: str) -> bool:
        """Whether an address was met and is not the stand-in of another one as well."""
        digits = _digits(text)
        given = int(digits, 16) - _MAC_STEM
        return digits in self._numbers and not 1 <= given <= len(self._numbers)

    def mask(self, text: str) -> str:
        """The stand-in, with the separators and the case of ``text``; itself when it was never noted."""
        digits = _digits(text)
        number = self._numbers.get(digits)
        if number is None:
            return text
        masked = iter(f"{_MAC_STEM + number:0{len(digits)}x}")
        upper = text != text.lower()
        return "".join(
            (next(masked).upper() if upper else next(masked)) if char in "0123456789abcdefABCDEF" else char
            for char in text
        )


class _Tree:
    """Networks by what is around them."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._by_start: dict[tuple[int, int], Network] = {}
        self._prefixes: list[int] = []
        for network in networks:
            self.add(network)

    def add(self, network: Network) -> None:
        """Take a network in."""
        self._by_start[network.prefixlen, int(network.network_address)] = network
        self._prefixes = sorted({prefix for prefix, _ in self._by_start}, reverse=True)

    def smallest(self, address: Address, below: int = 129) -> Network | None:
        """The smallest network that an address is in, of those with a prefix shorter than `below`."""
        for prefix in self._prefixes:
            shift = address.max_prefixlen - prefix
            start = int(address) >> shift << shift
            if prefix < below and (prefix, start) in self._by_start:
                return self._by_start[prefix, start]
        return None

    def inner(self) -> _ByNetwork:
        """Networks by the one directly around them, in the order in which they came; None: around none."""
        found: dict[Network | None, list[Network]] = {}
        for network in self._by_start.values():
            around = self.smallest(network.network_address, network.prefixlen)
            found.setdefault(around, []).append(network)
        return found


class _Pool:
    """Hands out blocks one after the other."""

    def __init__(self, version: int) -> None:
        self._pools = _POOLS[version]
        self._next = [int(pool.network_address) for pool in self._pools]

    def take(self, prefix: int) -> Network:
        size = 1 << (self._pools[0].max_prefixlen - prefix)
        for place, pool in enumerate(self._pools):
            start = -(-self._next[place] // size) * size
            if prefix >= pool.prefixlen and start + size - 1 <= int(pool.broadcast_address):
                self._next[place] = start + size
                return _network(start, prefix, pool)
        raise RunFailed(
            f"the campaign names more networks with prefix length {prefix} than there are stand-ins"
        )


def _innermost(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _like(address: Address, number: int) -> Address:
    return IPv4Address(number) if address.version == 4 else IPv6Address(number)


def _network(start: int, prefix: int, like: Network) -> Network:
    return IPv4Network((start, prefix)) if like.version == 4 else IPv6Network((start, prefix))


def _digits(text: str) -> str:
    return re.sub("[^0-9a-f]", "", text.lower())

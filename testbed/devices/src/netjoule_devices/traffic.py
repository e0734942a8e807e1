# SPDX-License-Identifier: Apache-2.0
"""What a network namespace receives, and how many of its connections move bytes.

The kernel tells both without touching a packet: /proc/net/dev counts what each interface received, and
sock_diag(7) has for every TCP connection how long ago data came or went and its round-trip time (tcp(7)).
Of UDP (QUIC) it tells less: which sockets have a peer (/proc/net/udp), how many datagrams programs took in
(/proc/net/snmp, snmp6; proc(5)); so all of these sockets count while datagrams come.
Bytes of single connections are not added up: what one received just before its end would be lost.
"""

from __future__ import annotations

import ctypes
import io
import os
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from netjoule_devices.errors import EnvironmentLacks

LEAST_HOLD_S = 0.1
"""A connection that had data in the last 0.1 s moves bytes, however near its peer is."""
HOLD_RTTS = 2
"""So does one that had data in so many of its round-trip times: its request, or its window, is under way."""

UDP_HOLD_NS = 600_000_000
"""UDP tells no round-trip time: its sockets hold for twice that of the longest path, 290 ms."""
UDP_LEAST_DATAGRAMS = 5
"""Fewer between two readings are a greeting or a sign of life, no transfer."""

_CLONE_NEWNET = 0x40000000
_NETLINK_SOCK_DIAG, _GET_TCP_SOCKETS, _TCP_INFO = 4, 18, 2  # linux/netlink.h, linux/inet_diag.h
_REQUEST_DUMP, _DONE, _ERROR = 0x301, 3, 2  # linux/netlink.h
_ESTABLISHED = 1 << 1
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBB48xII")
_ATTRIBUTE = struct.Struct("=HH")
_ADDRESSES = slice(8, 40)  # of struct inet_diag_msg: the connection's own address and its peer's
_MESSAGE_BYTES = 72
_LAST_SENT, _LAST_RECEIVED, _RTT = 44, 52, 68  # places in struct tcp_info; ms, ms, us
_RECEIVE_BYTES = 1 << 18
_FILES = ("dev", "snmp", "snmp6", "udp", "udp6")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that interfaces received since the reading before, and connections that move bytes now."""

    received_bytes: int = 0
    connections: int = 0


class NamespaceTraffic:
    """Reads the namespace `netns`. Traffic inside of it, over `lo`, does not count."""

    def __init__(self, netns: Path) -> None:
        """What came before does not count.

        Raises:
            EnvironmentLacks: when the namespace cannot be entered.
        """
        with ThreadPoolExecutor(
            1
        ) as apart:  # a namespace belongs to a thread, and this one stays where it is
            self._diag, self._files = apart.submit(_opened, netns).result()
        self._received_bytes = self._received()
        self._datagrams, self._datagrams_ns = self._taken_in(), -UDP_HOLD_NS

    def advance(self, now_ns: int) -> Traffic:
        """Return what came since the call before (or since the start); `now_ns`: monotonic."""
        before, self._received_bytes = self._received_bytes, self._received()
        moving = sum(_moves(info) for info in self._infos())
        return Traffic(max(0, self._received_bytes - before), moving + self._udp_connections(now_ns))

    def _received(self) -> int:
        named = (line.split(":") for line in self._lines("dev")[2:])
        return sum(int(counts.split()[0]) for name, counts in named if name.strip() != "lo")

    def _udp_connections(self, now_ns: int) -> int:
        """Sockets with a peer at another address than their own, while datagrams come."""
        before, self._datagrams = self._datagrams, self._taken_in()
        if self._datagrams - before >= UDP_LEAST_DATAGRAMS:
            self._datagrams_ns = now_ns
        if now_ns - self._datagrams_ns > UDP_HOLD_NS:
            return 0
        ends = (line.split()[1:3] for name in ("udp", "udp6") for line in self._lines(name)[1:])
        hosts = ((own.split(":")[0], peer.split(":")[0]) for own, peer in ends)
        return sum(own != peer and peer.strip("0") != "" for own, peer in hosts)

    def _taken_in(self) -> int:
        """Datagrams that the namespace's programs took in."""
        of_ipv4 = next(line.split()[1] for line in reversed(self._lines("snmp")) if line.startswith("Udp: "))
        of_ipv6 = (line.split()[1] for line in self._lines("snmp6") if line.startswith("Udp6InDatagrams"))
        return int(of_ipv4) + sum(map(int, of_ipv6))

    def _lines(self, name: str) -> list[str]:
        file = self._files.get(name)
        if file is None:
            return []
        file.seek(0)
        return file.read().decode().splitlines()

    def _infos(self) -> Iterator[bytes]:
        """Yield struct tcp_info of the established connections to other addresses than their own.

        The older of the two questions that the kernel knows: its answer has both versions of IP in one go
        through the kernel's table, which is what this costs.
        """
        question = _QUESTION.pack(socket.AF_UNSPEC, 0, 0, 1 << (_TCP_INFO - 1), _ESTABLISHED, 0)
        length = _HEADER.size + len(question)
        self._diag.send(_HEADER.pack(length, _GET_TCP_SOCKETS, _REQUEST_DUMP, 0, 0) + question)
        while True:
            data = memoryview(self._diag.recv(_RECEIVE_BYTES))
            while len(data) >= _HEADER.size:
                length, kind = _HEADER.unpack_from(data)[:2]
                if kind in (_DONE, _ERROR):
                    return
                yield from _info_of(data[_HEADER.size : length])
                data = data[_aligned(length) :]


def _info_of(message: memoryview) -> Iterator[bytes]:
    addresses = bytes(message[_ADDRESSES])
    rest = message[_MESSAGE_BYTES:] if addresses[:16] != addresses[16:] else message[:0]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _TCP_INFO:
            yield bytes(rest[_ATTRIBUTE.size : length])
        rest = rest[_aligned(length) :]


def _moves(info: bytes) -> bool:
    """Whether data went or came within the hold of a connection."""
    places = (_LAST_SENT, _LAST_RECEIVED, _RTT)
    sent_ms, received_ms, rtt_us = (struct.unpack_from("=I", info, place)[0] for place in places)
    hold_s = max(LEAST_HOLD_S, HOLD_RTTS * rtt_us * 1e-6)
    return bool(min(sent_ms, received_ms) * 1e-3 <= hold_s)


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _opened(netns: Path) -> tuple[socket.socket, dict[str, io.FileIO]]:
    """Open the sources inside a namespace; they stay in it, whoever reads them."""
    try:
        with netns.open("rb") as there:
            _enter(there.fileno())
        diag = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG)
        # Without IPv6 there are fewer.
        paths = [path for name in _FILES if (path := Path("/proc/thread-self/net") / name).exists()]
        return diag, {path.name: io.FileIO(path) for path in paths}
    except OSError as error:
        raise EnvironmentLacks(f"network namespace {netns} cannot be entered: {error.strerror}") from None


def _enter(namespace: int) -> None:
    """Move the calling thread, which may be where it is to go already."""
    found, own = os.fstat(namespace), Path("/proc/thread-self/ns/net").stat()
    if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
        return
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns is there from Python 3.12 on
    if libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

# SPDX-License-Identifier: Apache-2.0
"""RFC 6773 captures for programs that know DCCP as IP protocol 33 only.

The UDP header goes, the IP protocol becomes 33, lengths and checksums follow: DCCP's own checksum is zero or
unused inside UDP (RFC 6773 section 3.8) and is computed here over the pseudo-header (RFC 4340 section 9.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = 0xA1B2C3D4
_ETHERNET = 1
_FILE_HEADER_BYTES = 24
_RECORD_HEADER_BYTES = 16
_ETHERNET_BYTES = 14
_IPV4, _IPV6 = 0x0800, 0x86DD
_UDP, _DCCP = 17, 33
_UDP_BYTES = 8


def server_port(capture: bytes) -> int:
    """The port that the first UDP packet goes to."""
    for _header, frame in _records(capture):
        found = _udp(frame)
        if found is not None:
            return int.from_bytes(frame[found + 2 : found + 4], "big")
    raise ValueError("no UDP packet in the capture")


def converted(source: Path, target: Path) -> int:
    """Write the DCCP packets of an RFC 6773 capture as protocol 33; how many there were."""
    capture = source.read_bytes()
    out, count = [capture[:_FILE_HEADER_BYTES]], 0
    for header, frame in _records(capture):
        packet = native(frame)
        if packet is not None:
            count += 1
            seconds, fraction = struct.unpack("<II", header[:8])
            out += [struct.pack("<IIII", seconds, fraction, len(packet), len(packet)), packet]
    target.write_bytes(b"".join(out))
    return count


def native(frame: bytes) -> bytes | None:
    """One Ethernet frame with DCCP in UDP as DCCP in IP; None for any other frame."""
    at = _udp(frame)
    if at is None:
        return None
    length = int.from_bytes(frame[at + 4 : at + 6], "big") - _UDP_BYTES
    dccp = bytearray(frame[at + _UDP_BYTES : at + _UDP_BYTES + length])
    ethernet, ip = frame[:_ETHERNET_BYTES], bytearray(frame[_ETHERNET_BYTES:at])
    if ip[0] >> 4 == 4:
        ip[9] = _DCCP
        ip[2:4] = struct.pack(">H", len(ip) + length)
        ip[10:12] = b"\0\0"
        ip[10:12] = _internet_checksum(bytes(ip))
        pseudo = bytes(ip[12:20]) + struct.pack(">BBH", 0, _DCCP, length)
    else:
        ip[6] = _DCCP
        ip[4:6] = struct.pack(">H", length)
        pseudo = bytes(ip[8:40]) + struct.pack(">II", length, _DCCP)
    dccp[6:8] = b"\0\0"
    dccp[6:8] = _internet_checksum(pseudo + bytes(dccp[: _covered(bytes(dccp))]))
    return ethernet + bytes(ip) + bytes(dccp)


def _covered(dccp: bytes) -> int:
    """Bytes that the checksum covers (RFC 4340 section 9.2)."""
    coverage = dccp[5] & 0x0F
    return len(dccp) if coverage == 0 else min(len(dccp), dccp[4] * 4 + (coverage - 1) * 4)


def _udp(frame: bytes) -> int | None:
    """Where the UDP header of an Ethernet frame begins."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == _IPV4 and frame[23] == _UDP:
        return _ETHERNET_BYTES + (frame[14] & 0x0F) * 4
    if kind == _IPV6 and frame[20] == _UDP:
        return _ETHERNET_BYTES + 40
    return None


def _records(capture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Header and frame of each packet of a little-endian classic capture of Ethernet, as of tcpdump."""
    if struct.unpack_from("<I16xI", capture) != (_MAGIC, _ETHERNET):
        raise ValueError("not a little-endian pcap of Ethernet with microseconds")
    at = _FILE_HEADER_BYTES
    while (frame := at + _RECORD_HEADER_BYTES) <= len(capture):
        end = frame + int.from_bytes(capture[at + 8 : at + 12], "little")
        yield capture[at:frame], capture[frame:end]
        at = end


def _internet_checksum(data: bytes) -> bytes:
    """RFC 1071, ready to be stored."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)

# SPDX-License-Identifier: Apache-2.0
"""A port where clients speak VXI-11 to an emulated instrument: ONC RPC (RFC 5531) over TCP.

Of the VXI-11 core channel (rev. 1.0, section B) there are create_link, device_write, device_read,
device_readstb, device_clear, device_remote, device_local, device_lock, device_unlock and destroy_link; locks
are granted and mean nothing. There is no portmapper: clients name the port. A thread serves each client,
since a read waits for an answer or its time-out.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import BinaryIO

from netjoule_meters.emulated.scpi import DEVICE_CLEAR
from netjoule_meters.errors import UsageError

CORE_PROGRAM, CORE_VERSION = 0x0607AF, 1
_CREATE_LINK, _WRITE, _READ, _READ_STATUS, _CLEAR, _DESTROY_LINK = 10, 11, 12, 13, 15, 23
_WITHOUT_EFFECT = (16, 17, 18, 19)
"""device_remote, device_local, device_lock, device_unlock"""
_NO_ERROR, _NOT_ACCESSIBLE, _INVALID_LINK, _IO_TIMEOUT = 0, 3, 4, 15
_REASON_COUNT, _REASON_END = 1, 4
_FLAG_END = 8
_LARGEST_MESSAGE = 4096
_LONGEST_RECORD = 65536
_ACCEPTED_OK, _NO_PROGRAM, _WRONG_VERSION, _NO_PROCEDURE, _GARBAGE = 0, 1, 2, 3, 4


class _Xdr:
    """Reads XDR (RFC 4506) values from a record."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def uint(self) -> int:
        """An unsigned integer."""
        (value,) = struct.unpack_from(">I", self._data, self._position)
        self._position += 4
        return int(value)

    def opaque(self) -> bytes:
        """Bytes of variable length."""
        length = self.uint()
        data = self._data[self._position : self._position + length]
        if len(data) != length:
            raise struct.error("the record ends too early")
        self._position += -(-length // 4) * 4
        return data


def _opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def _uints(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


class Vxi11Port:
    """Bytes between VXI-11 clients and one instrument; see `Port`."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._outside, self._inside = socket.socketpair()
        self._inside.setblocking(False)
        self._changed = threading.Condition()
        self._answers = bytearray()
        self._clears_pending = 0
        self._links: set[int] = set()
        self._clients: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self.host, self.port = host, port
        self.plug_in()

    @property
    def name(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"

    def descriptors(self) -> list[int]:
        """What becomes readable when a client has written."""
        return [self._inside.fileno()]

    def read(self) -> bytes:
        """What clients have written; answers to what went before a device clear are forgotten."""
        try:
            data = self._inside.recv(_LONGEST_RECORD)
        except BlockingIOError:
            return b""
        if DEVICE_CLEAR in data:
            with self._changed:
                self._answers.clear()
                self._clears_pending -= data.count(DEVICE_CLEAR)
                self._changed.notify_all()
        return data

    def write(self, data: bytes, more: bool = False) -> None:
        """Keep an answer until a client reads it."""
        with self._changed:
            self._answers += data
            self._changed.notify_all()

    def hang_up(self) -> None:
        """Drop all clients."""
        with self._changed:
            clients, self._clients = self._clients, set()
            self._answers.clear()
            self._links.clear()
            self._changed.notify_all()
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def unplug(self) -> None:
        """Hang up and listen no more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.hang_up()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(2.0)

    def plug_in(self) -> None:
        """Listen, again on the same port."""
        if self._listener is not None:
            return
        try:
            self._listener = socket.create_server((self.host, self.port))
        except OSError as error:
            raise UsageError(f"cannot listen on {self.host}:{self.port}: {error.strerror}") from error
        self.host, self.port = self._listener.getsockname()[:2]
        self._start(self._accept, self._listener)

    def close(self) -> None:
        """Close everything."""
        self.unplug()
        self._outside.close()
        self._inside.close()

    # -- clients ---------------------------------------------------------------------------------------

    def _start(self, target: Callable[[socket.socket], None], argument: socket.socket) -> None:
        thread = threading.Thread(target=target, args=(argument,), name="vxi11", daemon=True)
        thread.start()
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._changed:
                    self._clients.add(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, client.makefile("rb") as stream:
            while (record := _receive_record(stream)) is not None:
                reply = self._reply(record, client)
                if reply is None:
                    break
                client.sendall(_uints(0x80000000 | len(reply)) + reply)
        with self._changed:
            self._clients.discard(client)

    def _reply(self, record: bytes, client: socket.socket) -> bytes | None:
        """The reply to one call; None when it cannot even be told whose call it is."""
        call = _Xdr(record)
        try:
            xid, message, rpc_version, program, version, procedure = (call.uint() for _ in range(6))
            for _ in range(2):  # credentials and verifier
                call.uint()
                call.opaque()
        except struct.error:
            return None
        if message != 0 or rpc_version != 2:
            return None
        if program != CORE_PROGRAM:
            return _accepted(xid, _NO_PROGRAM)
        if version != CORE_VERSION:
            return _accepted(xid, _WRONG_VERSION, _uints(CORE_VERSION, CORE_VERSION))
        try:
            result = self._do(procedure, call, client)
        except struct.error:
            return _accepted(xid, _GARBAGE)
        return _accepted(xid, _NO_PROCEDURE) if result is None else _accepted(xid, _ACCEPTED_OK, result)

    def _do(self, procedure: int, call: _Xdr, client: socket.socket) -> bytes | None:
        """Result of a procedure of the core channel; None for one that there is not."""
        procedures: dict[int, Callable[[_Xdr], bytes]] = {
            _CREATE_LINK: self._create_link,
            _WRITE: self._device_write,
            _READ: lambda call: self._device_read(call, client),
            **dict.fromkeys(
                (_READ_STATUS, _CLEAR, _DESTROY_LINK, *_WITHOUT_EFFECT),
                lambda call: self._without_data(procedure, call),
            ),
        }
        return procedures[procedure](call) if procedure in procedures else None

    def _without_data(self, procedure: int, call: _Xdr) -> bytes:
        link = call.uint()
        if link not in self._links:
            return _uints(_INVALID_LINK, 0) if procedure == _READ_STATUS else _uints(_INVALID_LINK)
        if procedure == _READ_STATUS:
            return _uints(_NO_ERROR, 0)
        if procedure == _CLEAR:
            self._device_clear()
        elif procedure == _DESTROY_LINK:
            self._links.discard(link)
        return _uints(_NO_ERROR)

    def _create_link(self, call: _Xdr) -> bytes:
        call.uint()  # the client's own number
        call.uint()  # whether to lock
        call.uint()  # lock time-out
        if call.opaque().lower() != b"inst0":
            return _uints(_NOT_ACCESSIBLE, 0, 0, 0)
        with self._changed:
            link = max(self._links, default=0) + 1
            self._links.add(link)
        return _uints(_NO_ERROR, link, 0, _LARGEST_MESSAGE)

    def _device_write(self, call: _Xdr) -> bytes:
        link, _io_timeout, _lock_timeout, flags = (call.uint() for _ in range(4))
        data = call.opaque()
        if link not in self._links:
            return _uints(_INVALID_LINK, 0)
        ended = flags & _FLAG_END and not data.endswith(b"\n")
        self._outside.sendall(data + (b"\n" if ended else b""))
        return _uints(_NO_ERROR, len(data))

    def _device_read(self, call: _Xdr, client: socket.socket) -> bytes:
        link, size, timeout_ms = (call.uint() for _ in range(3))
        if link not in self._links:
            return _uints(_INVALID_LINK, 0) + _opaque(b"")
        with self._changed:
            self._changed.wait_for(
                lambda: b"\n" in self._answers or client not in self._clients, timeout_ms / 1e3
            )
            if b"\n" not in self._answers:
                return _uints(_IO_TIMEOUT, 0) + _opaque(b"")
            message, _, _ = self._answers.partition(b"\n")
            data = bytes(message + b"\n")[:size]
            del self._answers[: len(data)]
        return _uints(_NO_ERROR, _REASON_END if data.endswith(b"\n") else _REASON_COUNT) + _opaque(data)

    def _device_clear(self) -> None:
        """Tell the instrument, and wait a moment until it has heard."""
        with self._changed:
            self._clears_pending += 1
        self._outside.sendall(DEVICE_CLEAR)
        with self._changed:
            self._changed.wait_for(lambda: self._clears_pending <= 0, 2.0)


def _accepted(xid: int, status: int, result: bytes = b"") -> bytes:
    """A reply record: accepted, no verifier, status and result."""
    return _uints(xid, 1, 0, 0, 0, status) + result


def _receive_record(stream: BinaryIO) -> bytes | None:
    """One record of marked fragments (RFC 5531 section 11); None at the end or when it is far too long."""
    record, mark = b"", 0
    while not mark & 0x80000000:
        header = stream.read(4)
        mark = int.from_bytes(header)
        size = mark & 0x7FFFFFFF
        if len(header) < 4 or len(record) + size > _LONGEST_RECORD:
            return None
        fragment = stream.read(size)
        if len(fragment) < size:
            return None
        record += fragment
    return record

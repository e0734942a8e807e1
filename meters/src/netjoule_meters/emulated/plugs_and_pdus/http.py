# SPDX-License-Identifier: Apache-2.0
"""A small HTTP/1.1 server for emulated sockets (RFC 9112), with Basic and Digest passwords. Sans-IO.

It answers GET, one page per connection, as the small servers in such devices do.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import BytesParser
from http import HTTPStatus

# A line with HTTP/1 in it is no header but the beginning of the next request, after a client that went away.
_REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n((?:(?![^\r\n]*HTTP/1\.)[^\r\n]+\r\n)*)\r\n")
_LARGEST_REQUEST = 16384
_REALM = "emulated"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    body: bytes
    status: int = 200
    kind: str = "application/json"


@dataclass(frozen=True, slots=True)
class Login:
    """User name and password that a server asks for, and how: basic or digest."""

    username: str
    password: str
    scheme: str = "basic"

    @property
    def challenge(self) -> str:
        """The header that asks."""
        if self.scheme == "basic":
            return f'Basic realm="{_REALM}"'
        nonce = hashlib.sha256(_REALM.encode()).hexdigest()[:16]  # constant: an emulation has no thieves
        return f'Digest qop="auth", realm="{_REALM}", nonce="{nonce}", algorithm=SHA-256'

    def allows(self, method: str, target: str, authorisation: str) -> bool:
        """Whether the header ``Authorization`` proves the password."""
        if self.scheme == "basic":
            token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            return authorisation == f"Basic {token}"
        fields = dict(re.findall(r'(\w+)="?([^",]*)"?', authorisation))
        secret = _sha256(f"{self.username}:{_REALM}:{self.password}")
        parts = (secret, *(fields.get(name, "") for name in ("nonce", "nc", "cnonce", "qop")))
        wanted = _sha256(":".join((*parts, _sha256(f"{method}:{target}"))))
        return fields.get("uri") == target and fields.get("response") == wanted


class HttpServer:
    """Requests in, answers out; ``pages`` makes the page of a path with its query, failing or not."""

    fail = False

    def __init__(self, pages: Callable[[str], Page | None], login: Login | None = None) -> None:
        self._pages = pages
        self._login = login
        self._received = b""

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        self._received = (self._received + data)[-_LARGEST_REQUEST:]

    def answers(self) -> bytes:
        """Answers to the requests that are whole; rests of broken ones are forgotten with the next."""
        output = b""
        while (request := _REQUEST.search(self._received)) is not None:
            self._received = self._received[request.end() :]
            method, target = request[1].decode("ascii"), request[2].decode("ascii", "replace")
            headers = BytesParser().parsebytes(request[3], headersonly=True)
            output += self._response(method, target, str(headers.get("authorization", "")))
        return output

    def _response(self, method: str, target: str, authorisation: str) -> bytes:
        extra = ""
        page = Page(b"", 405, "text/plain")
        if self._login is not None and not self._login.allows(method, target, authorisation):
            page, extra = Page(b"", 401, "text/plain"), f"WWW-Authenticate: {self._login.challenge}\r\n"
        elif method == "GET":
            page = self._pages(target) or Page(b"not found", 404, "text/plain")
        head = (
            f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}\r\nContent-Type: {page.kind}\r\n"
            f"Content-Length: {len(page.body)}\r\n{extra}Connection: close\r\n\r\n"
        )
        return head.encode("ascii") + page.body


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

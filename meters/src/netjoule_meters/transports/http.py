# SPDX-License-Identifier: Apache-2.0
"""Pages of a networked socket over HTTP or HTTPS (httpx; RFC 9110).

A request is the path of a page, with its query; an empty one is the resource itself. Each page has a
connection of its own: sockets have few, and one that restarts would leave a dead one behind. Proxies of the
environment are not used: a meter stands on the laboratory's own network.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, urlsplit

from netjoule_meters.clock import Clock
from netjoule_meters.errors import ConnectionLost, GarbageReply, UsageError
from netjoule_meters.secret import check_reference, look_up
from netjoule_meters.transports.event_loop import EventLoopSource

if TYPE_CHECKING:
    import httpx

_LARGEST_PAGE = 1 << 20
_UNAUTHORISED, _FORBIDDEN, _NOT_FOUND, _FIRST_ERROR, _FIRST_SERVER_ERROR = 401, 403, 404, 400, 500


class HttpSource(EventLoopSource):
    """Pages under one address."""

    library = ("httpx", "httpx")

    def __init__(
        self,
        resource: str,
        *,
        clock: Clock,
        username: str | None = None,
        password: str | None = None,
        verify_certificate: bool = True,
    ) -> None:
        super().__init__(resource, clock=clock)
        parts = _split(resource)
        if "@" in parts.netloc:
            raise UsageError(
                "a user name or password does not belong into a resource: "
                "use the settings username and password (env:NAME or file:PATH)"
            )
        self._where = parts.netloc
        self._username = username
        self._password = check_reference("password", password)
        self._verify = verify_certificate if parts.scheme == "https" else False
        self._client: httpx.AsyncClient | None = None

    async def _begin(self) -> None:
        import httpx

        from netjoule_meters.transports.http_auth import ChallengedAuth

        password = "" if self._password is None else look_up("password", self._password)
        known = self._username is not None or self._password is not None
        self._client = httpx.AsyncClient(
            auth=ChallengedAuth(self._username or "admin", password) if known else None,
            headers={"connection": "close"},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=None,  # noqa: S113 - each wait has its end in EventLoopSource
            trust_env=False,
            verify=self._verify,
        )

    async def _answer(self, request: str, timeout_s: float) -> bytes:
        import httpx

        if self._client is None:
            raise ConnectionLost(f"{self.resource} is not open")
        url = self.resource.rstrip("/") + request if request else self.resource
        try:
            async with self._client.stream("GET", url) as response:
                self._check_status(response.status_code, request)
                return await self._page(response)
        except httpx.RemoteProtocolError as error:
            if "disconnected" in str(error):
                raise ConnectionLost(
                    f"{self._where} hung up without an answer; it may not speak HTTP"
                ) from error
            raise GarbageReply(f"{self._where} does not speak HTTP ({error})") from error
        except httpx.TransportError as error:
            raise ConnectionLost(f"{self._where} cannot be reached: {_reason(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise GarbageReply(f"{self._where}: {error}") from error

    async def _end(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _check_status(self, status: int, request: str) -> None:
        """Raise GarbageReply with the next step for a page that is none."""
        page = request or "the page"
        if status == _UNAUTHORISED and self._password is None:
            raise GarbageReply(
                f"HTTP 401: {self._where} wants a password; set username and password (env:NAME or file:PATH)"
            )
        if status in (_UNAUTHORISED, _FORBIDDEN):
            raise GarbageReply(f"HTTP {status}: {self._where} refuses this user name and password")
        if status == _NOT_FOUND:
            raise GarbageReply(
                f"HTTP 404: {self._where} has no {page}; choose the preset of this device, "
                "and switch the interface on in its settings"
            )
        if status >= _FIRST_SERVER_ERROR:
            raise GarbageReply(f"HTTP {status} from {self._where} for {page}; restart the device if it stays")
        if status >= _FIRST_ERROR or status // 100 != 2:
            raise GarbageReply(f"HTTP {status} from {self._where} for {page}")

    async def _page(self, response: httpx.Response) -> bytes:
        page = bytearray()
        async with contextlib.aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as pieces:
            async for piece in pieces:
                page += piece
                if len(page) > _LARGEST_PAGE:
                    raise GarbageReply(f"the page of {self._where} is over {_LARGEST_PAGE} bytes: no reading")
        return bytes(page)


def _split(resource: str) -> SplitResult:
    """The parts of an address; raise UsageError when it is none."""
    try:
        parts = urlsplit(resource)
        is_one = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, or a port that is no number up to 65535
        is_one = False
    if not is_one:
        raise UsageError(f"'{resource}' does not name a host: write http://HOST or https://HOST:PORT")
    return parts


def _reason(error: Exception) -> str:
    """The innermost cause, which names the trouble; httpx's own text does not."""
    text, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:
        text, cause = str(cause) or text, cause.__cause__ or cause.__context__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its certificate is not trusted (verify_certificate: false accepts a self-signed one)"
    return text or type(error).__name__

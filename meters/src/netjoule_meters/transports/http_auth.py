# SPDX-License-Identifier: Apache-2.0
"""A password for HTTP in the scheme that the device asks for: Basic (RFC 7617) or Digest (RFC 7616).

Nothing is sent before it is asked for: a device that wants Digest never sees the password itself.
"""

from __future__ import annotations

from collections.abc import Generator

import httpx


class ChallengedAuth(httpx.Auth):
    """Answers the first challenge, then keeps to its scheme."""

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self._chosen: httpx.Auth | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Requests to send for one page; see httpx."""
        if self._chosen is None:
            response = yield request
            if response.status_code != httpx.codes.UNAUTHORIZED:
                return
            challenge = response.headers.get("www-authenticate", "").lower()
            kind = httpx.DigestAuth if challenge.startswith("digest") else httpx.BasicAuth
            self._chosen = kind(self._username, self._password)
        yield from self._chosen.auth_flow(request)

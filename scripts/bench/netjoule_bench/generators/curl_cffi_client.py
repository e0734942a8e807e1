# SPDX-License-Identifier: Apache-2.0
"""Fetches a file over HTTP/3 by libcurl (curl_cffi: ngtcp2 and nghttp3), drops it, prints its bytes.

    curl_cffi_client.py requests|bare URL CA_FILE

`requests` as its users do, in pieces of a streamed response; `bare` with a callback of libcurl's own handle.
"""

import sys

from curl_cffi import Curl, CurlHttpVersion, CurlOpt, requests


def by_requests(url: str, ca_file: str) -> int:
    """Bytes received. Raises HTTPError when it fails."""
    with requests.Session(http_version=CurlHttpVersion.V3ONLY, verify=ca_file) as session:
        response = session.get(url, stream=True)
        response.raise_for_status()
        return sum(map(len, response.iter_content()))


def bare(url: str, ca_file: str) -> int:
    """Bytes received. Raises CurlError when it fails."""
    received = 0

    def dropped(data: bytes) -> int:
        nonlocal received
        received += len(data)
        return len(data)

    curl = Curl()
    curl.setopt(CurlOpt.URL, url.encode())
    curl.setopt(CurlOpt.CAINFO, ca_file.encode())
    curl.setopt(CurlOpt.HTTP_VERSION, CurlHttpVersion.V3ONLY)
    curl.setopt(CurlOpt.FAILONERROR, 1)
    curl.setopt(CurlOpt.WRITEFUNCTION, dropped)
    curl.perform()
    return received


if __name__ == "__main__":
    print({"requests": by_requests, "bare": bare}[sys.argv[1]](*sys.argv[2:]))

# SPDX-License-Identifier: Apache-2.0
"""HTTPS with the self-signed certificate that such devices have."""

from __future__ import annotations

import datetime
import http.server
import ssl
import threading

import pytest
from golden_sentences import raises

from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import NoAnswer
from netjoule_meters.meter_factory import build_meter


class Page(http.server.BaseHTTPRequestHandler):
    """Answers every GET with one reading."""

    def do_GET(self):
        body = b'{"p": 12.5}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def certificate(tmp_path):
    """A key and a certificate that nobody signed but itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "socket")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(start).not_valid_after(start.replace(year=2099))
    signed = builder.sign(key, hashes.SHA256())
    path = tmp_path / "device.pem"
    text = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(key.private_bytes(*text) + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def device(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Quiet(http.server.HTTPServer):
        """A client that refuses the certificate is no news."""

        def handle_error(self, request, client_address):
            """Say nothing."""

    with Quiet(("127.0.0.1", 0), Page) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(60)


def meter_at(resource, **settings):
    settings = {"request": "/", "power_path": "/p", "update_interval_s": 0.02, **settings}
    return build_meter(MeterConfig("m1", "client", "socket", resource, settings), clock=SystemClock())


def test_a_certificate_that_nobody_signed_is_refused_with_the_next_step(device):
    meter = meter_at(device)
    with raises(NoAnswer):
        meter.open()
    meter.close()


def test_it_is_accepted_on_request(device):
    meter = meter_at(device, verify_certificate=False)
    meter.open()
    assert meter.read().power_w == 12.5
    meter.close()

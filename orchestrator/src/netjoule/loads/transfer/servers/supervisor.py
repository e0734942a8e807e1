# SPDX-License-Identifier: Apache-2.0
"""Runs on the server: brings a web server up with files, certificates and a configuration of its own.

One file of Python 3.9 and its library, copied to a lab's hosts. One JSON object a line. On stdin the request
{folder, fill, configuration, names, argv, version_argv, environment, address, http_port, https_port, route},
then its end. On stdout the event ``ready`` with the server's version, its test CA and what it serves, or
``error``; then silence, but for ``error`` when the server ends.

It is started in a private folder (private_folder.py), whose namespaces end the server with it. The server
runs as an ordinary user, even where this program is root's.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

READY_S = 20.0
_LOOK_S = 0.05
_NOBODY = 65534
_LAST_WORDS = 400
_SBIN = "/usr/sbin:/sbin"  # where an ordinary user's PATH does not lead
_TLS = """\
[req]
distinguished_name = none
[none]
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = {names}
"""


class Failed(Exception):
    """What went wrong, in a sentence."""


def say(event: str, **fields: Any) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def run(argv: list[str], **options: Any) -> str:
    """What a short program prints, on stdout and stderr. Raises Failed with its last line."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            **options,
        )
    except OSError as error:
        raise Failed(f"cannot start {argv[0]}: {error.strerror}") from error
    said: str = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        last = (said.splitlines() or ["without an error message"])[-1]
        raise Failed(f"{Path(argv[0]).name} ended with code {done.returncode}: {last}")
    return said


# -- the folder, the files, the certificates ------------------------------------------------------


def whole_host() -> bool:
    """Whether this root may become any user: it may not in a user namespace that has no other one."""
    rows = [list(map(int, row.split())) for row in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= _NOBODY < first + count for first, _, count in rows)


def as_ordinary_user() -> list[str]:
    """What starts a program as an ordinary user."""
    if whole_host():
        return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--"]
    return ["unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}", "--"]


def lay_out(request: dict[str, Any]) -> None:
    """Fill the folder: configuration, certificates, what is served."""
    folder = Path(request["folder"])
    for name in ("state", "tls", "files"):
        (folder / name).mkdir()
    for name, text in request["configuration"].items():
        (folder / name).write_text(text, encoding="utf-8")
    certify(folder / "tls", request["names"])
    run(request["fill"], cwd=folder / "files")
    if whole_host():
        for place in (folder / "state", folder / "tls/server.key"):
            os.chown(place, _NOBODY, _NOBODY)


def certify(folder: Path, names: list[str]) -> None:
    """A test CA and a certificate by it for these names and addresses; the CA's key does not stay."""
    (folder / "openssl.cnf").write_text(_TLS.format(names=", ".join(map(alternative, names))))
    common = ["openssl", "req", "-x509", "-config", "openssl.cnf", "-newkey", "ec", "-noenc", "-days", "2"]
    common += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    for name, subject, issuer in (
        ("ca", "/CN=netjoule test CA", []),
        ("server", f"/CN={names[0]}", ["-CA", "ca.pem", "-CAkey", "ca.key"]),
    ):
        out = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        run([*common, *issuer, "-extensions", name, "-subj", subject, *out], cwd=folder)
    (folder / "ca.key").unlink()


def alternative(name: str) -> str:
    """A name or an address as subjectAltName has it."""
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"


# -- the route -------------------------------------------------------------------------------------


class PinnedRoute:
    """A route to one client whose connections have a congestion control of their own; None pins nothing."""

    def __init__(self, asked: dict[str, str] | None) -> None:
        """`asked`: to (an address) and congestion_control."""
        self._route: list[str] = []
        self._before: list[str] = []
        if not asked:
            return
        self._before = run(["ip", "route", "show", "exact", asked["to"]]).split()
        (found,) = json.loads(run(["ip", "-j", "route", "get", asked["to"]]))
        route = [asked["to"], *(("via", found["gateway"]) if "gateway" in found else ())]
        route += ["dev", found["dev"], *(("src", found["prefsrc"]) if "prefsrc" in found else ())]
        run(["ip", "route", "replace", *route, "congctl", asked["congestion_control"]])
        self._route = route

    def undo(self) -> None:
        """Take it away."""
        if self._before:
            run(["ip", "route", "replace", *self._before])
        elif self._route:
            run(["ip", "route", "del", *self._route])


# -- the server ------------------------------------------------------------------------------------


def answers(request: dict[str, Any], file: str, context: ssl.SSLContext) -> str:
    """Nothing once plain HTTP and TLS both have a file, else what is missing."""
    address, timeout_s = request["address"], 5.0
    for connection in (
        http.client.HTTPConnection(address, request["http_port"], timeout=timeout_s),
        http.client.HTTPSConnection(address, request["https_port"], timeout=timeout_s, context=context),
    ):
        try:
            connection.request("HEAD", "/" + file)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return f"port {connection.port}: {error}"
        finally:
            connection.close()
        if status != http.client.OK:
            return f"port {connection.port}: HTTP status {status}"
    return ""


def last_words(folder: Path) -> str:
    """The end of the server's own log, one line."""
    try:
        lines = (folder / "state/error.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join(lines[-3:])[-_LAST_WORDS:]


def start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start the server and wait until it answers. Raises Failed."""
    folder = Path(request["folder"])
    environment = {**os.environ, **request["environment"]}
    try:
        # What it prints belongs to this program's stderr: stdout is the events'.
        argv = [*as_ordinary_user(), *request["argv"]]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=2, env=environment)
    except OSError as error:
        raise Failed(f"cannot start {request['argv'][0]}: {error.strerror}") from error
    context = ssl.create_default_context(cafile=str(folder / "tls/ca.pem"))
    file = served(folder)[0]["name"]
    end_s = time.monotonic() + READY_S
    while True:
        missing = answers(request, file, context)
        if not missing:
            return child
        if child.poll() is not None:
            raise Failed(f"the server ended with code {child.returncode}: {last_words(folder)}")
        if time.monotonic() > end_s:
            raise Failed(f"the server did not answer in {READY_S:g} s ({missing}): {last_words(folder)}")
        time.sleep(_LOOK_S)  # no web server says when it answers: it is asked


def served(folder: Path) -> Any:
    """Name and size of every file, as the manifest has them."""
    return json.loads((folder / "files/manifest.json").read_text(encoding="utf-8"))["files"]


def serve(request: dict[str, Any]) -> None:
    """Serve until stdin ends. Raises Failed when the server ends before."""
    folder = Path(request["folder"])
    lay_out(request)
    version = run(request["version_argv"])
    route = PinnedRoute(request["route"])
    ends: queue.Queue[str] = queue.Queue()

    def until_server_ends() -> None:
        ends.put(f"the server ended with code {child.wait()}: {last_words(folder)}".rstrip(": "))

    def until_stdin_ends() -> None:
        sys.stdin.read()
        ends.put("")

    try:
        child = start(request)
        ca_pem = (folder / "tls/ca.pem").read_text()
        say("ready", version=version, ca_pem=ca_pem, files=served(folder))
        for wait in (until_server_ends, until_stdin_ends):
            threading.Thread(target=wait, daemon=True).start()
        problem = ends.get()
    finally:
        route.undo()
    if problem:
        raise Failed(problem)


def main() -> int:
    """Serve one request; the exit code."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    request = json.loads(sys.stdin.readline())
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), _SBIN])
    try:
        serve(request)
    except Failed as error:
        say("error", message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Connections and bytes of a namespace, over a pair of real ones in a user namespace of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, socket, subprocess, sys, time
from pathlib import Path
from netjoule_devices.traffic import NamespaceTraffic

def run(*words):
    subprocess.run(words, check=True)

peer = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
peer.stdout.readline()
inside = ["nsenter", "-n", "-t", str(peer.pid)]
run("ip", "link", "set", "lo", "up")
run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(peer.pid))
run("ip", "address", "add", "10.9.0.1/24", "dev", "here")
run("ip", "address", "add", "fd09::1/64", "dev", "here", "nodad")
run("ip", "link", "set", "here", "up")
run(*inside, "ip", "address", "add", "10.9.0.2/24", "dev", "there")
run(*inside, "ip", "address", "add", "fd09::2/64", "dev", "there", "nodad")
run(*inside, "ip", "link", "set", "there", "up")
server = socket.create_server(("10.9.0.1", 8000))
server6 = socket.create_server(("fd09::1", 8000), family=socket.AF_INET6)
local = socket.create_server(("127.0.0.1", 8000))
over_udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
over_udp.bind(("10.9.0.1", 8000))
traffic = NamespaceTraffic(Path(f"/proc/{peer.pid}/ns/net"))
own = NamespaceTraffic(Path("/proc/self/ns/net"))
client = subprocess.Popen([*inside, sys.executable, "-c", '''
import socket
many = [socket.create_connection((host, 8000)) for host in ("fd09::1", *["10.9.0.1"] * 4)]
udp = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for one in udp[:2]:
    one.connect(("10.9.0.1", 8000))
print("open", flush=True)
while True:
    for one in many[:3]:
        one.recv(1 << 20)
    for count in (0, 1, 50):  # each answer says that so many were taken in
        for _ in range(count):
            udp[0].recv(100)
        udp[0].send(b"?")
'''], stdout=subprocess.PIPE)
client.stdout.readline()
near = socket.create_connection(("127.0.0.1", 8000)), local.accept()[0]
ends = [server6.accept()[0], *(server.accept()[0] for _ in range(4))]
while traffic.advance(time.monotonic_ns()).connections:  # their handshakes count for a while
    pass
for one in ends[:3]:
    one.sendall(bytes(100_000))
near[0].sendall(bytes(100_000))
received_bytes = 0
while received_bytes < 300_000:
    moved = traffic.advance(time.monotonic_ns())
    received_bytes += moved.received_bytes
found = [moved.connections, received_bytes, own.advance(time.monotonic_ns()).connections]
asked = over_udp.recvfrom(100)[1]
while traffic.advance(time.monotonic_ns()).connections:
    pass
counts = []
for count in (1, 50):
    for _ in range(count):
        over_udp.sendto(b"!", asked)
    over_udp.recvfrom(100)
    counts.append(traffic.advance(time.monotonic_ns()).connections)
while traffic.advance(time.monotonic_ns()).connections:
    pass
found += counts
client.kill()
peer.kill()
print(json.dumps(found))
"""


def test_connections_count_while_they_move_bytes_and_bytes_as_the_interfaces_receive_them() -> None:
    argv = ["unshare", "-rn", sys.executable, "-c", SCRIPT]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert told.returncode == 0, told.stderr
    moving, received_bytes, of_both_ends, greeted, over_quic = json.loads(told.stdout)
    assert moving == 3  # of five that are open and had come to rest
    assert 300_000 < received_bytes < 330_000  # of the three, with headers
    assert of_both_ends == 3  # the fourth, inside of the namespace, does not count
    assert over_quic == 2  # of three sockets those with a peer, the one that got a datagram and the other
    assert greeted == 0  # one datagram is no transfer

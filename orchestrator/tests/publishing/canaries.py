# SPDX-License-Identifier: Apache-2.0
"""A finished campaign with canaries: names of every kind in every place where such names come to stand.

Each canary stands in some file in the way that netjoule, a program or an instrument would have written it.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import synthetic

from netjoule.publishing.identifiers import Kind
from netjoule.store.campaign import Campaign
from netjoule.topology.topology import Topology

SSID = 'Kanari\'s "Küche" Netz'
SSID_IN_TEXT = 'Nachbar "Straße" 5'
HOST = "kanarihost-7f3a"
DOMAIN = "kanarilab.example.org"
SERVER = "kanaribox"
SECRET_VARIABLE = "KANARI_PASSPHRASE"
SECRET_VALUE = "kanari secret phrase"
EUI64 = "fe80::ca:feff:fe00:1"  # of the first MAC address

CANARIES: dict[Kind, tuple[str, ...]] = {
    Kind.SSID: (
        SSID,
        SSID_IN_TEXT,
        "kanari hidden net",
        "kanari alpha net",
        "kanari beta net",
        "kanari gamma net",
        "kanari delta net",
        "20242024",
    ),
    Kind.MAC: ("02:ca:fe:00:00:01", "02-CA-FE-00-00-02", "02ca.fe00.0003", "02:ca:fe:00:00:04"),
    Kind.IP: ("10.123.45.67", "10.123.46.1", "172.31.9.9", "2001:db9:ca::ffee", "fe80::ca9a:71"),
    Kind.HOST: (
        HOST,
        f"{HOST}.{DOMAIN}",
        SERVER,
        "kanariprinter.kanarioffice.example.net",
        "kanaripdu",
        "qz7",
    ),
    Kind.USER: ("kanariuser", "kanarihomer", "kanarimailer", "kanarisudo", "kanariwin", "zq"),
    Kind.SERIAL: ("KNRI55512A", "987650123", "A50KNRI7", "C2KNRI991"),
}
"""By kind; short ones are searched for as words."""

SECRETS = (SECRET_VALUE, "kanari-psk-1", "kanariurlpass", "kanaritoken12345", "KANARIKEYBYTES")
SECRETS += ("kanarinested1", "31415926535")

_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nKANARIKEYBYTES\n-----END OPENSSH PRIVATE KEY-----"

TOPOLOGY: dict[str, Any] = {
    "schema_version": 1,
    "name": f"rack-of-{HOST}",
    "kind": "lab",
    "description": f"Bench of kanariuser; /home/kanarihomer/notes, http://{HOST}.{DOMAIN}/wiki and doi.org.",
    "hosts": {
        HOST: {
            "roles": ["client"],
            "control_address": f"{HOST}.{DOMAIN}",
            "ssh": {
                "user": "kanariuser",
                "port": 2222,
                "identity_file": "/home/kanarihomer/.ssh/id_kanaribox",
                "known_hosts": "~kanarihomer/.ssh/known_hosts",
                "become": True,
            },
            "test_addresses": {"ipv4": "10.123.45.67/25", "ipv6": "2001:db9:ca::ffee"},
            "radio": {"interface": "wlx02cafe000001"},
            "routes": [
                {"to": "10.123.46.0/24", "via": "10.123.45.1"},
                {"to": "2001:db9:cb::/64", "via": "2001:db9:ca::1"},
            ],
        },
        "access_point": {
            "roles": ["access_point"],
            "control_address": "172.31.9.1",
            "radio": {"interface": "wlan0", "addresses": ["10.123.45.1/25", "2001:db9:ca::1/64"]},
            "wired": {"interface": "enp3s0", "addresses": ["10.123.46.1/24", "2001:db9:cb::1/64"]},
        },
        SERVER: {
            "roles": ["server"],
            "control_address": "172.31.9.9",
            "test_addresses": {"ipv4": "10.123.46.2", "ipv6": "2001:db9:cb::2"},
            "wired": {"interface": "enp3s0"},
            "routes": [
                {"to": "10.123.45.0/25", "via": "10.123.46.1"},
                {"to": "2001:db9:ca::/64", "via": "2001:db9:cb::1"},
            ],
        },
        "qz7": {"roles": ["meter_host"], "control_address": "172.31.9.3"},
    },
    "wifi": {
        "ssid": SSID,
        "passphrase": f"env:{SECRET_VARIABLE}",
        "country": "DE",
        "mode": "11n",
        "width_mhz": 40,
        "channel": 36,
        "security": "wpa2",
    },
    "traffic_secret": "file:/home/kanarihomer/traffic-secret",
    "meters": [
        {
            "meter_id": f"{HOST}-power",
            "node": HOST,
            "host": "qz7",
            "adapter": "wt210",
            "resource": "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50KNRI7-if00-port0",
            "settings": {"voltage_range_v": 15, "current_range_a": 1, "password": f"env:{SECRET_VARIABLE}"},
            "serial": "KNRI55512A",
            "calibration": "/home/kanarihomer/calibration-KNRI55512A.json",
        },
        {
            "meter_id": "socket",
            "node": SERVER,
            "adapter": "socket",
            "resource": "tcp:kanaripdu:5025",
            "settings": {"username": "kanariuser", "request": "USB0::0x0B21::0x0025::C2KNRI991::INSTR"},
        },
    ],
}

IN_CSV = json.dumps(
    {"ssid": "kanari hidden net", "bssid": "02:ca:fe:00:00:04", "host": HOST, "serial": 987650123}
)

MESSAGES = (
    "cannot open /home/kanarihomer/run/log: permission denied for user kanarisudo",
    r"C:\Users\kanariwin\AppData and /home/zq/x",
    f"kanarimailer@{HOST}.{DOMAIN}: Permission denied (publickey)",
    f"{HOST.upper()} ({HOST}.{DOMAIN}) did not answer on [2001:DB9:CA:0:0:0:0:FFEE]:5301",
    f"neighbour {EUI64}%wlx02cafe000001 and fe80::ca9a:71%wlan0: no route, 10.123.45.67:5301 refused",
    "kanariprinter.kanarioffice.example.net sends noise; host 'kanaripdu' is silent",
    "associated with 02-CA-FE-00-00-02 (was 02ca.fe00.0003), 02CAFE000001 before",
    f"SSID={json.dumps(SSID_IN_TEXT)} is not {json.dumps(SSID)}; repr {SSID!r}",
    IN_CSV,
    f"the keeper said {json.dumps(IN_CSV)}",
    "the YOKOGAWA answered 'YOKOGAWA,WT310,C2KNRI991,F1.02', serial number KNRI55512A",
    f'wpa_supplicant: psk="kanari-psk-1" for {SSID!r}',
    "GET http://kanariuser:kanariurlpass@172.31.9.9/status failed; token: kanaritoken12345",
    f"passphrase {SECRET_VALUE} was refused",
    _KEY,
    "scan: SSID: kanari alpha net",
    "Interface wlan0\n\tssid kanari beta net\n\ttype managed",
    "ssid is kanari gamma net, wanted kanari alpha net",
    "wpa_state=COMPLETED ssid=kanari delta net id=0",
    json.dumps({"ssid": 20242024, "psk": 31415926535, "password": {"value": "kanarinested1"}}),
    "IP 10.123.45.67.5301 > 172.31.9.9.53: UDP",
    "query ?from=fe80%3A%3Aca9a%3A71&ap=02%3Aca%3Afe%3A00%3A00%3A04&at=10-123-45-67",
)


def campaign(path: Path) -> Path:
    """A complete campaign of a lab with canaries; it has no defect."""
    synthetic.finished(path)
    _rename(path)
    document = json.loads((path / "campaign.json").read_text())
    document["topology"] = Topology.from_document(TOPOLOGY, where="test").document
    document["campaign"] = f"kanariuser-on-{HOST}"
    document["workload"]["description"] = f"asked by kanariuser at {HOST}"
    document["radio_source"] = "real"
    document["versions"] |= {
        f"netjoule-traffic on {HOST}": "0.1.0 at /home/kanarihomer/.cache/netjoule/netjoule-traffic",
        f"netjoule-traffic on {SERVER}": "0.1.0",
    }
    document["lab_hosts"] = [
        {
            "host": HOST,
            "session": 1,
            "kernel": "6.1.0",
            "machine": "x86_64",
            "cpu_model": "CPU of the rack",
            "governor": "performance",
            "sysctls": {},
            "offloads": {"wlx02cafe000001": {"generic-receive-offload": "on"}},
        }
    ]
    passport = document["meters"][0]
    passport |= {
        "serial": "KNRI55512A",
        "identification": "YOKOGAWA,760401,KNRI55512A,F1.07",
        "mapping_source": f"read from http://{SERVER}/manual by kanariuser",
    }
    document["meters"].append(passport | {"meter_id": "socket", "node": SERVER, "serial": "987650123"})
    _save(path / "campaign.json", document)
    (path / "meters" / "socket.csv").write_bytes((path / f"meters/{HOST}-power.csv").read_bytes())
    (path / "devices" / "socket.ndjson").write_bytes((path / f"devices/{HOST}-power.ndjson").read_bytes())
    _radio(path)
    _runs(path)
    (path / "notes-of-kanariuser.txt").write_text(f"{SSID}\n")
    (path / ".testbed").write_text("/home/kanarihomer/rack.yaml\n")
    with Campaign.open(path) as opened:
        opened.write_datapackage()
    return path


def _rename(path: Path) -> None:
    """The synthetic campaign's client, server and meter as those of the lab."""
    names = {"client": HOST, "server": SERVER}
    for file in path.rglob("*.json"):
        document = json.loads(file.read_text())
        _save(file, _renamed(document, names))
    for folder, suffix in (("meters", "csv"), ("devices", "ndjson")):
        (path / folder / f"m.{suffix}").rename(path / folder / f"{HOST}-power.{suffix}")
    (path / "radio" / "client.csv").rename(path / "radio" / f"{HOST}.csv")
    clocks = path / "clocks.csv"
    clocks.write_text(clocks.read_text().replace(",client,", f",{HOST},"))


def _renamed(value: Any, names: dict[str, str], field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _renamed(child, names, key) for key, child in value.items()}
    if isinstance(value, list):
        return [_renamed(child, names, field) for child in value]
    if field in ("client", "server", "node", "host"):
        return names.get(value, value)
    return f"{HOST}-power" if field == "meter_id" else value


def _radio(path: Path) -> None:
    """The peers of the client's radio."""
    file = path / "radio" / f"{HOST}.csv"
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    for row in rows:
        row |= {"bssid": "02:ca:fe:00:00:04", "station": "02:ca:fe:00:00:04"}
    with file.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _runs(path: Path) -> None:
    """Events and reasons with messages, and what flow reports tell of hosts."""
    for folder in sorted((path / "runs").iterdir()):
        with (folder / "events.csv").open("a", newline="") as handle:
            csv.writer(handle, lineterminator="\n").writerows(
                [f"{9 + place}.000000", "orchestrator", "run_failed", "", message]
                for place, message in enumerate(MESSAGES)
            )
        run = json.loads((folder / "run.json").read_text())
        run["reasons"] = [{"code": "generator_lagged", "detail": message} for message in MESSAGES]
        _save(folder / "run.json", run)
        flow = json.loads((folder / "flow.json").read_text())
        flow["sender"] |= {"transport_stats": {"peer": f"{SERVER}.{DOMAIN}", "note": IN_CSV}}
        if flow["receiver"] is not None:
            flow["capture"] = {
                "file": "/home/kanarihomer/capture.pcapng",
                "interface": "wlx02cafe000001",
                "filter": "host 10.123.45.67 and host 2001:db9:ca::ffee and port 5301",
                "headers_only": True,
                "packets": 1,
                "bytes": 60,
                "dropped_by_kernel": 0,
                "dropped_by_interface": 0,
            }
            (folder / "capture.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes([10, 123, 45, 67]) * 4)
        _save(folder / "flow.json", flow)


def _save(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")

# SPDX-License-Identifier: Apache-2.0
"""Topologies of real hosts: what users of the loader get, and every fault with its field."""

import copy
from typing import Any

import pytest
import yaml
from lab_topology import GONE, LAB, RANGES, changed
from runner_fakes import workload

from netjoule.core.errors import UsageError
from netjoule.diagnostics import selftest
from netjoule.hosts import ssh
from netjoule.hosts.host import LocalHost
from netjoule.hosts.ssh import SshSettings
from netjoule.loads.flow.host_support import CARRIERS, TRANSPORTS
from netjoule.loads.flow.settings import FlowSettings
from netjoule.testbeds.lab import binaries
from netjoule.topology import topology
from netjoule.topology.hosts import Radio, Route, Wired


def load(tmp_path, document):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return topology.load(path)


def test_hosts_have_their_defaults_filled_in(tmp_path):
    lab = load(tmp_path, LAB)
    assert lab.radio_source == "real"
    assert lab.hosts_with("client") == ("laptop", "board")
    laptop, board, tower = (lab.host(name) for name in ("laptop", "board", "tower"))
    assert laptop.ssh == SshSettings(
        "laptop", LAB["hosts"]["laptop"]["control_address"], user="root", port=22
    )
    assert laptop.service_manager == "systemd"
    assert laptop.radio == Radio("wlp2s0", "iw", 0.5, ("10.77.0.11/24", "fd77::11/64"))
    assert laptop.routes[0] == Route("10.78.0.0/24", "10.77.0.1")
    assert board.ssh == SshSettings("board", "board.control.example", "lab", 2222, "~/.ssh/lab", become=True)
    assert tower.radio is None
    assert tower.wired == Wired("enp3s0", ("10.78.0.2/24", "fd78::2/64"))
    ap = lab.host("ap")
    assert (ap.radio.addresses, ap.wired.addresses) == (
        ("10.77.0.1/24", "fd77::1/64"),
        ("10.78.0.1/24", "fd78::1/64"),
    )


def test_meters_know_who_is_measured_and_where_they_are_plugged_in(tmp_path):
    lab = load(tmp_path, LAB)
    assert [(m.node, m.host, m.power_source) for m in lab.meters] == [
        ("laptop", "shelf", "measured"),
        ("ap", None, "measured"),
    ]


def test_without_wifi_the_testbed_is_wired_and_needs_no_access_point(tmp_path):
    document = changed(("wifi", GONE), ("hosts", {}))
    document["hosts"] = {
        name: {"roles": [name], "control_address": f"192.0.2.{i}", "test_addresses": {"ipv4": f"10.77.0.{i}"}}
        for i, name in enumerate(("client", "server"), start=1)
    }
    document["meters"] = [LAB["meters"][1] | {"node": "client"}]
    lab = load(tmp_path, document)
    assert lab.radio_source == "wired"
    assert load(tmp_path, document | {"kind": "guest"}).radio_source == "wired"


def test_one_machine_may_be_access_point_and_server(tmp_path):
    document = changed(("hosts.tower", GONE), ("hosts.laptop.routes", GONE), ("hosts.board.routes", GONE))
    document["hosts"]["ap"] |= {
        "roles": ["access_point", "server"],
        "test_addresses": {"ipv4": "10.77.0.1", "ipv6": "fd77::1"},
    }
    assert load(tmp_path, document).test_address("ap", "ipv6") == "fd77::1"


def test_the_controller_may_hold_instruments_and_watch(tmp_path):
    roles = ["controller", "meter_host", "observer"]
    assert load(tmp_path, changed(("hosts.shelf.roles", roles), ("meters.0.host", GONE))).host("shelf").roles


def test_a_radio_does_not_watch_on_the_controller(tmp_path):
    desk = {"roles": ["controller"], "control_address": "192.0.2.4", "radio": {"interface": "wlan0"}}
    with pytest.raises(UsageError, match="the controller is no host with a test radio"):
        load(tmp_path, changed(("hosts.desk", desk)))


@pytest.mark.parametrize(
    ("resource", "password"),
    [
        *(("http://192.0.2.1:80/x", form) for form in ("env:PLUG", "file:plug.txt", "vault:plug")),
        ("kasa:board.control.example", "env:PLUG"),
        *((f"http://{at}", "vault:plug") for at in ("10.1.2.3", "172.31.0.1", "192.168.50.40")),
        ("snmp:[fd00::9]:161", "vault:plug"),
    ],
)
def test_a_password_may_go_to_hosts_and_one_of_a_vault_to_private_addresses(tmp_path, resource, password):
    plug = PLUG | {"resource": resource, "settings": {"password": password}}
    assert load(tmp_path, changed(("meters.0", plug))).meters


@pytest.mark.parametrize(
    "resource",
    [
        *("http://[fe80::1%25eth0]:80/a?b=%3B;c", "http://[fe80::1%eth0.5]/%20", "kasa:fe80::1%wlan-0_a"),
        *("snmp:[fe80::1%eth0]:161", "http://192.168.50.40?a=%3B"),
    ],
)
def test_the_zone_of_an_address_is_an_interface(tmp_path, resource):
    plug = PLUG | {"resource": resource, "settings": {}}
    assert load(tmp_path, changed(("meters.0", plug))).meters[0].resource == resource


def test_the_document_survives_json(tmp_path):
    lab = load(tmp_path, LAB)
    assert topology.Topology.from_document(lab.document, where="campaign.json") == lab


ROOT_SHELL = "fd79::1%x\nEND\ntouch /tmp/owned\ncat <<'END'\n"
PLUG = {"meter_id": "plug", "node": "ap", "adapter": "socket", "settings": {"password": "env:GITHUB_TOKEN"}}
CONTROL = "a text with a control character"
FORM = "does not have the form"
OUTSIDE = "a password of this machine would go to an address outside the testbed's hosts"
ZONE = "the zone of the address is no interface's name"
RESOURCE = "meters.0.resource"
V6_ROUTE = {"to": "fd79::/64", "via": "fd78::1"}
BRIDGE = ("wifi.forwarding", "bridging")
FAULTS = [
    ([("hosts.ap.radio.addresses.1", f"{ROOT_SHELL}/64")], "hosts.ap.radio.addresses.1", CONTROL),
    ([("hosts.ap.radio.addresses.1", "fd77::1%wlan0/64")], "hosts.ap.radio.addresses.1", "has a zone"),
    ([("hosts.ap.wired.addresses.1", "fd78::1%;id/64")], "hosts.ap.wired.addresses.1", "has a zone"),
    ([("hosts.board.routes.0.via", ROOT_SHELL)], "hosts.board.routes.0.via", CONTROL),
    ([("hosts.board.routes.0.via", "fd77::1%$(id)")], "hosts.board.routes.0.via", "has a zone"),
    ([("hosts.board.routes.0.to", "fd78::%x/64")], "hosts.board.routes.0.to", "has a zone"),
    ([("hosts.laptop.test_addresses.ipv6", "fd77::b%x")], "hosts.laptop.test_addresses.ipv6", "has a zone"),
    ([("hosts.ap.control_address", "fe80::1%eth0")], "hosts.ap.control_address", "has a zone"),
    ([("hosts.ap.wired.interface", "enp3s0\n")], "hosts.ap.wired.interface", FORM),
    ([("hosts.laptop.ssh", {"user": "lab\n"})], "hosts.laptop.ssh.user", FORM),
    ([("wifi.ssid", "rack\nwpa=0")], "wifi.ssid", CONTROL),
    ([("name", "rack\n")], "name", FORM),
    ([("meters.0.settings", RANGES | {"a\u2028": 1})], "meters.0.settings", CONTROL),
    *(
        ([("meters.0", PLUG | {"resource": resource})], "meters.0.resource", ZONE)
        for resource in (
            *("http://[fe80::1%25eth0;id]", "http://[fe80::1%25eth0;id]:80/", "snmp:[fe80::1%$(id)]:161"),
            *("kasa:fe80::1%a b", "kasa:fe80::1%", "http://192.168.50.40%`id`/x"),
        )
    ),
    *(
        ([("meters.0", {**PLUG, "resource": there, "settings": {"password": form}})], RESOURCE, OUTSIDE)
        for form in ("env:GITHUB_TOKEN", "file:/etc/shadow", "vault:mail")
        for there in (
            *("http://169.254.169.254", "http://100.64.0.1", "http://127.0.0.1:8080", "http://[::1]"),
            *("http://[fe80::1%25eth0]", "http://0.0.0.0", "kasa:localhost", "http://198.18.0.1"),
            *("http://203.0.113.5", "http://[::ffff:169.254.169.254]", "http://[64:ff9b::a9fe:a9fe]"),
            *(
                "http://evil.example/",
                "https://203.0.113.9.evil.example",
                "http://8.8.8.8",
                "kasa:evil.example",
            ),
            *("snmp:[2606:4700::1111]:161", "http:////evil.example", "http://192.0.2.1#.evil.example"),
            *("http://192.0.2.1\\.evil.example", "HTTP://evil.example", "visa:TCPIP::evil.example::INSTR"),
        )
    ),
    *(
        ([("meters.0", {**PLUG, "resource": there, "settings": {"password": form}})], RESOURCE, OUTSIDE)
        for form in ("env:GITHUB_TOKEN", "file:/etc/shadow")
        for there in ("http://192.168.50.40", "snmp:[fd00::9]:161", "http://10.0.0.1", "kasa:172.16.0.9")
    ),
    *(
        ([(f"hosts.{name}", host), ("meters.0", PLUG | {"resource": "http://8.8.8.8"})], RESOURCE, OUTSIDE)
        for name, host in (
            ("desk", {"roles": ["controller"], "control_address": "8.8.8.8"}),
            ("shelf", {"roles": ["observer"], "control_address": "8.8.8.8", "ssh": {"address": "192.0.2.3"}}),
        )
    ),
    ([("hosts.ap.control_address", GONE)], "hosts.ap", "'control_address' is missing"),
    ([("hosts.ap.control_address", "192.0.2.2")], "hosts.tower", "both reached at 192.0.2.2, port 22"),
    ([("hosts.ap.control_address", "10.77.0.200")], "hosts.ap.control_address", "lies in the test network"),
    ([("hosts.laptop.test_addresses", GONE)], "hosts.laptop", "'test_addresses' is missing"),
    ([("hosts.laptop.radio", GONE)], "hosts.laptop", "'radio' is missing"),
    ([("hosts.laptop.radio.addresses", ["10.77.0.9/24"])], "hosts.laptop.radio.addresses", "only an access"),
    ([("hosts.laptop.radio.every_s", 0)], "hosts.laptop.radio.every_s", "below the least allowed 0.1 s"),
    ([("hosts.laptop.ssh", {"password": "x"})], "hosts.laptop.ssh.password", "unknown field; known here"),
    ([("hosts.laptop.test_addresses.ipv4", "10.77.0.12")], "hosts.board.test_addresses.ipv4", "given twice"),
    ([("hosts.laptop.test_addresses.ipv4", "fd77::5")], "hosts.laptop.test_addresses.ipv4", "not an ipv4"),
    ([("hosts.ap.radio.addresses", ["10.77.0.1"])], "hosts.ap.radio.addresses.0", "has no prefix length"),
    ([("hosts.ap.wired.addresses", ["10.78.0.x/24"])], "hosts.ap.wired.addresses.0", "is not an address"),
    ([("hosts.ap.wired.interface", "wlan0")], "hosts.ap.wired.interface", "cable and radio are one"),
    ([("hosts.tower.routes", GONE)], "hosts.tower.test_addresses.ipv4", "tower (10.78.0.2) has no way to"),
    ([("hosts.board.routes", GONE)], "hosts.board.test_addresses.ipv4", "board (10.77.0.12) has no way to"),
    ([("hosts.board.routes.0.to", "10.78.0.1/24")], "hosts.board.routes.0.to", "has host bits set"),
    ([("hosts.board.routes.0.to", "0.0.0.0/0")], "hosts.board.routes.0.to", "default route"),
    ([("hosts.board.routes.0.to", "192.0.2.0/24")], "hosts.board.routes.0.to", "takes control traffic to"),
    ([("hosts.board.routes.0.via", "10.78.0.1")], "hosts.board.routes.0.via", "on no test network of board"),
    (
        [("hosts.tower.test_addresses", {"ipv6": "fd78::2"}), ("hosts.tower.routes.0", V6_ROUTE)],
        "hosts.board.test_addresses",
        "no common family",
    ),
    ([("wifi", GONE)], "hosts.laptop.radio", "no section wifi"),
    ([("hosts.ap.roles", ["observer"])], "hosts", "no host has the role access_point"),
    ([("wifi.country", GONE)], "wifi", "'country' is missing"),
    ([("wifi.country", "de")], "wifi.country", "does not have the form"),
    ([("wifi.country", False)], "wifi.country", "is not text; put the word into quotes"),
    ([("wifi.passphrase", GONE)], "wifi", "'passphrase' is missing"),
    ([("wifi.security", "open")], "wifi.passphrase", "an open network has no passphrase"),
    ([("wifi.width_mhz", 80)], "wifi.width_mhz", "11n has no 80 MHz"),
    ([("wifi.channel", 52)], "wifi.channel", "radar"),
    ([("wifi.rates", "fast")], "wifi.rates", "does not have the form ^automatic$"),
    ([("wifi.rates", {"mcs": [40]})], "wifi.rates.mcs.0", "above the greatest allowed 31"),
    ([("wifi.rates", {"mcs": [10], "streams": 1})], "wifi.rates.mcs", "needs more than 1 stream;"),
    ([("wifi.power_save", "maybe")], "wifi.power_save", "is not one of on, off"),
    ([BRIDGE], "hosts.ap.wired.addresses", "a cable in a bridge has no addresses"),
    ([BRIDGE, ("hosts.ap.wired", GONE)], "hosts.ap", "'wired' is missing"),
    ([("hosts.ap.roles", ["access_point", "client"])], "hosts.ap", "'test_addresses' is missing"),
    ([("hosts.laptop.roles", ["access_point", "client"])], "hosts.laptop.roles", "either a client of"),
    ([("hosts.laptop.radio.interface", "../../etc/x")], "hosts.laptop.radio.interface", "not have the form"),
    ([("hosts.tower.wired.interface", "eth0; reboot")], "hosts.tower.wired.interface", "not have the form"),
    ([("hosts.ap.control_address", "192.168.50.999")], "hosts.ap.control_address", "is not an address"),
    ([("hosts.ap.control_address", "-oProxyCommand=x")], "hosts.ap.control_address", "not have the form"),
    ([("hosts.ap.ssh", {"address": "192.0.2"})], "hosts.ap.ssh.address", "'192.0.2' is not an address"),
    ([("hosts.localhost", {"roles": ["observer"]})], "hosts.localhost", "is a reserved name in Ansible"),
    ([("hosts.server", {"roles": ["observer"]})], "hosts.server", "server is a role, which this host"),
    ([("hosts.tower.roles", ["controller", "server"])], "hosts.tower.roles", "the controller is no server:"),
    ([("hosts.shelf.roles.1", "controller")], "meters.0.host", "a meter on the controller has no host"),
    ([("meters.0.host", "attic")], "meters.0.host", "no host is called 'attic'"),
    (
        [("reservation", {"labgrid": "bench", "power_cycle": {"attic": "attic"}})],
        "reservation.power_cycle.attic",
        "no host that is reached over SSH is called 'attic'",
    ),
    ([("meters.0.host", "tower")], "meters.0.host", "host tower has not the role meter_host"),
    ([("link", {"preset": "ideal-216"})], "link", "a testbed of kind lab has no link"),
    ([("cpus", 1)], "cpus", "a testbed of kind lab has no cpus"),
]


@pytest.mark.parametrize(("changes", "field", "words"), FAULTS, ids=[f"{f[1]}-{f[2][:20]}" for f in FAULTS])
def test_a_fault_is_named_with_line_and_field(tmp_path, changes, field, words):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, changed(*changes))
    assert words in str(caught.value)
    where, _, named = caught.value.where.rpartition(", field ")
    assert named == field
    assert where.startswith(f"{tmp_path / 'lab.yaml'}, line ")


@pytest.mark.parametrize("field", ["ssh", "service_manager", "wired", "routes"])
def test_an_emulated_testbed_has_no_fields_of_real_hosts(tmp_path, field):
    values = {"ssh": {}, "service_manager": "none", "wired": {"interface": "eth0"}, "routes": []}
    with pytest.raises(UsageError, match=f"an emulated testbed has no {field}"):
        load(tmp_path, emulated({field: values[field]}))


def test_only_a_lab_is_reserved(tmp_path):
    with pytest.raises(UsageError, match="kind emulated is made anew each time: nobody has to reserve it"):
        load(tmp_path, emulated({}) | {"reservation": {"labgrid": "bench"}})


def test_hosts_of_an_emulated_testbed_are_namespaces_that_no_password_goes_to(tmp_path):
    plug = PLUG | {"node": "client", "resource": "http://8.8.8.8"}
    with pytest.raises(UsageError, match=OUTSIDE):
        load(tmp_path, emulated({"control_address": "8.8.8.8"}) | {"meters": [plug]})


def emulated(server: dict[str, Any]) -> dict[str, Any]:
    hosts = {
        "client": {"roles": ["client", "access_point"], "test_addresses": {"ipv4": "10.77.0.2"}},
        "server": {"roles": ["server"], "test_addresses": {"ipv4": "10.77.0.1"}, **server},
    }
    meter = {"meter_id": "m", "node": "client", "adapter": "wt210", "resource": "emulated"}
    return {
        "schema_version": 1,
        "name": "e",
        "kind": "emulated",
        "hosts": hosts,
        "link": {"preset": "ideal-216"},
        "meters": [meter | {"device": {"model": "constant"}}],
    }


def test_all_clients_that_take_part_are_asked_what_they_have() -> None:
    where = topology.Topology.from_document(copy.deepcopy(LAB), where="test")
    assert where.ends(1) == ("laptop", "tower")
    assert where.ends(2) == ("laptop", "board", "tower")
    both = FlowSettings.of(workload(transports=["dccp-kernel", "sctp"], clients=2))
    (carrier,), (transport,) = CARRIERS.left_open(both, where), TRANSPORTS.left_open(both, where)
    assert "laptop and board and tower will be asked" in carrier
    assert "laptop and board and tower will be asked" in transport


def test_a_selftest_certifies_every_client_that_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Host(LocalHost):
        def __init__(self, settings: SshSettings, *_: object) -> None:
            super().__init__(settings.name)

        async def connect(self) -> None:
            return None

        close = connect

    async def nothing(*_: object) -> str:
        return ""

    async def certified(host: Host, *_: object, times: int) -> list[dict[str, Any]]:
        return [{"host": host.name, "times": times}]

    monkeypatch.setattr(ssh, "SshHost", Host)
    monkeypatch.setattr(binaries, "provide", nothing)
    monkeypatch.setattr(selftest.NetjouleTraffic, "version", nothing)
    monkeypatch.setattr(selftest, "certify_host", certified)
    where = topology.Topology.from_document(copy.deepcopy(LAB), where="test")
    found = selftest.certify(workload(clients=2), where, 0.1, lambda _line: None)
    # The server has the flows of both clients.
    assert [(one["host"], one["times"]) for one in found] == [("laptop", 1), ("board", 1), ("tower", 2)]

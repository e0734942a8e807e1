# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from netjoule.core.errors import UsageError
from netjoule.topology import topology

SHIPPED = Path(__file__).parents[3] / "testbed-topology.yaml"
GOOD = """\
schema_version: 1
name: t
kind: emulated
hosts:
  client:
    roles: [client]
    test_addresses: {ipv4: 10.77.0.2}
  ap: {roles: [access_point]}
  server:
    roles: [server]
    test_addresses: {ipv4: 10.77.0.1}
link: {preset: ideal-216}
meters:
  - meter_id: m
    node: client
    adapter: wt210
    resource: emulated
    settings: {update_interval_s: 0.1}
    calibration_date: 2026-09-01
    device: {model: constant}
"""


def load(tmp_path, text):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    return topology.load(path)


def test_the_shipped_testbed_is_emulated_and_modelled():
    loaded = topology.load(SHIPPED)
    assert loaded.kind == "emulated"
    assert loaded.radio_source == "link-model"
    assert loaded.host_with("client") == "client"
    assert loaded.host_with("server") == "server"
    assert {m.power_source for m in loaded.meters} == {"modelled"}
    assert all(m.emulated and m.device_model for m in loaded.meters)
    assert loaded.meters[0].update_interval_s == 0.1
    assert loaded.mtu_bytes == 1500


def test_dates_stay_text_and_the_document_survives_json(tmp_path):
    loaded = load(tmp_path, GOOD)
    assert loaded.meters[0].calibration_date == "2026-09-01"
    assert topology.Topology.from_document(loaded.document, where="campaign.json") == loaded


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("node: client", "node: nobody", "line 15, field meters.0.node", "no host is called 'nobody'"),
        ("link: {preset: ideal-216}\n", "", "line 1", "needs a link section"),
        ("preset: ideal-216", "preset: fast", "line 12, field link.preset", "'fast' is not one of"),
        ("    device: {model: constant}\n", "", "line 14, field meters.0", "needs a power model"),
        (
            "resource: emulated",
            "resource: /dev/ttyS0",
            "line 20, field meters.0.device",
            "only an emulated meter",
        ),
        (
            "ap: {roles: [access_point]}",
            "ap: {roles: [observer]}",
            "line 4, field hosts",
            "role access_point",
        ),
        ("    test_addresses: {ipv4: 10.77.0.1}\n", "", "line 9, field hosts.server", "'test_addresses'"),
        ("2026-09-01", "'2026-13-45'", "line 19, field meters.0.calibration_date", "'2026-13-45' is no date"),
        ("    adapter: wt210\n", "", "line 14, field meters.0", "'adapter' is missing"),
        (
            "resource: emulated",
            "resource: http://me:pw@meter/power",
            "line 17, field meters.0.resource",
            "holds credentials",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path, old, new, place, words):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert caught.value.where == f"{tmp_path / 't.yaml'}, {place}"
    assert words in caught.value.what


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("10.77.0.1", "10.77.0.2", "hosts.server.test_addresses.ipv4", "10.77.0.2 is given twice"),
        ("10.77.0.1", "10.78.0.1", "hosts.server.test_addresses.ipv4", "not on one network; use addresses"),
        ("10.77.0.1", "banana.org", "hosts.server.test_addresses.ipv4", "'banana.org' is not an ipv4"),
        ("roles: [client]", "roles: [client, server]", "hosts.client.roles", "server are one host"),
        ("node: client", "node: ap", "meters.0.node", "an emulated meter can only read the client"),
    ],
)
def test_what_the_emulated_link_cannot_be_is_refused_at_once(tmp_path, old, new, field, words):
    with pytest.raises(UsageError, match=words) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert caught.value.where.endswith(f"field {field}")


def with_more_clients(*addresses: str) -> str:
    """Further hosts with the role client, with these addresses."""
    hosts = [
        f"  more-{place}:\n    roles: [client]\n    test_addresses: {{ipv4: {address}}}\n"
        for place, address in enumerate(addresses)
    ]
    return GOOD.replace("  ap: ", "".join(hosts) + "  ap: ")


def test_an_emulated_testbed_may_have_several_clients_each_with_a_meter(tmp_path):
    text = with_more_clients("10.77.0.3").replace("node: client", "node: more-0")
    loaded = load(tmp_path, text)
    assert loaded.hosts_with("client") == ("client", "more-0")
    assert loaded.meters[0].node == "more-0"


@pytest.mark.parametrize(
    ("address", "words"),
    [("10.77.0.2", r"10\.77\.0\.2 is given twice"), ("10.78.0.3", "not on one network; use addresses")],
)
def test_a_further_client_of_the_emulated_link_has_an_address_of_its_own_there(tmp_path, address, words):
    with pytest.raises(UsageError, match=words) as caught:
        load(tmp_path, with_more_clients(address))
    assert caught.value.where.endswith("field hosts.more-0.test_addresses.ipv4")


def test_more_clients_than_the_emulated_link_has_stations_are_refused(tmp_path):
    few, many = ([f"10.77.1.{place}/16" for place in range(1, count)] for count in (32, 33))
    wide = {"10.77.0.2": "10.77.0.2/16", "10.77.0.1}": "10.77.0.1/16}"}
    texts = []
    for addresses in (few, many):
        text = with_more_clients(*addresses)
        for old, new in wide.items():
            text = text.replace(old, new)
        texts.append(text)
    assert len(load(tmp_path, texts[0]).hosts_with("client")) == 32
    with pytest.raises(UsageError, match="33 hosts have the role client; the emulated link takes 32"):
        load(tmp_path, texts[1])


def test_two_meters_of_one_name_are_refused(tmp_path):
    second = GOOD[GOOD.index("  - meter_id") :]
    with pytest.raises(UsageError, match="two meters are called 'm'"):
        load(tmp_path, GOOD + second)


def test_an_emulated_instrument_needs_an_emulated_testbed(tmp_path):
    guest = GOOD.replace("kind: emulated", "kind: guest").replace("link: {preset: ideal-216}\n", "")
    with pytest.raises(UsageError, match="needs a testbed of kind emulated"):
        load(tmp_path, guest)


def test_prefix_lengths_may_be_told(tmp_path):
    loaded = load(tmp_path, GOOD.replace("10.77.0.2", "10.77.0.2/16").replace("10.77.0.1", "10.77.9.1/16"))
    assert loaded.test_address("server", "ipv4") == "10.77.9.1"
    assert loaded.host("client").test_addresses == {"ipv4": "10.77.0.2/16"}
    with pytest.raises(UsageError, match="host server has no ipv6 address"):
        loaded.test_address("server", "ipv6")


LITERALS = [
    "wifi: {ssid: net, passphrase: hunter2-canary}\n",
    "wifi: {ssid: net, passphrase: [hunter2-canary]}\n",
    "wifi: {ssid: net, passphrase: {is: hunter2-canary}}\n",
]


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_secret_is_refused_and_never_shown(tmp_path, literal):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, GOOD + literal)
    assert "by reference" in str(caught.value)
    assert "field wifi.passphrase" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_flows_secret_is_a_reference_and_stays_one(tmp_path):
    assert load(tmp_path, GOOD).traffic_secret is None
    loaded = load(tmp_path, GOOD + "traffic_secret: vault:rack/traffic\n")
    assert loaded.traffic_secret == loaded.document["traffic_secret"] == "vault:rack/traffic"
    with pytest.raises(UsageError, match=r"field traffic_secret: .*by reference") as caught:
        load(tmp_path, GOOD + "traffic_secret: hunter2-canary\n")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["password", "snmp_community", "api_key", "AuthToken", "wifi_psk"])
def test_settings_of_a_meter_take_secrets_by_reference_only(tmp_path, name):
    text = GOOD.replace("update_interval_s: 0.1", f"update_interval_s: 0.1, {name}: hunter2-canary")
    with pytest.raises(UsageError, match="by reference") as caught:
        load(tmp_path, text)
    assert "hunter2" not in str(caught.value)
    loaded = load(tmp_path, text.replace("hunter2-canary", '"env:METER_SECRET"'))
    assert loaded.meters[0].settings[name] == "env:METER_SECRET"

# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
import synthetic

from netjoule import limits, topology, workload
from netjoule.errors import HostLacks, UsageError

ROOT = Path(__file__).parents[2]
LIBRARY = sorted((ROOT / "workloads").glob("*.yaml"))
GOOD = """\
schema_version: 1
name: small
transports: [udp, null]
payload_bytes: [64]
offered_rate_mbps: [0.5, 3]
blocks: 1
timing: {idle_s: 1, settle_s: 0.2, warm_up_s: 1, measure_s: 2, tail_s: 0.3}
"""


def write(tmp_path, text):
    path = tmp_path / "w.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def emulated():
    return topology.load(ROOT / "testbed-topology.yaml")


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: p.stem)
def test_every_workload_of_the_library_fits_the_shipped_testbed(path, emulated):
    loaded = workload.load(path)
    assert loaded.name == path.stem
    limits.check_workload(loaded, emulated)


def test_table_i_is_the_published_sweep():
    table = workload.load(ROOT / "workloads" / "table-i.yaml")
    assert len(table.offered_rate_mbps) == 24
    assert table.payload_bytes == (64, 1440)
    assert table.blocks == 40
    assert table.timing.measure_s == 120


def test_defaults_are_filled_in_and_a_bare_null_is_the_transport(tmp_path):
    loaded = workload.load(write(tmp_path, GOOD))
    assert loaded.transports == ("udp", "null")
    assert loaded.document["transports"] == ["udp", "null"]
    assert loaded.generator == "netjoule-traffic"
    assert loaded.max_attempts == 3
    assert loaded.pacing == {"mode": "absolute", "window_us": 0, "gso": False}
    assert loaded.seed is None


def test_a_workload_survives_campaign_json(tmp_path):
    loaded = workload.load(write(tmp_path, GOOD))
    assert workload.Workload.from_document(loaded.document, where="campaign.json") == loaded


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("blocks: 1", "blocks: none", 6, "blocks", "not a whole number"),
        ("blocks: 1", "blockz: 1", 6, "blockz", "unknown field"),
        ("[0.5, 3]", "[0.5, 0]", 5, "offered_rate_mbps.1", "above 0 Mb/s"),
        ("[64]", "[8]", 4, "payload_bytes.0", "least allowed 16 byte"),
        ("[64]", "[64, 64]", 4, "payload_bytes", "twice"),
        ("[udp, null]", "[udp, sctp]", 3, "transports.1", "'sctp' is not one of"),
        ("measure_s: 2", "measure_s: long", 7, "timing.measure_s", "not a number"),
        ("measure_s: 2, ", "", 7, "timing", "'measure_s' is missing"),
        ("name: small", "name: small\nname: big", 3, "name", "twice"),
        ("schema_version: 1", "schema_version: 2", 1, "schema_version", "must be 1"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path, old, new, line, field, words):
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        workload.load(path)
    assert caught.value.where == f"{path}, line {line}, field {field}"
    assert words in caught.value.what


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: &x [*x]\nb: !!python/object:os.system {}"])
def test_what_is_not_a_yaml_mapping_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match=r"not a YAML mapping|not YAML"):
        workload.load(write(tmp_path, text))


@pytest.mark.parametrize("text", ["a: &a [1]\nb: &b [*a, *a]\nc: [*b]\n", "a:\n  &a [*a]\n"])
def test_aliases_are_refused_where_they_could_grow_without_bound(tmp_path, text):
    with pytest.raises(UsageError, match="line 2: not YAML: an alias inside an anchored value"):
        workload.load(write(tmp_path, text))


def test_a_plain_alias_stands_for_its_value(tmp_path):
    text = GOOD.replace("idle_s: 1,", "idle_s: &second 1,").replace("warm_up_s: 1,", "warm_up_s: *second,")
    assert workload.load(write(tmp_path, text)) == workload.load(write(tmp_path, GOOD))


def test_nesting_without_end_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"w\.yaml: not YAML: nested too deeply"):
        workload.load(write(tmp_path, "a: " + "[" * 20000))


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_a_number_that_is_none_is_refused_with_its_line(tmp_path, number):
    text = GOOD.replace("[0.5, 3]", f"[{number}]")
    with pytest.raises(UsageError, match=f"line 5: not YAML: {number} is not a finite number"):
        workload.load(write(tmp_path, text))


def test_an_ip_version_that_an_end_has_no_address_for_is_refused(tmp_path):
    where = synthetic.topology()
    limits.check_workload(workload.load(write(tmp_path, GOOD)), where)
    with pytest.raises(UsageError, match="host client has no ipv6 address; add ipv6"):
        limits.check_workload(workload.load(write(tmp_path, GOOD + "ip_version: 6\n")), where)


def test_the_floor_of_a_receiving_client_is_refused(tmp_path, emulated):
    receiving = GOOD + "direction: down\n"
    with pytest.raises(UsageError, match=r'null is the floor of a sending client.*leave "null" out'):
        limits.check_workload(workload.load(write(tmp_path, receiving)), emulated)
    without = receiving.replace("[udp, null]", "[udp]")
    limits.check_workload(workload.load(write(tmp_path, without)), emulated)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*nope\.yaml; check the path"):
        workload.load(tmp_path / "nope.yaml")


def test_an_unknown_name_lists_the_library():
    with pytest.raises(UsageError, match=r"demo, skype, table-i, youtube"):
        workload.find("nope", ROOT / "workloads")


def test_iperf3_makes_udp_and_tcp_only_and_our_pacer_the_floor(tmp_path):
    loaded = workload.load(write(tmp_path, GOOD + "generator: iperf3\n"))
    assert loaded.generator_of("udp") == "iperf3"
    assert loaded.generator_of("null") == "netjoule-traffic"
    with pytest.raises(UsageError, match=r"iperf3 cannot send quic"):
        workload.load(write(tmp_path, GOOD.replace("[udp, null]", "[udp, quic]") + "generator: iperf3\n"))


@pytest.mark.parametrize(
    ("transport", "ip_version", "mtu", "limit"),
    [
        ("udp", 4, 1500, 1472),
        ("udp", 6, 1500, 1452),
        ("null", 4, 1500, 1472),
        ("quic-datagram", 4, 1500, 1440),
        ("quic-datagram", 6, 1500, 1420),
        ("quic-datagram", 4, 9000, 1440),
        ("udp", 4, 1280, 1252),
        ("tcp", 4, 1500, None),
        ("quic", 6, 1500, None),
    ],
)
def test_greatest_payload(transport, ip_version, mtu, limit):
    assert limits.greatest_payload(transport, ip_version, mtu) == limit


@pytest.mark.parametrize(("size", "fits"), [(1472, True), (1473, False)])
def test_a_size_over_the_limit_is_refused_naming_it(tmp_path, emulated, size, fits):
    loaded = workload.load(write(tmp_path, GOOD.replace("[64]", f"[{size}]")))
    if fits:
        limits.check_workload(loaded, emulated)
    else:
        with pytest.raises(UsageError, match=r"1472 bytes .* not 1473"):
            limits.check_workload(loaded, emulated)


def test_streams_carry_sizes_that_datagrams_cannot(tmp_path, emulated):
    text = GOOD.replace("[udp, null]", "[tcp, quic]").replace("[64]", "[16000]")
    limits.check_workload(workload.load(write(tmp_path, text)), emulated)


@pytest.mark.parametrize("transport", ["dccp", "dccp-kernel"])
def test_dccp_is_not_in_this_build(tmp_path, emulated, transport):
    loaded = workload.load(write(tmp_path, GOOD.replace("[udp, null]", f"[{transport}]")))
    with pytest.raises(HostLacks, match="dccp: not in this build") as caught:
        limits.check_workload(loaded, emulated)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("field", ["warm_up_s: 1", "measure_s: 2", "idle_s: 1"])
def test_windows_shorter_than_the_meter_resolves_are_refused(tmp_path, emulated, field):
    name = field.split(":")[0]
    loaded = workload.load(write(tmp_path, GOOD.replace(field, f"{name}: 0.2")))
    with pytest.raises(UsageError, match=name):
        limits.check_workload(loaded, emulated)

# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
import synthetic
import yaml

from netjoule import loads
from netjoule.cli import launch
from netjoule.core.errors import UsageError
from netjoule.design import duration
from netjoule.design import limits as design_limits
from netjoule.design.run_table import expand
from netjoule.loads import load_of
from netjoule.loads.flow import limits
from netjoule.loads.flow.flows import flows_of
from netjoule.loads.flow.settings import FlowSettings, Pace
from netjoule.topology import topology
from netjoule.workload import workload

ROOT = Path(__file__).parents[3]
LIBRARY = sorted((ROOT / "workloads/flow").glob("*.yaml"))
GOOD = """\
schema_version: 1
name: small
transports: [udp, null]
payload_bytes: [64]
offered_rate_mbps: [0.5, 3]
blocks: 1
timing: {idle_s: 1, settle_s: 0.2, warm_up_s: 1, measure_s: 2, tail_s: 0.3}
"""


def fit(loaded, where):
    """What is refused before a campaign begins."""
    design_limits.check_workload(loaded, where)
    load_of(loaded, where).require_fit()


def settings(tmp_path, text):
    return FlowSettings.of(loads.read(write(tmp_path, text)))


def write(tmp_path, text):
    path = tmp_path / "w.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def emulated():
    return topology.load(ROOT / "testbed-topology.yaml")


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: p.stem)
def test_every_workload_of_the_library_fits_the_shipped_testbed_or_that_of_its_study(path, emulated):
    loaded = loads.read(path)
    assert loaded.name == path.stem
    kind = "" if loaded.name == "capacity-live" else "-simulated"
    routers = topology.load(ROOT / f"testbed/topologies/troubled-marriage{kind}.yaml")
    fit(loaded, routers if loaded.arm == "scaling" else emulated)


def test_all_timing_errors_are_named_at_once(tmp_path):
    timing = "timing: {idle_s: 0, settle_s: -1, warm_up_s: 0, measure_s: 0.1, tail_s: -5}"
    path = write(tmp_path, GOOD.replace(GOOD.splitlines()[-1], timing))
    with pytest.raises(UsageError) as refused:
        launch.load_inputs(str(path), None)
    named = [part.split("field ")[1].split(":")[0] for part in str(refused.value).split("; also ")]
    assert sorted(named) == [f"timing.{name}_s" for name in ("idle", "measure", "settle", "tail", "warm_up")]


@pytest.mark.parametrize(
    ("field", "written", "advice"),
    [
        ("offered_rate_mbps: [0.5, 3]", "offered_rate_mbps: [1e9]", "'1e9' is not a number; write 1.0e+9"),
        ("measure_s: 2", "measure_s: 2.5e1", "'2.5e1' is not a number; write 2.5e+1"),
        ("blocks: 1", "blocks: 1E-3", "'1E-3' is not a whole number; write 1.0e-3"),
        ("blocks: 1", "blocks: some", "'some' is not a whole number"),
    ],
)
def test_a_number_that_yaml_reads_as_text_is_told_how_to_be_written(tmp_path, field, written, advice):
    with pytest.raises(UsageError) as refused:
        loads.read(write(tmp_path, GOOD.replace(field, written)))
    assert str(refused.value).endswith(advice)


def test_the_pacer_spins_and_sleeps_at_the_studys_loads_and_sizes():
    pacer = yaml.safe_load((ROOT / "workloads/flow/pacer.yaml").read_text())
    assert pacer["factors"] == {
        "transport": ["udp", "dccp"],
        "payload_bytes": [300, 1431],
        "offered_rate_mbps": [0.065, 0.639],
        "pacing": ["absolute", "spin"],
    }
    assert loads.read(ROOT / "workloads/flow/pacer.yaml").control == "null"
    assert pacer["blocks"] >= 2, "one block gives no interval"
    # Only a device model with a CPU term sees a sender spin.
    assert pacer["device_form"] == "cpu"


@pytest.mark.parametrize("application", ["skype", "youtube"])
def test_the_short_profiles_are_the_studys_in_about_ten_minutes(application, emulated):
    whole, short = (
        loads.read(ROOT / "workloads/flow" / f"{name}.yaml") for name in (application, f"{application}-short")
    )
    for field in ("profile", "payload_bytes", "offered_rate_mbps", "transport_options"):
        assert getattr(FlowSettings.of(short), field) == getattr(FlowSettings.of(whole), field)
    assert short.arms == ("udp", "dccp", "null")
    told = duration.forecast(short, emulated)
    assert told.run_s < 25
    assert 300 < told.duration_s < 720
    assert told.least_p < 0.01


def test_table_i_is_the_published_sweep():
    table = loads.read(ROOT / "workloads/flow/table-i.yaml")
    assert len(table.factors["offered_rate_mbps"]) == 24
    assert table.factors["payload_bytes"] == (64, 1440)
    assert table.blocks == 40
    assert table.timing.measure_s == 120


def test_defaults_are_filled_in_and_a_bare_null_is_the_transport(tmp_path):
    loaded = loads.read(write(tmp_path, GOOD))
    assert loaded.arms == ("udp", "null")
    assert loaded.document["factors"]["transport"] == ["udp"] and loaded.document["control"]
    assert loaded.document["flow"] == {"generator": "netjoule-traffic", "ip_version": 4, "clients": 1}
    assert loaded.max_attempts == 3
    assert FlowSettings.of(loaded).paces == (Pace("absolute", 0, False),)
    assert FlowSettings.of(loaded).pacing_limits == {}
    assert loaded.seed is None


@pytest.mark.parametrize(
    ("fields", "paces"),
    [
        ("pacing: spin\n", [Pace("spin")]),
        ("pacing: [absolute, burst:8]\n", [Pace("absolute"), Pace("burst:8")]),
        ("window_us: [0, 50]\n", [Pace("absolute", 0), Pace("absolute", 50)]),
        (
            "pacing: [absolute, hybrid]\nwindow_us: 200\ngso: [false, true]\n",
            [Pace(mode, 200, gso) for mode in ("absolute", "hybrid") for gso in (False, True)],
        ),
        ("pacing: {mode: absolute, window_us: 50, gso: true}\n", [Pace("absolute", 50, True)]),
    ],
)
def test_pacing_window_and_trains_are_factors(tmp_path, fields, paces):
    loaded = loads.read(write(tmp_path, GOOD + fields))
    assert list(FlowSettings.of(loaded).paces) == paces
    again = workload.Workload.from_document(loaded.document, where="campaign.json")
    assert again == loaded
    assert isinstance(again.document["factors"]["pacing"], list), "what older workloads say is spelt out"


def test_a_pacing_says_itself_in_words():
    assert [str(pace) for pace in (Pace(), Pace("burst:8", 50, True))] == [
        "absolute",
        "burst:8, window 50 us, GSO",
    ]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ("pacing: fast", "pacing.0", "does not have the form"),
        ("pacing: burst:0", "pacing.0", "does not have the form"),
        ("pacing: [absolute, absolute]", "pacing", "twice"),
        ("pacing: []", "pacing", "too short"),
        ("window_us: -1", "window_us.0", "least allowed 0 us"),
        ("gso: yes please", "gso.0", "not true or false"),
        (
            "pacing: {mode: absolute, window_us: 0, gso: false}\nwindow_us: 50",
            "pacing.0",
            "a mapping",
        ),
        ("pacing: [absolute, so_txtime]\nwindow_us: 50", "window_us", "so_txtime has no window"),
        ("pacing: so_txtime\ngso: true", "gso", "so_txtime sends no trains"),
        ("pacing_limits: {max_speed: 1}", "pacing_limits.max_speed", "unknown field"),
        (
            "pacing_limits: {min_achieved_ratio: 1.5}",
            "pacing_limits.min_achieved_ratio",
            "greatest allowed 1",
        ),
        ("generator: iperf3\npacing: spin", "pacing", "iperf3 has a pacer of its own"),
        ("generator: iperf3\nwindow_us: [0, 50]", "window_us", "iperf3 has a pacer of its own"),
        (
            "generator: iperf3\npacing_limits: {max_error_us: 9}",
            "pacing_limits",
            "no pacing certificate",
        ),
    ],
)
def test_a_pacing_that_cannot_be_is_refused_at_its_field(tmp_path, fields, field, words):
    with pytest.raises(UsageError, match=words) as caught:
        loads.read(write(tmp_path, GOOD + fields + "\n"))
    assert caught.value.where.endswith(f"field {field}")


def test_launch_times_are_for_datagrams_that_the_kernel_sends(tmp_path):
    launched = settings(tmp_path, GOOD + "pacing: so_txtime\n")
    assert launched.paces == (Pace("so_txtime"),)
    text = GOOD.replace("[udp, null]", "[udp, tcp]") + "pacing: so_txtime\n"
    with pytest.raises(UsageError, match="no launch times for tcp; use so_txtime with null and udp alone"):
        loads.read(write(tmp_path, text))


def test_limits_of_the_certificate_are_kept_by_name(tmp_path):
    loaded = settings(tmp_path, GOOD + "pacing_limits: {max_error_p99_us: 60, max_cpu_ratio: 1}\n")
    assert loaded.pacing_limits == {"max_error_p99_us": 60.0, "max_cpu_ratio": 1.0}


def test_a_workload_survives_campaign_json(tmp_path):
    loaded = loads.read(write(tmp_path, GOOD))
    assert workload.Workload.from_document(loaded.document, where="campaign.json") == loaded


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words"),
    [
        ("blocks: 1", "blocks: none", 6, "blocks", "not a whole number"),
        ("blocks: 1", "blockz: 1", 6, "blockz", "unknown field, did you mean 'blocks'? known here: "),
        ("[0.5, 3]", "[0.5, 0]", 5, "offered_rate_mbps.1", "above 0 Mb/s"),
        ("[64]", "[8]", 4, "payload_bytes.0", "least allowed 16 byte"),
        ("[64]", "[64, 64]", 4, "payload_bytes", "twice"),
        ("[udp, null]", "[udp, pigeon]", 3, "transports.1", "there is no transport 'pigeon'"),
        ("[udp, null]", "[udpp, null]", 3, "transports.0", ", did you mean 'udp'?"),
        ("measure_s: 2", "measure_s: long", 7, "timing.measure_s", "not a number"),
        ("measure_s: 2, ", "", 7, "timing", "'measure_s' is missing"),
        ("name: small", "name: small\nname: big", 3, "name", "twice"),
        ("schema_version: 1", "schema_version: 3", 1, "schema_version", "the file is of a newer one, 3"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path, old, new, line, field, words):
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        loads.read(path)
    assert caught.value.where == f"{path}, line {line}" + (f", field {field}" if field else "")
    assert words in caught.value.what


def test_all_wrong_times_are_named_at_once(tmp_path):
    path = write(tmp_path, GOOD.replace("measure_s: 2", "measur_s: 2").replace("idle_s: 1", "idle_s: -1"))
    with pytest.raises(UsageError) as caught:
        loads.read(path)
    for words in ("field timing.idle_s: -1 is below", "measur_s: unknown field, did you mean 'measure_s'?"):
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: &x [*x]\nb: !!python/object:os.system {}"])
def test_what_is_not_a_yaml_mapping_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match=r"not a YAML mapping|not YAML"):
        loads.read(write(tmp_path, text))


@pytest.mark.parametrize("text", ["a: &a [1]\nb: &b [*a, *a]\nc: [*b]\n", "a:\n  &a [*a]\n"])
def test_aliases_are_refused_where_they_could_grow_without_bound(tmp_path, text):
    with pytest.raises(UsageError, match="line 2: not YAML: an alias inside an anchored value"):
        loads.read(write(tmp_path, text))


def test_a_plain_alias_stands_for_its_value(tmp_path):
    text = GOOD.replace("idle_s: 1,", "idle_s: &second 1,").replace("warm_up_s: 1,", "warm_up_s: *second,")
    assert loads.read(write(tmp_path, text)) == loads.read(write(tmp_path, GOOD))


def test_nesting_without_end_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"w\.yaml, line 1: not YAML: nested too deeply"):
        loads.read(write(tmp_path, "a: " + "[" * 20000))


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_a_number_that_is_none_is_refused_with_its_line(tmp_path, number):
    text = GOOD.replace("[0.5, 3]", f"[{number}]")
    with pytest.raises(UsageError, match=f"line 5: not YAML: {number} is not a finite number"):
        loads.read(write(tmp_path, text))


def test_an_ip_version_that_an_end_has_no_address_for_is_refused(tmp_path):
    where = synthetic.topology()
    fit(loads.read(write(tmp_path, GOOD)), where)
    with pytest.raises(UsageError, match="host client has no ipv6 address; add ipv6"):
        fit(loads.read(write(tmp_path, GOOD + "ip_version: 6\n")), where)


def test_the_floor_of_a_receiving_client_is_refused(tmp_path, emulated):
    receiving = GOOD + "direction: down\n"
    with pytest.raises(UsageError, match=r"null is the floor of a sending client.*write control: false"):
        fit(loads.read(write(tmp_path, receiving)), emulated)
    without = receiving.replace("[udp, null]", "[udp]")
    fit(loads.read(write(tmp_path, without)), emulated)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*nope\.yaml; check the path"):
        loads.read(tmp_path / "nope.yaml")


def test_an_unknown_name_lists_the_library():
    with pytest.raises(
        UsageError,
        match=r"both-ways, capacity-alone, .*, compressor, .*, demo, fairness, gate, gzip, .*, youtube",
    ):
        workload.find("nope", ROOT / "workloads")


def test_iperf3_makes_udp_and_tcp_only_and_our_pacer_the_floor(tmp_path):
    loaded = settings(tmp_path, GOOD + "generator: iperf3\n")
    assert loaded.generator_of("udp") == "iperf3"
    assert loaded.generator_of("null") == "netjoule-traffic"
    with pytest.raises(UsageError, match=r"iperf3 cannot send quic"):
        loads.read(write(tmp_path, GOOD.replace("[udp, null]", "[udp, quic]") + "generator: iperf3\n"))


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
        ("dccp", 4, 1500, 1440),
        ("dccp", 6, 1500, 1420),
        ("tcp", 4, 1500, None),
        ("quic", 6, 1500, None),
        ("mptcp", 4, 1500, None),
        ("sctp", 4, 1500, 65536),
    ],
)
def test_greatest_payload(transport, ip_version, mtu, limit):
    assert limits.greatest_payload(transport, ip_version, mtu) == limit


@pytest.mark.parametrize(
    ("transport", "options", "limits_by_version"),
    [
        ("dccp", {"ccid": 3, "carrier": "raw"}, {4: 1448, 6: 1428}),
        ("dccp", {"ccid": 3, "carrier": "udp"}, {4: 1440, 6: 1420}),
        ("dccp-kernel", {"ccid": 3}, {4: 1440, 6: 1420}),
        ("dccp-kernel", {"ccid": 2}, {4: 1400, 6: 1380}),
        ("dccp-kernel", {}, {4: 1400, 6: 1380}),
    ],
)
def test_greatest_payload_by_carrier_and_ccid(transport, options, limits_by_version):
    found = {v: limits.greatest_payload(transport, v, 1500, options) for v in (4, 6)}
    assert found == limits_by_version


@pytest.mark.parametrize(("size", "fits"), [(1472, True), (1473, False)])
def test_a_size_over_the_limit_is_refused_naming_it(tmp_path, emulated, size, fits):
    loaded = loads.read(write(tmp_path, GOOD.replace("[64]", f"[{size}]")))
    if fits:
        fit(loaded, emulated)
    else:
        with pytest.raises(UsageError, match=r"1472 bytes .* not 1473"):
            fit(loaded, emulated)


def test_streams_carry_sizes_that_datagrams_cannot(tmp_path, emulated):
    text = GOOD.replace("[udp, null]", "[tcp, quic]").replace("[64]", "[16000]")
    fit(loads.read(write(tmp_path, text)), emulated)


@pytest.mark.parametrize(
    ("transports", "carrier", "size", "limit"),
    [
        (
            "[dccp]",
            "udp",
            1441,
            r"dccp \(ccid 3, carrier udp\) over IPv4, MTU 1500, carries 1440 bytes .* not 1441",
        ),
        (
            "[dccp]",
            "raw",
            1449,
            r"dccp \(ccid 3, carrier raw\) over IPv4, MTU 1500, carries 1448 bytes .* not 1449",
        ),
        (
            "[dccp-kernel]",
            None,
            1441,
            r"dccp-kernel \(ccid 3\) over IPv4, MTU 1500, carries 1440 bytes .* not 1441",
        ),
    ],
)
def test_dccps_limit_depends_on_what_carries_it(tmp_path, emulated, transports, carrier, size, limit):
    text = GOOD.replace("[udp, null]", transports)
    if carrier:
        text += f"transport_options: {{dccp: {{carrier: {carrier}}}}}\n"
    fit(loads.read(write(tmp_path, text.replace("[64]", f"[{size - 1}]"))), emulated)
    with pytest.raises(UsageError, match=limit):
        fit(loads.read(write(tmp_path, text.replace("[64]", f"[{size}]"))), emulated)


# -- options of transports --------------------------------------------------------------------------


def test_dccp_is_ccid_3_over_udp_unless_told(tmp_path):
    loaded = loads.read(write(tmp_path, GOOD.replace("[udp, null]", "[udp, dccp, dccp-kernel, null]")))
    found = FlowSettings.of(loaded)
    assert found.options_of("dccp") == {"ccid": 3, "carrier": "udp"}
    assert found.options_of("dccp-kernel") == {"ccid": 3}
    assert found.options_of("udp") == {}
    assert loaded.document["flow"]["transport_options"] == {
        "dccp": {"ccid": 3, "carrier": "udp"},
        "dccp-kernel": {"ccid": 3},
    }
    assert workload.Workload.from_document(loaded.document, where="campaign.json") == loaded


def test_options_that_are_given_win_over_defaults(tmp_path):
    text = GOOD.replace("[udp, null]", "[dccp]") + "transport_options: {dccp: {ccid: 2}}\n"
    assert settings(tmp_path, text).options_of("dccp") == {"ccid": 2, "carrier": "udp"}


def test_a_workload_without_dccp_has_no_options(tmp_path):
    assert "transport_options" not in loads.read(write(tmp_path, GOOD)).document["flow"]


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        (
            "{dccp: {ccid: 2}}",
            "transport_options.dccp",
            "options for dccp, which is not a transport of this",
        ),
        ("{pigeon: {}}", "transport_options.pigeon", "unknown field"),
    ],
)
def test_options_of_another_transport_are_refused(tmp_path, options, field, words):
    with pytest.raises(UsageError) as caught:
        loads.read(write(tmp_path, GOOD + f"transport_options: {options}\n"))
    assert f"line 8, field {field}" in str(caught.value)
    assert words in caught.value.what


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("{dccp: {ccid: 4}}", "4 is not one of"),
        ("{dccp: {carrier: kernel}}", "'kernel' is not one of"),
        ("{dccp: {window: 4}}", "unknown field"),
        ("{dccp-kernel: {carrier: udp}}", "unknown field"),
    ],
)
def test_an_option_that_dccp_has_not_is_refused(tmp_path, options, words):
    text = GOOD.replace("[udp, null]", "[dccp, dccp-kernel]") + f"transport_options: {options}\n"
    with pytest.raises(UsageError) as caught:
        loads.read(write(tmp_path, text))
    assert words in caught.value.what


OPTIONS = """transport_options:
  tcp: {congestion_control: reno, nodelay: false, notsent_lowat_bytes: 16384, zerocopy: true}
  quic: {congestion_control: bbr2, cc_pacing: false, early_data: true}
  sctp: {ordered: false, lifetime_ms: 100}
"""


def test_options_are_those_that_the_transports_tell_of_themselves(tmp_path):
    text = GOOD.replace("[udp, null]", "[tcp, quic, sctp, mptcp]") + OPTIONS
    loaded = loads.read(write(tmp_path, text))
    found = FlowSettings.of(loaded)
    assert found.options_of("tcp")["congestion_control"] == "reno"
    assert found.options_of("quic") == {"congestion_control": "bbr2", "cc_pacing": False, "early_data": True}
    assert found.options_of("mptcp") == {}
    assert workload.Workload.from_document(loaded.document, where="campaign.json") == loaded


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("{tcp: {congestion_control: ../reno}}", "'../reno'"),
        ("{tcp: {notsent_lowat_bytes: -1}}", "least allowed 0"),
        ("{tcp: {nodelay: 1}}", "nodelay"),
        ("{quic: {congestion_control: vegas}}", "'vegas' is not one of"),
        ("{quic: {zerocopy: true}}", "unknown field"),
    ],
)
def test_a_value_that_a_transport_does_not_take_is_refused(tmp_path, options, words):
    text = GOOD.replace("[udp, null]", "[tcp, quic]") + f"transport_options: {options}\n"
    with pytest.raises(UsageError) as caught:
        loads.read(write(tmp_path, text))
    assert words in f"{caught.value.where} {caught.value.what}"


# -- other generators -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "generator", "words"),
    [
        (
            "[udp, quic]",
            "ditg",
            r"transports\.1: ditg cannot send quic; .* only dccp-kernel, tcp and udp",
        ),
        ("[udp, dccp]", "netperfmeter", r"netperfmeter cannot send dccp"),
        ("[udp]", "iperf-dccp", r"iperf-dccp cannot send udp; .* only dccp-kernel"),
        ("[udp]\ndirection: down", "ditg", r"field direction\.0: ditg cannot send down"),
        ("[udp]\n#", "netperfmeter", None),
    ],
)
def test_a_generator_is_asked_only_for_what_it_does(tmp_path, change, generator, words):
    text = GOOD.replace("[udp, null]", change) + f"generator: {generator}\n"
    if words is None:
        assert settings(tmp_path, text).generator == generator
        return
    with pytest.raises(UsageError, match=words):
        loads.read(write(tmp_path, text))


def test_a_generators_own_header_must_fit(tmp_path):
    text = GOOD.replace("[64]", "[32]") + "generator: netperfmeter\n"
    with pytest.raises(UsageError, match="netperfmeter has at least 48 bytes, not 32"):
        loads.read(write(tmp_path, text))


@pytest.mark.parametrize(("generator", "allowed"), [("ditg", False), ("netperfmeter", True)])
def test_the_ccid_is_only_for_generators_that_can_choose_it(tmp_path, generator, allowed):
    text = GOOD.replace("[udp, null]", "[dccp-kernel]") + f"generator: {generator}\n"
    assert settings(tmp_path, text).options_of("dccp-kernel") == ({"ccid": 3} if allowed else {})
    text += "transport_options: {dccp-kernel: {ccid: 2}}\n"
    if allowed:
        assert settings(tmp_path, text).options_of("dccp-kernel") == {"ccid": 2}
    else:
        with pytest.raises(UsageError, match=r"ditg takes no options of dccp-kernel; .*net\.dccp\.default"):
            loads.read(write(tmp_path, text))


def test_the_floor_is_always_our_own_pacers(tmp_path):
    loaded = settings(tmp_path, GOOD + "generator: ditg\n")
    assert (loaded.generator_of("udp"), loaded.generator_of("null")) == ("ditg", "netjoule-traffic")


@pytest.mark.parametrize("field", ["warm_up_s: 1", "measure_s: 2", "idle_s: 1"])
def test_windows_shorter_than_the_meter_resolves_are_refused(tmp_path, emulated, field):
    name = field.split(":")[0]
    path = write(tmp_path, GOOD.replace(field, f"{name}: 0.2"))
    with pytest.raises(UsageError, match=name):
        launch.load_inputs(str(path), None)


# -- statistics ---------------------------------------------------------------------------------------

THREE = GOOD.replace("[udp, null]", "[udp, tcp, dccp, null]")


def test_statistics_stay_in_the_effective_workload(tmp_path):
    fields = (
        "statistics:\n  alpha: 0.01\n  equivalence_margin_percent: 3\n"
        "  contrasts: [{transport: tcp, reference: dccp, payload_bytes: 64}]\n"
    )
    loaded = loads.read(write(tmp_path, THREE + fields))
    assert loaded.document["statistics"]["alpha"] == 0.01
    assert workload.Workload.from_document(loaded.document, where="campaign.json") == loaded
    assert "statistics" not in loads.read(write(tmp_path, GOOD)).document


@pytest.mark.parametrize(
    ("contrasts", "field", "words"),
    [
        ("{transport: quic, reference: udp, payload_bytes: 64}", "0.transport", "quic is not an arm of"),
        ("{transport: udp, reference: 'null', payload_bytes: 64}", "0.reference", "null is not an arm"),
        ("{transport: udp, reference: udp, payload_bytes: 64}", "0.reference", "udp is compared with itself"),
        (
            "{transport: tcp, reference: udp, payload_bytes: 99}",
            "0.payload_bytes",
            "payload_bytes 99 is not .* one of 64",
        ),
        ("{transport: tcp, reference: udp}", "0.payload_bytes", "at names nothing; name payload_bytes"),
        (
            "{transport: tcp, reference: udp, payload_bytes: 64},"
            " {transport: udp, reference: tcp, payload_bytes: 64}",
            "1",
            "stand twice",
        ),
        ("", "", "too short"),
    ],
)
def test_a_contrast_is_one_of_the_workload(tmp_path, contrasts, field, words):
    text = THREE + f"statistics: {{contrasts: [{contrasts}]}}\n"
    with pytest.raises(UsageError, match=words) as caught:
        loads.read(write(tmp_path, text))
    assert ("statistics.contrasts." + field).rstrip(".") in str(caught.value)


@pytest.mark.parametrize("fields", ["alpha: 0", "alpha: 1", "equivalence_margin_percent: 0", "beta: 1"])
def test_statistics_out_of_bounds_are_refused(tmp_path, fields):
    with pytest.raises(UsageError, match=r"field statistics\."):
        loads.read(write(tmp_path, GOOD + f"statistics: {{{fields}}}\n"))


VARIANTS = """\
schema_version: 2
name: small
load: flow
control: false
factors: {transport: [slow, tcp-reno, udp], payload_bytes: 64, offered_rate_mbps: 3}
blocks: 1
timing: {idle_s: 1, settle_s: 0.2, warm_up_s: 1, measure_s: 2, tail_s: 0.3}
flow:
  variants: {tcp-reno: {tcp: {congestion_control: reno}}, slow: {dccp: {ccid: 2}, offered_rate_mbps: 1}}
  transport_options: {tcp: {congestion_control: bbr, nodelay: false}}
"""


def test_a_variant_is_a_transport_with_options_and_a_rate_of_its_own(tmp_path):
    loaded = loads.read(write(tmp_path, VARIANTS))
    asked = []
    for row in expand(loaded, 1):
        (flow,) = flows_of(FlowSettings.of(loaded), row.condition(loaded, 1), ["client"])
        asked.append((row.arm, flow.transport, flow.offered_rate_mbps, dict(flow.options)))
    reno = {"congestion_control": "reno", "nodelay": False}
    assert sorted(asked, key=lambda one: one[0]) == [
        ("slow", "dccp", 1, {"ccid": 2, "carrier": "udp"}),
        ("tcp-reno", "tcp", 3, reno),
        ("udp", "udp", 3, {}),
    ]


def test_a_variant_keeps_its_congestion_control_where_it_is_a_factor(tmp_path):
    factor = VARIANTS.replace("offered_rate_mbps: 3}", "offered_rate_mbps: 3, congestion_control: cubic}")
    loaded = loads.read(write(tmp_path, factor.replace("[slow, tcp-reno, udp]", "[slow, tcp-reno, tcp]")))
    kept = {}
    for row in expand(loaded, 1):
        (flow,) = flows_of(FlowSettings.of(loaded), row.condition(loaded, 1), ["client"])
        kept[row.arm] = flow.options.get("congestion_control")
    assert kept == {"slow": None, "tcp-reno": "reno", "tcp": "cubic"}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[slow, tcp-reno, udp]", "[slow, tcp-remo]", "no transport 'tcp-remo', did you mean 'tcp-reno'"),
        ("[slow, tcp-reno, udp]", "[slow, udp]", "no run has this variant; name it in factors.transport"),
        ("slow: {dccp: {ccid: 2},", "slow: {dccp: {ccid: 2}, udp: {},", "a variant is of one transport"),
        ("slow: {dccp: {ccid: 2},", "slow: {", "a variant is of one transport"),
        ("slow", "sctp", "sctp is a transport itself; give it another name"),
        ("{ccid: 2}", "{ccid: 5}", "5 is not one of 2, 3"),
        ("flow:", "flow:\n  generator: iperf3", "iperf3 has no variants of transports"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(tmp_path, before, after, words):
    with pytest.raises(UsageError) as refused:
        loads.read(write(tmp_path, VARIANTS.replace(before, after)))
    assert words in str(refused.value)

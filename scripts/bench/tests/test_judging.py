# SPDX-License-Identifier: Apache-2.0
"""From outcomes to verdicts: each bench on figures that are known."""

import struct

import pytest

from netjoule_bench import host
from netjoule_bench.benches import (
    alarms,
    cpu,
    downloads,
    fidelity,
    goodput,
    greatest,
    many_files,
    skype,
    wire,
)
from netjoule_bench.generators.flow import Departures, Flow, Outcome

IPERF3 = "iperf3 3.12"
NEWER = "iperf3 3.18"


def outcome(sent=1000, received=1000, cpu_s=1.0, receiver_cpu_s=0.5, p99_us=None, within_50us=None):
    told = Departures(None, p99_us, within_50us)
    return Outcome(1000, sent, received, 1.0, cpu_s, receiver_cpu_s, told)


def words(section):
    return {verdict.what: verdict.word for verdict in section.verdicts}


def cpu_arms(cost, p99_us, received=1000):
    names = [cpu._name(us, gso=gso) for gso in (False, True) for us in (0, 50, 200)]
    ours = {name: [outcome(cpu_s=cost, p99_us=p99_us, received=received)] * 3 for name in names}
    return ours | {IPERF3: [outcome()] * 3, NEWER: [outcome(cpu_s=1.2)] * 3}


def test_cpu_is_held_to_its_three_windows():
    section = cpu.judged(cpu_arms(cost=0.8, p99_us=59), IPERF3)
    assert [row[3] for row in section.rows] == ["0.80"] * 6 + ["1.00", "1.20"]
    assert words(section) == {
        "p99 departure error in us, netjoule-traffic, window 50 us": "met",
        "sender CPU per message against iperf3, netjoule-traffic, window 50 us, GSO": "NOT met",
        "p99 departure error in us, netjoule-traffic, window 50 us, GSO": "met",
        "sender CPU per message against iperf3, netjoule-traffic, window 200 us, GSO": "NOT met",
        "p99 departure error in us, netjoule-traffic, window 200 us, GSO": "met",
    }


def test_wake_ups_are_held_to_the_bare_loop_and_to_the_fewest():
    least = alarms.least_wake_ups(period_us=17.07, window_us=50)
    assert least == pytest.approx(1 / 3)
    assert alarms.least_wake_ups(period_us=100, window_us=50) == 1
    taken = {alarms.OURS: [alarms.Waking(350, 350 * 10e-6, 1000, 70.4)] * 3}
    taken[alarms.BARE] = [alarms.Waking(1000, 1000 * 8.5e-6, 0)] * 3
    section = alarms.judged(taken, least)
    assert set(words(section).values()) == {"met"}
    assert section.rows[0] == [alarms.OURS, "10.00", "0.350", "1.05", "70"]
    taken[alarms.OURS] = [alarms.Waking(400, 400 * 11e-6, 1000)] * 3
    assert set(words(alarms.judged(taken, least)).values()) == {"NOT met"}


def test_shares_have_the_interval_of_their_rounds():
    taken = {skype.OURS: [outcome(cpu_s=0.05, within_50us=share) for share in (0.94, 0.96, 0.97)]}
    section = skype.judged(taken | {IPERF3: [outcome()] * 3}, 10.0)
    assert section.verdicts[1].measured == "96.0 (94.0 to 97.0)"
    assert section.rows[0][3] == "96.0 (94.0 to 97.0)"
    assert section.rows[1][3] == "-"


def test_cpu_is_not_compared_where_other_rates_arrived():
    section = cpu.judged(cpu_arms(cost=0.1, p99_us=1, received=980), IPERF3)
    costs = [verdict for verdict in section.verdicts if verdict.what.startswith("sender CPU")]
    assert {verdict.passed for verdict in costs} == {None}
    assert costs[0].measured == "delivered rates differ: 0.980"


def test_without_a_certificate_departures_are_not_judged():
    section = cpu.judged(cpu_arms(cost=0.1, p99_us=None), IPERF3)
    assert {v.word for v in section.verdicts if v.what.startswith("p99")} == {"not judged"}


def test_a_limit_whose_figure_is_missing_does_not_hold():
    told = cpu.judged(cpu_arms(cost=0.1, p99_us=1), IPERF3)
    assert not told.missed
    assert cpu.judged(cpu_arms(cost=0.1, p99_us=None), IPERF3).missed
    assert cpu.judged(cpu_arms(cost=0.1, p99_us=1, received=980), IPERF3).missed
    names = list(greatest._OURS)
    taken = {name: [outcome(received=9000, sent=9000)] for name in names}
    assert not greatest.judged(taken | {IPERF3: [outcome()]}, IPERF3).missed
    assert greatest.judged(taken | {IPERF3: [None]}, IPERF3).missed


def test_a_thin_flow_is_held_to_its_cpu_and_its_times():
    taken = {skype.OURS: [outcome(cpu_s=0.05, p99_us=40, within_50us=0.96)] * 3, IPERF3: [outcome()] * 3}
    assert set(words(skype.judged(taken, 10.0)).values()) == {"met"}
    taken[skype.OURS] = [outcome(cpu_s=0.2, p99_us=40, within_50us=0.94)] * 3
    assert set(words(skype.judged(taken, 10.0)).values()) == {"NOT met"}


class Receiver:
    """Takes ``capacity_pps`` and loses the rest; its sender reaches ``fastest_pps``."""

    def __init__(self, capacity_pps, fastest_pps):
        self.capacity_pps, self.fastest_pps = capacity_pps, fastest_pps
        self.asked = []

    def probe(self, pps):
        self.asked.append(pps)
        sent = round(self.fastest_pps if pps is None else min(pps, self.fastest_pps))
        return outcome(sent=sent, received=min(sent, self.capacity_pps))


def test_a_sender_that_loses_nothing_is_asked_once():
    receiver = Receiver(capacity_pps=1_000_000, fastest_pps=500_000)
    assert greatest.greatest(receiver.probe).received == 500_000
    assert receiver.asked == [None]


@pytest.mark.parametrize("capacity_pps", [990_000, 700_000, 300_000, 60_000])
def test_the_search_comes_close_to_what_the_receiver_takes(capacity_pps):
    receiver = Receiver(capacity_pps, fastest_pps=1_000_000)
    best = greatest.greatest(receiver.probe)
    assert best.loss < greatest.GREATEST_LOSS
    assert 0.95 * capacity_pps <= best.received <= capacity_pps
    assert len(receiver.asked) <= greatest.PROBES


def test_a_receiver_that_drowns_is_found_at_a_lower_rate():
    """Under overload it takes a tenth of what it can: what arrives first is a bad guess, but a good one."""
    receiver = Receiver(capacity_pps=600_000, fastest_pps=1_000_000)

    def probe(pps):
        found = receiver.probe(pps)
        return found if found.loss < greatest.GREATEST_LOSS else outcome(sent=found.sent, received=60_000)

    assert greatest.greatest(probe).received >= 0.8 * 600_000


def test_a_path_that_always_loses_has_no_rate():
    assert greatest.greatest(lambda pps: outcome(sent=1000, received=900)) is None


def test_rates_are_held_to_their_multiples():
    names = list(greatest._OURS)
    taken = dict(zip(names, ([outcome(received=n, sent=n)] for n in (8000, 1900, 950)), strict=True))
    section = greatest.judged(taken | {IPERF3: [outcome()]}, IPERF3)
    assert list(words(section).values()) == ["met", "NOT met", "met"]
    section = greatest.judged(taken | {IPERF3: [None]}, IPERF3)
    assert set(words(section).values()) == {"not judged"}


def test_goodput_is_held_to_its_reference():
    assert words(goodput.tcp_judged({"netjoule-traffic": [94.0], IPERF3: [100.0]}, IPERF3)) == {
        "TCP goodput against iperf3": "NOT met"
    }
    arms = [*goodput._QUIC_ARMS, *goodput._LOOP_ARMS]
    taken = dict(zip(arms, ([9.0], [27.0], [10.0], [31.0]), strict=True))
    section = goodput.quic_judged(taken)
    assert list(words(section).values()) == ["met", "NOT met", "met"]
    assert [row[2] for row in section.rows] == ["0.90", "0.87", "1.00", "1.00"]


def test_goodput_counts_from_the_first_to_the_last_message():
    receiver = {"first_packet_ns": 10**9, "last_packet_ns": 3 * 10**9, "bytes_received_unique": 250_000_000}
    assert goodput.received_mbps({"receiver": receiver}) == 1000.0


def cell(who, scheduled, sent, rate=1.0):
    return fidelity.Cell(Flow(64, rate, 10), who, scheduled, sent)


def test_a_flow_may_miss_one_message_or_two_in_a_thousand():
    assert cell("udp", 27, 26).good
    assert not cell("udp", 27, 25).good
    assert cell("udp", 10_000, 9_980).good
    assert not cell("udp", 10_000, 9_979).good
    assert not cell("udp", 10_000, 10_021).good


def test_every_transport_has_a_verdict_and_the_free_ones_none():
    cells = [cell(who, 1000, 1000) for who in fidelity.HELD if who != "quic"]
    cells += [cell("quic", 1000, 900), cell("quic", 1000, 1000, rate=2.0), cell("dccp", 1000, 500)]
    section = fidelity.judged(cells, 10)
    assert words(section)["sent against scheduled, udp"] == "met"
    assert words(section)["sent against scheduled, quic"] == "NOT met"
    assert len(section.verdicts) == len(fidelity.HELD)
    measured = {v.what: v.measured for v in section.verdicts}
    assert measured["sent against scheduled, quic"] == "1 of 2 flows; 64 B at 1 Mb/s: -100 !"
    assert section.rows[1].count("-") == len(fidelity.HELD)  # only quic ran at 2 Mb/s


def pcap(*packets, magic=0xA1B23C4D):
    """A capture of (time in ns, UDP payload length) behind Ethernet and IPv4 headers, cut off after them."""
    file = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 42, 1)
    for time_ns, payload_bytes in packets:
        kept = bytes(14) + struct.pack(">BBH", 0x45, 0, 28 + payload_bytes) + bytes(24)
        file += struct.pack("<IIII", *divmod(time_ns, 10**9), len(kept), 14 + 28 + payload_bytes) + kept
    return file


def test_a_capture_gives_one_time_per_message_and_repeats_it_within_a_train():
    file = pcap((5, 37), (10**9 + 7, 64), (2 * 10**9, 192), (3 * 10**9, 100))
    assert list(wire.message_times_ns(file, 64)) == [10**9 + 7, *[2 * 10**9] * 3]
    with pytest.raises(ValueError, match="nanosecond"):
        list(wire.message_times_ns(pcap(magic=0xA1B2C3D4), 64))


def test_errors_begin_where_no_packet_is_early():
    assert wire.errors_us([1_000, 2_500, 3_000, 4_000], 1_000) == [0.0, 0.0, 0.0, 0.5]
    assert wire.errors_us([], 1_000) == []


def test_quantiles_are_values_that_occurred():
    values = [float(n) for n in range(1, 101)]
    assert wire.quantile(values, 0.5) == 50
    assert wire.quantile(values, 0.99) == 99
    assert wire.quantile([], 0.99) is None


def test_the_wire_table_shows_nothing_for_a_tap_that_lost_packets():
    section = wire.judged({"ours": [([0.0, 10.0, 60.0], 40.0)] * 3, NEWER: [([], None)] * 3})
    assert section.rows == [
        ["ours", "10.0", "60.0", "66.7 (66.7 to 66.7)", "40.0"],
        [NEWER, "-", "-", "-", "-"],
    ]


def test_the_window_as_late_as_the_newer_iperf3_lies_between_those_tried():
    late_us = {0: 60.0, 50: 110.0, 200: 220.0, 400: 420.0}
    taken = {f"netjoule-traffic, window {us} us": [([late], None)] * 3 for us, late in late_us.items()}
    for theirs_us, window_us in (
        (270.0, 250),
        (165.0, 125),
        (220.0, 200),
        (59.0, None),
        (420.0, 400),
        (900.0, 400),
    ):
        taken[NEWER] = [([theirs_us], None), ([2000.0], None), ([], None)]
        assert wire.window_as_late_us(taken, NEWER, gso=False) == window_us
    later = {f"netjoule-traffic, window {us} us, GSO": [([us + 30.0], None)] for us in (50, 200, 400)}
    assert wire.window_as_late_us(later | {NEWER: [([155.0], None)]}, NEWER, gso=True) == 125
    taken[NEWER] = [([], None)] * 3  # the tap lost packets
    assert wire.window_as_late_us(taken, NEWER, gso=False) is None


def test_equally_late_ours_is_held_to_a_share_of_the_newer_iperf3():
    arms = cpu_arms(cost=0.8, p99_us=59)
    ours = "netjoule-traffic, window 200 us"
    plain, trains = wire.priced({ours: arms[ours], f"{ours}, GSO": arms[ours], NEWER: arms[NEWER]}).verdicts
    assert (plain.measured, plain.word) == (trains.measured, trains.word) == ("0.67", "met")
    assert trains.what.endswith("on the wire, window 200 us, GSO")
    assert wire.priced({}).verdicts[0].word == "not judged"


def test_stolen_time_is_a_share_of_all_time():
    before = [100, 0, 100, 800, 0, 0, 0, 0, 50, 0]
    after = [200, 0, 200, 1500, 0, 0, 0, 100, 90, 0]
    assert host.stolen_percent(before, after) == 10.0


def test_downloads_are_held_to_curl_and_http3_to_libcurl_and_to_http2():
    def rounds(time_s, cpu_s):
        return [downloads.Fetched(10**9, time_s, cpu_s)] * 3

    taken = {
        f"{client}, {http}": rounds(1.0, 1.0)
        for http in ("HTTP/1.1", "HTTP/1.1, TLS")
        for client in (downloads.OURS, downloads.CURL)
    }
    taken |= {
        f"{downloads.OURS}, HTTP/2, TLS": rounds(1.25, 0.5),
        f"{downloads.CURL}, HTTP/2, TLS": rounds(1.0, 1.0),
    }
    taken |= {f"{downloads.OURS}, HTTP/3": rounds(2.0, 1.0)}
    section = downloads.judged(taken)
    assert section.rows[0] == [
        f"{downloads.OURS}, HTTP/1.1",
        "8,000 (8,000 to 8,000)",
        "0.100 (0.100 to 0.100)",
    ]
    missing = "CPU per 100 MB against curl_cffi's, HTTP/3"
    assert words(section) == {
        **{f"rate against curl's, {http}": "met" for http in ("HTTP/1.1", "HTTP/1.1, TLS")},
        **{
            f"CPU per 100 MB against curl's, {http}": "met"
            for http in ("HTTP/1.1", "HTTP/1.1, TLS", "HTTP/2, TLS")
        },
        "rate against curl's, HTTP/2, TLS": "NOT met",
        missing: "not judged",
        "CPU per 100 MB of HTTP/3 against HTTP/2, both ours": "met",
    }
    section = downloads.judged(taken | {f"{downloads.CFFI}, HTTP/3": rounds(2.0, 2.0)})
    assert words(section)[missing] == "NOT met"


def test_many_files_are_held_to_the_best_of_the_others_in_each_round_and_http2_to_http1():
    def rounds(*times_s):
        told = {"bytes": 125 * 10**6, "cpu_s": 2.0, "connections_opened_n": 64, "start_ns": 10**9}
        return [told | {"end_ns": 10**9 + round(time_s * 1e9)} for time_s in times_s]

    aria2, curl = many_files.PEERS
    taken = {aria2: rounds(40, 60, 50), curl: rounds(60, 40, 50)}
    taken |= {many_files.HTTP_1: rounds(40, 40, 40), many_files.HTTP_2: rounds(32, 32, 32)}
    section = many_files.judged(taken)
    assert section.rows[0] == [aria2, "20.00 (16.67 to 25.00)", "2.00 (2.00 to 2.00)", "64 (64 to 64)"]
    assert [(one.measured, one.word) for one in section.verdicts] == [("1.00", "met"), ("1.25", "met")]
    taken[many_files.HTTP_1] = rounds(40.5, 40.5, 50)
    assert [(one.measured, one.word) for one in many_files.judged(taken).verdicts] == [
        ("0.99", "NOT met"),
        ("1.27", "met"),
    ]

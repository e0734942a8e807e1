# SPDX-License-Identifier: Apache-2.0
"""What generators say becomes the same figures for all of them."""

import pytest

from netjoule_bench.generators.flow import Departures, Flow
from netjoule_bench.generators.iperf3 import RECEIVE_BUFFER_BYTES, room
from netjoule_bench.generators.iperf3 import outcome as iperf3_outcome
from netjoule_bench.generators.neighbours import ditg_outcome, netperfmeter_outcome
from netjoule_bench.generators.netjoule_traffic import departures
from netjoule_bench.generators.netjoule_traffic import outcome as own_outcome
from netjoule_bench.generators.newer_iperf3 import mirror_of, unpacked_command, version_of

FLOW = Flow(payload_bytes=64, rate_mbps=30, seconds=10)


def test_a_flow_knows_its_messages_and_can_be_had_at_another_rate():
    assert FLOW.messages == 585_937.5
    assert FLOW.at(1000.0) == Flow(64, 0.512, 10)
    assert Flow(64, None, 10).messages == 0


def sender(scheduled, sent, last_ns=None):
    return {
        "messages_scheduled": scheduled,
        "messages_sent": sent,
        "first_packet_ns": None if last_ns is None else 0,
        "last_packet_ns": last_ns,
    }


def test_own_reports_give_counts_over_the_time_of_arrival():
    report = {
        "sender": sender(100, 90, last_ns=10**9),
        "receiver": {"messages_received_unique": 45, "first_packet_ns": 0, "last_packet_ns": 500_000_000},
    }
    outcome = own_outcome(report, FLOW, 0.9, 0.09)
    assert (outcome.scheduled, outcome.sent, outcome.received) == (100, 90, 45)
    assert outcome.received_pps == 90
    assert outcome.loss == 0.5
    assert outcome.sender_us == pytest.approx(10_000)
    assert outcome.receiver_us == pytest.approx(2_000)
    assert outcome.departures == Departures(None, None, None)


def test_without_a_receiver_what_was_sent_counts():
    outcome = own_outcome({"sender": sender(9, 9), "receiver": None}, FLOW, 0, 0)
    assert (outcome.received, outcome.loss, outcome.seconds) == (9, 0, 10)


def test_nothing_sent_is_all_lost():
    assert own_outcome({"sender": sender(9, 0), "receiver": None}, FLOW, 0, 0).loss == 1


def test_a_report_without_a_certificate_certifies_nothing():
    nothing = Departures(None, None, None)
    assert departures({}) == departures({"pacing_certificate": None}) == nothing


def test_departures_are_those_of_the_certificate():
    certificate = {"error_us": {"p50": 1.5, "p99": 40.0}, "within_50us_ratio": 0.99}
    assert departures({"pacing_certificate": certificate}) == Departures(1.5, 40.0, 0.99)
    # A flow in which nothing left has no errors.
    nothing_left = {"error_us": None, "within_50us_ratio": None}
    assert departures({"pacing_certificate": nothing_left}) == Departures(None, None, None)


OLD = {"sum": {"packets": 1000, "lost_packets": 10, "seconds": 2.0}}
NEW = OLD | {
    "sum_sent": {"packets": 1000, "lost_packets": 0},
    "sum_received": {"packets": 995, "lost_packets": 5},
}


@pytest.mark.parametrize(("end", "received"), [(OLD, 990), (NEW, 995)], ids=["3.12", "newer"])
def test_iperf3_tells_losses_in_one_sum_or_apart(end, received):
    outcome = iperf3_outcome({"end": end}, FLOW, (1.0, 2.0))
    assert (outcome.sent, outcome.received, outcome.seconds) == (1000, received, 2.0)
    assert outcome.scheduled == 585_938


def test_iperf3_is_given_as_much_of_the_same_buffer_as_the_kernel_grants():
    assert room(2 * RECEIVE_BUFFER_BYTES) == ["-w", str(32 << 20)]
    assert room(4 << 20) == ["-w", str(4 << 20)]
    assert room(212_992) == []


DITG_LOG = """ITGDec version 2.8.1 (r1023)
----------------------------------------------------------
Flow number: 1
From 10.78.0.1:38230
To    10.78.0.2:8999
----------------------------------------------------------
Total time               =      1.998001 s
Total packets            =          {packets}
Minimum delay            =      0.000004 s
Packets dropped          =             0 (0.00 %)
----------------------------------------------------------

__________________________________________________________
****************  TOTAL RESULTS   ******************
__________________________________________________________
Number of flows          =             1
Total time               =      1.998001 s
Total packets            =          {packets}
"""


def test_ditg_is_read_from_both_logs():
    sender, receiver = (DITG_LOG.format(packets=packets) for packets in (1999, 1990))
    outcome = ditg_outcome(sender, receiver, FLOW, (1.0, 2.0))
    assert (outcome.sent, outcome.received, outcome.seconds) == (1999, 1990, 1.998001)


def test_netperfmeter_is_read_from_both_ends():
    def scalars(end, **figures):
        return "".join(
            f'scalar "netPerfMeter.{end}.flow[0]" "{name.replace("_", " ")}"   {value}\n'
            for name, value in figures.items()
        )

    active = scalars("active", Transmitted_Packets=124, First_Reception=0, Last_Reception=0)
    passive = scalars("passive", Received_Packets=123, First_Reception=1_000_000, Last_Reception=3_000_000)
    outcome = netperfmeter_outcome(active, passive, FLOW, (1.0, 2.0))
    assert (outcome.sent, outcome.received, outcome.seconds) == (124, 123, 2.0)


def test_versions_compare_as_numbers():
    assert version_of("3.9") < version_of("3.12") < version_of("3.18") < version_of("3.18.1")
    assert version_of("3.17.1+") == (3, 17, 1)


def test_the_mirror_is_debians_own_archive_not_its_updates():
    targets = [
        "Debian-Security bookworm-security http://mirror.example/debian-security/",
        "Other bookworm http://other.example/",
        "Debian bookworm-updates http://mirror.example/debian/",
        "Debian bookworm http://mirror.example/debian/",
    ]
    assert mirror_of(targets) == "http://mirror.example/debian/"
    assert mirror_of(targets[:3]) is None


def test_an_unpacked_iperf3_runs_by_the_loader_that_came_with_it(tmp_path):
    assert unpacked_command(tmp_path) is None
    library = tmp_path / "root/usr/lib/x86_64-linux-gnu"
    for path in (library / "ld-linux-x86-64.so.2", tmp_path / "root/usr/bin/iperf3"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    command = unpacked_command(tmp_path)
    assert command is not None
    assert command[0] == str(library / "ld-linux-x86-64.so.2")
    assert command[1:] == ("--library-path", str(library), str(tmp_path / "root/usr/bin/iperf3"))

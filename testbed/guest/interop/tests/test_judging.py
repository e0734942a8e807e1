# SPDX-License-Identifier: Apache-2.0
"""Cells, verdicts, tables and the RFC 6773 converter, without a guest."""

import json
import struct
from dataclasses import replace

import pytest

from captures import Dissection
from cells import ENCAPSULATED, FROM_KERNEL, KERNEL, PAIRS, TO_KERNEL, Cell, compared, reduced, whole
from encapsulation import converted, native, server_port
from guest_run import Flow
from inside import rules
from judge import compare, defects
from matrix import run_matrix, write
from table import page, verdict

CLEAN = Dissection(100, 0, 0, 0, {"Data": 90, "Close": 1, "Reset": 1}, {"Closed": 1})


def told(goodput_mbps=9.0, **changed):
    receiver = {"goodput_mbps": goodput_mbps, "messages_received_unique": 100}
    report = {"receiver": receiver, "reconciles": True, "end_reason": "duration", **changed}
    return {"exit_code": 0, "stderr": "", "report": report, "kernel": "6.1"}


def flow(cell, goodput_mbps, wrong=()):
    return Flow(cell, "6.1", told(goodput_mbps), CLEAN, list(wrong))


def test_the_whole_matrix_has_each_combination_three_times():
    cells = whole()
    assert len(cells) == len(set(cells)) == 3 * 2 * 2 * 3 * 3 + 12
    for pair in (KERNEL, TO_KERNEL, FROM_KERNEL):
        paths = {cell.path for cell in cells if cell.pair == pair.name and not cell.random}
        assert paths == {(ccid, ip, loss) for ccid in (2, 3) for ip in (4, 6) for loss in (0, 1, 5)}


def test_the_reduced_matrix_is_a_small_part_with_both_directions_and_ipv6():
    cells = reduced()
    assert set(cells) <= set(whole())
    assert len(cells) <= 10
    assert {cell.loss_percent > 0 for cell in cells} == {cell.random for cell in cells} == {True, False}
    assert {(cell.pair, cell.ip_version) for cell in cells} >= {
        (pair.name, ip) for pair in (TO_KERNEL, FROM_KERNEL) for ip in (4, 6)
    }
    assert {cell.ccid for cell in cells if cell.ip_version == 4} == {2, 3}


def test_only_user_space_ends_over_raw_ip_keep_their_kernel_quiet():
    assert {pair.name: pair.raw_ends for pair in PAIRS.values()} == {
        "kernel to kernel": (),
        "ours to kernel": ("client",),
        "kernel to ours": ("server",),
        "ours to ours over UDP": (),
    }


def test_losses_are_regular_on_both_ends_and_begin_elsewhere_in_each_repetition():
    told = [cell.document() for cell in compared(4, 2, 5, 3) if cell.pair == TO_KERNEL.name]
    assert [cell["lose"] for cell in told] == [{"every": 20, "first": n} for n in (19, 0, 1)]
    client, server = (rules(told[0], end) for end in ("client", "server"))
    assert "numgen inc mod 20 19 drop" in client
    assert "numgen inc mod 20 19 drop" in server
    assert ("skuid" in client, "skuid" in server) == (True, False)
    assert "loss" not in told[0]["netem"]


def test_random_losses_are_netem_s_and_not_compared():
    cell = next(cell for cell in whole() if cell.random)
    assert cell.document()["lose"] is None
    assert cell.document()["netem"].endswith("loss 5%")
    assert compare({replace(c, random=True): 1.0 for c in compared(4, 2, 5, 1)}) == []


def test_a_path_without_losses_needs_no_filter_at_kernel_ends():
    (first, *_) = (cell.document() for cell in compared(4, 2, 0, 1))
    assert [rules(first, end) for end in ("client", "server")] == ["", ""]


def test_a_clean_flow_has_no_defects():
    assert defects(told(), CLEAN) == []


@pytest.mark.parametrize(
    ("outcome", "seen", "words"),
    [
        ({"exit_code": 3, "stderr": "no DCCP", "report": None}, CLEAN, "exit 3: no DCCP"),
        ({"exit_code": None, "stderr": "no end", "report": None}, CLEAN, "exit None: no end"),
        (told(reconciles=False), CLEAN, "the books do not balance"),
        (told(end_reason="interrupted"), CLEAN, "ended by interrupted"),
        (told(), replace(CLEAN, bad_checksums=2), "2 bad checksums"),
        (told(), replace(CLEAN, undecodable=1), "1 undecodable packets"),
        (told(), replace(CLEAN, resets={"Closed": 1, "Aborted": 1}), "1 Reset 'Aborted'"),
        (told(), replace(CLEAN, resets={}), "no Reset 'Closed' answered the Close"),
        (told(), replace(CLEAN, types={"Data": 1}), "no Close"),
        (told(), replace(CLEAN, packets=0), "no DCCP in the capture"),
    ],
)
def test_each_defect_is_named(outcome, seen, words):
    assert words in defects(outcome, seen)


def test_how_the_kernel_closes_towards_itself_is_not_judged():
    twice = replace(CLEAN, resets={"Closed": 1, "No Connection": 1})
    assert defects(told(), twice, ours=False) == []
    assert defects(told(), twice) == ["1 Reset 'No Connection'"]


def test_a_close_repeated_because_its_reset_was_lost_is_no_defect():
    twice = replace(CLEAN, resets={"Closed": 1, "No Connection": 1})
    assert defects(told(), twice, lossy=True) == []
    unanswered = replace(CLEAN, resets={"No Connection": 1})
    assert defects(told(), unanswered, lossy=True) != []
    assert defects(told(), unanswered, lossy=True, unseen=True) == []
    assert defects(told(), replace(twice, bad_checksums=1), ours=False) == ["1 bad checksums"]


def test_medians_are_compared_on_one_path_and_a_failed_flow_counts_as_nothing():
    goodputs = {Cell(KERNEL.name, 2, 4, 1, n): value for n, value in enumerate((4.0, 8.0, 6.0))}
    goodputs |= {Cell(TO_KERNEL.name, 2, 4, 1, n): value for n, value in enumerate((3.0, None, 5.0))}
    goodputs |= {Cell(FROM_KERNEL.name, 2, 4, 1, n): 9.0 for n in range(3)}
    goodputs |= {Cell(KERNEL.name, 3, 4, 1, 0): 1.0, Cell(ENCAPSULATED.name, 2, 4, 1, 0): 99.0}
    first, second = compare(goodputs)
    assert first.medians_mbps[KERNEL.name] == 6.0
    assert first.ratios == {TO_KERNEL.name: 0.5, FROM_KERNEL.name: 1.5}
    assert (first.low(), first.high()) == ([TO_KERNEL.name], [FROM_KERNEL.name])
    assert (second.ccid, second.ratios) == (3, {})


def test_paths_that_chance_may_have_decided_are_run_again(tmp_path):
    ran = []

    def run_them(cells, _folder):
        ran.append(list(cells))
        slow = len(ran) == 1
        return [flow(c, 5.0 if slow and c.pair == TO_KERNEL.name and c.ccid == 3 else 9.0) for c in cells]

    cells = [*compared(4, 2, 0, 1), *compared(4, 3, 1, 1)]
    flows, comparisons = run_matrix(cells, tmp_path, run_them)
    assert [len(part) for part in ran] == [6, 12]
    assert {(cell.ccid, cell.repetition) for cell in ran[1]} == {(3, n) for n in range(1, 5)}
    assert len(flows) == 18
    assert verdict(flows, comparisons) == []


def test_the_page_and_the_document_say_what_was_seen(tmp_path):
    cells = list(compared(6, 2, 5, 1))
    flows = [flow(cell, {KERNEL.name: 4.0, TO_KERNEL.name: 4.2}.get(cell.pair, 2.0)) for cell in cells]
    flows[2].wrong.append("no Close")
    wrong = write(
        flows, compare({f.cell: f.goodput_mbps for f in flows}), tmp_path / "p.md", tmp_path / "p.json"
    )
    text = (tmp_path / "p.md").read_text()
    assert "| IPv6 | 2 | 5 % | 4.00 (1) | 4.20 (1) [1.05] | 2.00 (1) [0.50] |" in text
    assert [sentence.split(":")[0] for sentence in wrong] == [
        "kernel-to-ours.ccid2.ipv6.loss5.0",
        "kernel to ours, CCID 2, IPv6, 5 % loss",
    ]
    assert all(sentence in text for sentence in wrong)
    written = json.loads((tmp_path / "p.json").read_text())
    assert written["flows"][2]["wrong"] == ["no Close"]
    assert written["comparisons"][0]["ratios"]["ours to kernel"] == pytest.approx(1.05)


def test_what_is_too_fast_must_be_explained():
    cells = list(compared(4, 2, 0, 1))
    flows = [flow(cell, 4.0 if cell.pair == KERNEL.name else 8.0) for cell in cells]
    comparisons = compare({f.cell: f.goodput_mbps for f in flows})
    assert "2.00 of kernel to kernel, above 1.25 and not explained" in verdict(flows, comparisons)[0]
    about = {"date": "2026-01-01", "commit": "c", "host": "h", "kernel": "6.1"}
    assert "not explained yet" in page(flows, comparisons, about)


def test_a_cause_is_told_once_with_all_its_cells():
    cells = [*compared(4, 3, 1, 1), *compared(6, 3, 1, 1)]
    flows = [flow(cell, 1.0 if cell.pair == KERNEL.name else 3.0) for cell in cells]
    comparisons = compare({f.cell: f.goodput_mbps for f in flows})
    about = {"date": "2026-01-01", "commit": "c", "host": "h", "kernel": "6.1"}
    (line,) = [line for line in page(flows, comparisons, about).splitlines() if "(3.00)" in line]
    assert line.count("(3.00)") == 4
    assert "ours to kernel, IPv6, CCID 3, 1 % loss (3.00)" in line


# A DCCP-Sync in UDP over IPv4 and IPv6; the DCCP checksum is zero, as RFC 6773 allows.
SYNC = bytes.fromhex("03e807d00700000090000000000000070000000000000009" + "1d000000")
ETHERNET = bytes(12)


def encapsulated(version):
    udp = struct.pack(">HHHH", 40000, 6511, 8 + len(SYNC), 0) + SYNC
    if version == 4:
        header = bytes.fromhex("450000000000400040110000c0000201c0000202")
        header = header[:2] + struct.pack(">H", 20 + len(udp)) + header[4:]
        return ETHERNET + b"\x08\x00" + header + udp + bytes(4)  # Ethernet pads short frames
    ends = bytes(15) + b"\x01" + bytes(15) + b"\x02"
    return ETHERNET + b"\x86\xdd" + struct.pack(">IHBB", 0x60000000, len(udp), 17, 64) + ends + udp


def ones_sum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_ipv4_becomes_protocol_33_with_right_checksums():
    packet = native(encapsulated(4))
    assert packet is not None
    ip, dccp = packet[14:34], packet[34:]
    assert (ip[9], int.from_bytes(ip[2:4], "big"), len(dccp)) == (33, 20 + len(SYNC), len(SYNC))
    assert ones_sum(ip) == 0xFFFF
    assert ones_sum(ip[12:20] + struct.pack(">BBH", 0, 33, len(dccp)) + dccp) == 0xFFFF
    assert dccp[:6] + dccp[8:] == SYNC[:6] + SYNC[8:]


def test_ipv6_becomes_protocol_33_with_a_right_checksum():
    packet = native(encapsulated(6))
    assert packet is not None
    ip, dccp = packet[14:54], packet[54:]
    assert (ip[6], int.from_bytes(ip[4:6], "big")) == (33, len(SYNC))
    assert ones_sum(ip[8:40] + struct.pack(">II", len(dccp), 33) + dccp) == 0xFFFF


def test_partial_coverage_is_kept():
    frame = bytearray(encapsulated(4) + b"")
    frame[42 + 5] = 0x01  # CsCov 1: header and options only
    packet = native(bytes(frame))
    assert packet is not None
    dccp = packet[34:]
    assert ones_sum(packet[26:34] + struct.pack(">BBH", 0, 33, len(dccp)) + dccp[:28]) == 0xFFFF


def test_a_capture_is_converted_and_other_packets_are_left_out(tmp_path):
    frames = [encapsulated(4), ETHERNET + b"\x08\x06" + bytes(46), encapsulated(6)]
    records = b"".join(struct.pack("<IIII", 1, 2, len(f), len(f)) + f for f in frames)
    source = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records
    (tmp_path / "a.pcap").write_bytes(source)
    assert server_port(source) == 6511
    assert converted(tmp_path / "a.pcap", tmp_path / "b.pcap") == 2
    made = (tmp_path / "b.pcap").read_bytes()
    assert len(made) == 24 + 2 * 16 + (14 + 20 + len(SYNC)) + (14 + 40 + len(SYNC))
    assert made.startswith(source[:24])


def test_a_file_that_is_no_such_capture_is_refused():
    with pytest.raises(ValueError, match="not a little-endian pcap"):
        server_port(bytes(40))

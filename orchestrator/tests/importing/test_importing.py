# SPDX-License-Identifier: Apache-2.0
"""Files of iperf3, D-ITG and NetPerfMeter as flows; the files are those of real tests (test_generators*.py).

Where a test needs what no recorded file has, it changes one and says so: such files are invented.
"""

import bz2
import json
import shutil
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from golden_sentences import raises, same_sentence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import netjoule_contracts as contracts
from netjoule.core.errors import InvalidData, UsageError
from netjoule.importing.flows import Found, ImportedFlow, Options
from netjoule.importing.read import read_all

DATA = Path(__file__).parents[1] / "data"
IPERF3 = DATA / "iperf3"
DITG = DATA / "ditg"
NPM = DATA / "netperfmeter"
UDP = Options(transport="udp", day=date(2026, 11, 21))


def only(found: Found) -> ImportedFlow:
    assert found.refused == []
    assert len(found.flows) == 1
    return sound(found.flows[0])


def sound(flow: ImportedFlow) -> ImportedFlow:
    """A flow whose report fits its contract and whose counts add up."""
    report = flow.report
    contracts.validate("flow_report", report)
    sender, receiver = report["sender"], report["receiver"]
    assert report["reconciles"]
    assert sender["messages_scheduled"] == sender["messages_sent"] + sender["messages_not_sent"]
    if receiver["messages_lost"] is None:
        assert (report["transport"], report["generator"]["name"]) == ("tcp", "iperf3")
    else:
        assert sender["messages_sent"] == receiver["messages_received_unique"] + receiver["messages_lost"]
    mine = [i for i in report["intervals"] if i["end"] == "receiver"]
    assert sum(i["bytes"] for i in mine) == receiver["bytes_received_unique"]
    return flow


def changed(source: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """An invented report: a recorded one with a part of it changed."""
    document = json.loads(source.read_text())
    change(document)
    target.write_text(json.dumps(document))
    return target


# --- iperf3 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "transport", "direction", "sent", "lost"),
    [
        ("udp-up", "udp", "up", 261, 0),
        ("udp-down", "udp", "down", 261, 0),
        ("tcp-up", "tcp", "up", 261, None),
        ("tcp-down", "tcp", "down", 261, None),
    ],
)
def test_iperf3s_report_is_a_flow(
    name: str, transport: str, direction: str, sent: int, lost: int | None
) -> None:
    flow = only(read_all([IPERF3 / f"{name}.json"], Options()))
    report = flow.report
    assert (report["transport"], report["direction"]) == (transport, direction)
    assert (report["payload_bytes"], report["offered_rate_mbps"]) == (1440, 3.0)
    assert (report["sender"]["messages_sent"], report["receiver"]["messages_lost"]) == (sent, lost)
    assert report["receiver"]["goodput_mbps"] == pytest.approx(3.006, abs=0.002)
    assert report["sender"]["host"] == ("client" if direction == "up" else "server")
    assert len([i for i in report["intervals"] if i["end"] == "receiver"]) >= 10
    assert (flow.version, report["generator"]) == ("3.12", {"name": "iperf3", "version": "3.12"})
    assert flow.notes == ()


def test_what_iperf3_lost_is_what_it_says() -> None:
    report = only(read_all([IPERF3 / "udp-overload.json"], Options())).report
    assert report["sender"]["messages_sent"] == 19515
    # Its lost_packets, 7018, and 10 that were sent last and never missed by it.
    assert report["receiver"]["messages_lost"] == 7028
    assert report["receiver"]["jitter_ms"] == pytest.approx(0.1457, abs=1e-4)


def test_what_tcp_had_in_flight_at_the_end_is_no_loss_and_no_byte_is_dropped(tmp_path: Path) -> None:
    """Invented: a short transfer in blocks of 128 KiB, a third of which was still on its way."""

    def short(document: dict[str, Any]) -> None:
        document.pop("server_output_json")
        document["start"]["test_start"]["blksize"] = 131_072
        end = document["end"]
        end["sum_sent"] |= {"bytes": 1_179_648, "seconds": 1.0}
        end["sum_received"] |= {"bytes": 830_368, "seconds": 1.121}

    report = only(
        read_all([changed(IPERF3 / "tcp-up.json", tmp_path / "short.json", short)], Options())
    ).report
    receiver = report["receiver"]
    assert (receiver["messages_lost"], receiver["loss_ratio"]) == (None, None)
    assert (report["sender"]["bytes_sent"], receiver["bytes_received_unique"]) == (1_179_648, 830_368)
    assert receiver["goodput_mbps"] == pytest.approx(8e-6 * 830_368 / 1.121)
    assert sum(i["bytes"] for i in report["intervals"] if i["end"] == "receiver") == 830_368


def test_packets_that_came_late_are_taken_from_the_intervals_that_missed_them(tmp_path: Path) -> None:
    """Invented: what one interval counts as lost arrives, reordered, in the one after the next."""
    told = [0, 5, 2, -6, 1, -1, 3, 0, 0, 0]

    def late(document: dict[str, Any]) -> None:
        for interval, lost in zip(document["intervals"], told, strict=False):
            interval["streams"][0]["lost_packets"] = lost

    report = only(
        read_all([changed(IPERF3 / "udp-down.json", tmp_path / "late.json", late)], Options())
    ).report
    counted = [i["messages_lost"] for i in report["intervals"] if i["end"] == "receiver"]
    assert counted[: len(told)] == [0, 1, 0, 0, 0, 0, 3, 0, 0, 0]


@pytest.mark.parametrize("name", ["udp-up", "udp-down", "tcp-up", "tcp-down", "udp-overload"])
def test_a_clients_report_by_itself_gives_the_same_totals(name: str, tmp_path: Path) -> None:
    alone = changed(IPERF3 / f"{name}.json", tmp_path / "alone.json", lambda d: d.pop("server_output_json"))
    ours, whole = (only(read_all([path], Options())).report for path in (alone, IPERF3 / f"{name}.json"))
    for end, figures in {
        "sender": ("messages_sent", "messages_scheduled", "cpu_s", "goodput_mbps"),
        "receiver": ("messages_received_unique", "messages_lost", "jitter_ms", "loss_ratio"),
    }.items():
        assert {k: ours[end][k] for k in figures} == {k: whole[end][k] for k in figures}
    remote = "receiver" if ours["direction"] == "up" else "sender"
    assert len([i for i in ours["intervals"] if i["end"] == remote]) == (remote == "receiver")


def test_a_servers_report_beside_it_is_found_by_the_cookie(tmp_path: Path) -> None:
    whole = json.loads((IPERF3 / "udp-up.json").read_text())
    server = whole.pop("server_output_json")
    server["start"]["cookie"] = whole["start"]["cookie"]
    (tmp_path / "client.json").write_text(json.dumps(whole))
    # A server that stays writes one report after another.
    other = json.dumps(server | {"start": server["start"] | {"cookie": "another"}})
    (tmp_path / "server.json").write_text(json.dumps(server) + "\n" + other)
    found = read_all([tmp_path], Options())
    assert len(found.flows) == 1
    assert sound(found.flows[0]).report == only(read_all([IPERF3 / "udp-up.json"], Options())).report
    assert [source.path.name for source in found.flows[0].sources] == ["client.json", "server.json"]
    assert len(found.refused) == 1
    assert "server's report" in str(found.refused[0])


@pytest.mark.parametrize("name", ["udp-up", "udp-down"])
def test_reports_before_sum_sent_had_one_sum(name: str, tmp_path: Path) -> None:
    def older(document: dict[str, Any]) -> None:
        for part in ("sum_sent", "sum_received"):
            document["end"].pop(part)
        for part in (document["start"], document["start"]["test_start"]):
            part.pop("target_bitrate")
        document.pop("server_output_json")
        document["start"]["version"] = "iperf 3.1.3"
        for entry in document["intervals"]:
            for one in entry["streams"]:
                del one["sender"]

    flow = only(read_all([changed(IPERF3 / f"{name}.json", tmp_path / "old.json", older)], Options()))
    assert flow.report["sender"]["messages_sent"] == 261
    assert flow.report["receiver"]["messages_lost"] == 0
    assert flow.version == "3.1.3"
    assert [note.code for note in flow.notes] == ["offered_rate_assumed"]
    assert flow.report["offered_rate_mbps"] == 3.0


def test_both_directions_of_bidir_are_flows() -> None:
    up, down = (sound(flow) for flow in read_all([IPERF3 / "udp-bidir.json"], Options()).flows)
    assert (up.report["direction"], down.report["direction"]) == ("up", "down")
    assert (up.report["sender"]["messages_sent"], down.report["sender"]["messages_sent"]) == (250, 251)
    assert all([note.code for note in flow.notes] == ["flows_at_once"] for flow in (up, down))
    assert up.report["sender"]["cpu_s"] is None  # of both directions together
    # It is the client's report only: of what it sent there are the server's totals, of the rest intervals.
    assert [len([i for i in f.report["intervals"] if i["end"] == "receiver"]) for f in (up, down)] == [1, 2]


def test_parallel_streams_are_added_up() -> None:
    flow = only(read_all([IPERF3 / "udp-parallel-down.json"], Options()))
    assert flow.report["offered_rate_mbps"] == 2.0  # -b 1M is each stream's
    assert flow.report["sender"]["messages_sent"] == 500
    assert [(note.code, note.detail[0]) for note in flow.notes] == [("flows_at_once", "2")]


def test_the_omitted_start_does_not_count() -> None:
    flow = only(read_all([IPERF3 / "tcp-omit-down.json"], Options()))
    mine = [i for i in flow.report["intervals"] if i["end"] == "receiver"]
    assert [(i["start_ns"], i["messages"]) for i in mine] == [(0, 515), (500_175_000, 510)]
    assert flow.measure_ns == (0, 1_000_010_000)
    # The client counted 1025 messages of its second, the server 998 of its own.
    assert flow.report["sender"]["messages_sent"] == 1025


@pytest.mark.parametrize("cookie", ["bench.1795279806.906311.4e0a5c", "a:b", "", "x" * 65])
def test_a_cookie_that_is_no_flow_id_is_none(cookie: str, tmp_path: Path) -> None:
    """Old versions made it of the host's name and the time."""
    path = changed(IPERF3 / "udp-up.json", tmp_path / "old.json", lambda d: d["start"].update(cookie=cookie))
    assert only(read_all([path], Options())).report["flow_id"] == "imported"
    kept = only(read_all([IPERF3 / "udp-up.json"], Options())).report["flow_id"]
    assert kept == json.loads((IPERF3 / "udp-up.json").read_text())["start"]["cookie"]


def test_ipv6_is_told_by_the_addresses() -> None:
    report = only(read_all([IPERF3 / "udp-ipv6.json"], Options())).report
    assert (report["ip_version"], report["mean_ip_packet_bytes"]) == (6, 548.0)


def test_an_interrupted_test_is_no_result() -> None:
    with raises(InvalidData):
        read_all([IPERF3 / "interrupted.json"], Options())


def test_dccp_of_the_fork_is_its_own_generator() -> None:
    flow = only(read_all([DATA / "iperf-dccp" / "invented-up.json"], Options()))
    assert (flow.generator, flow.report["transport"]) == ("iperf-dccp", "dccp-kernel")
    assert flow.report["receiver"]["messages_lost"] == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(error="unable to connect"),
        lambda d: d.update(end={}),
        lambda d: d["start"].pop("test_start"),
        lambda d: d["end"].pop("sum_sent"),
        lambda d: d["start"]["test_start"].update(protocol="SCTP"),
        lambda d: d["start"]["test_start"].update(blksize=8),
        lambda d: d["end"]["sum_sent"].update(bytes=-1),
        lambda d: d["end"]["sum_sent"].update(seconds=float("nan")),
        lambda d: d["intervals"][0].update(streams=3),
    ],
)
def test_a_report_that_cannot_be_used_says_why(
    change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    # TCP: its end has no plain "sum" to fall back on.
    path = changed(IPERF3 / "tcp-up.json", tmp_path / "broken.json", change)
    with raises(InvalidData) as caught:
        read_all([path], Options())
    assert "broken.json" in str(caught.value)


def test_a_test_that_failed_is_left_out_of_a_folder(tmp_path: Path) -> None:
    for name in ("refused", "udp-up"):
        shutil.copy(IPERF3 / f"{name}.json", tmp_path)
    (tmp_path / "notes.txt").write_text("what we did that day\n")
    found = read_all([tmp_path], Options())
    assert len(found.flows) == 1
    assert len(found.refused) == 2
    assert any("refused.json: its test failed" in words for words in map(str, found.refused))
    assert any("notes.txt: it is neither" in words for words in map(str, found.refused))
    with raises(InvalidData):
        read_all([tmp_path / "refused.json"], Options())


@pytest.mark.parametrize(
    "text",
    [
        '{"start": {',
        '{"start": nonsense',
        '{"results": 3}',
        '{"event":"start","data":{}}',
        f'{{"start": {"9" * 4400}}}',
        "[" * 100_000,
        '{"start":' * 100_000,
        "",
    ],
)
def test_rubbish_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with raises(InvalidData):
        read_all([path], Options())


# --- D-ITG -----------------------------------------------------------------------------------------


def logs(name: str) -> list[Path]:
    return [DITG / f"{name}-{end}.txt" for end in ("sender", "receiver")]


def test_both_logs_of_ditg_are_a_flow() -> None:
    flow = only(read_all(logs("udp"), UDP))
    report = flow.report
    assert (report["sender"]["messages_sent"], report["receiver"]["messages_lost"]) == (128, 0)
    assert (report["transport"], report["direction"], report["payload_bytes"]) == ("udp", "up", 1440)
    assert report["offered_rate_mbps"] == 2.9  # what was sent, 2.94 Mb/s, to two digits
    assert [note.code for note in flow.notes] == ["offered_rate_assumed"]
    assert report["sender"]["messages_not_sent"] == 0
    assert 0 < report["receiver"]["one_way_delay_ms"]["p50"] < 5
    assert flow.began_s == pytest.approx(1_795_279_892.242120)  # 2026-11-21 16:51:32 UTC
    assert report["generator"] == {"name": "ditg", "version": "unknown"}


def test_what_the_user_knows_of_ditgs_flow_is_taken() -> None:
    options = Options("wired", "udp", 3.0, "2.8.1", date(2020, 2, 29))
    flow = only(read_all(logs("udp"), options))
    assert flow.notes == ()
    assert flow.version == "2.8.1"
    assert flow.report["offered_rate_mbps"] == 3.0
    assert flow.report["sender"]["messages_not_sent"] > 0  # 2.94 of the 3 Mb/s that were asked for
    assert flow.began_s == pytest.approx(1_582_995_092.242120)  # 2020-02-29 16:51:32 UTC


def test_a_log_over_midnight_goes_on(tmp_path: Path) -> None:
    line = "Flow>0001 Seq>{} Src> 10.9.0.2/1 Dest> 10.9.0.1/2 txTime>{} rxTime>{} Size> 1440\n"
    log = tmp_path / "receiver.txt"  # invented
    log.write_text(
        line.format(1, "23:59:59.800000", "23:59:59.999999") + line.format(2, "0:0:0.2", "0:0:0.200100")
    )
    flow = only(read_all([log], UDP))
    assert flow.report["sender"]["last_packet_ns"] == 400_000_000
    assert flow.report["receiver"]["one_way_delay_ms"]["max"] == pytest.approx(199.999)


def test_losses_show_with_both_logs_and_with_the_receivers() -> None:
    both = only(read_all(logs("udp-loss"), UDP)).report
    assert both["receiver"]["messages_lost"] == 249 - 198
    alone = only(read_all(logs("udp-loss")[1:], UDP))
    # The last to arrive has number 207; what left after it is not known.
    assert alone.report["receiver"]["messages_lost"] == 207 - 198
    assert "sender_unknown" in [note.code for note in alone.notes]
    assert [i for i in alone.report["intervals"] if i["end"] == "sender"] == []


def test_a_senders_log_by_itself_is_no_result() -> None:
    with raises(InvalidData):
        read_all(logs("udp")[:1], UDP)


def test_ditgs_transport_must_be_told() -> None:
    with raises(UsageError):
        read_all(logs("udp"), Options())


def test_a_receiver_with_another_clock_has_no_delay(tmp_path: Path) -> None:
    """Invented: the receiver's clock an hour back."""
    for path in logs("udp"):
        shutil.copy(path, tmp_path)
    receiver = tmp_path / "udp-receiver.txt"
    receiver.write_text(receiver.read_text().replace("rxTime>16:", "rxTime>15:"))
    apart, together = only(read_all([tmp_path], UDP)).report, only(read_all(logs("udp"), UDP)).report
    assert apart["receiver"]["one_way_delay_ms"] is None
    assert apart["receiver"]["jitter_ms"] == pytest.approx(together["receiver"]["jitter_ms"])
    assert apart["receiver"]["first_packet_ns"] < 1_000_000
    assert len(apart["intervals"]) == len(together["intervals"])


def test_two_flows_of_one_log_are_two_runs(tmp_path: Path) -> None:
    """Invented: the log twice, the second time as another flow with messages of other sizes."""
    lines = (DITG / "udp-receiver.txt").read_text()
    second = lines.replace("Flow>0001", "Flow>0002").replace("Size> 1440", "Size> 100", 64)
    (tmp_path / "log.txt").write_text(lines + second)
    found = read_all([tmp_path / "log.txt"], UDP)
    one, two = (sound(flow) for flow in found.flows)
    assert (one.report["payload_bytes"], two.report["payload_bytes"]) == (1440, 770)
    assert "message_sizes_vary" in [note.code for note in two.notes]
    assert all("flows_at_once" in [note.code for note in flow.notes] for flow in (one, two))


@pytest.mark.parametrize("line", ["garbage", "Flow>0001 Seq> 9 Src> 10.9.0.2/1 Dest> 10.9.0.1/2 txTime>1"])
def test_a_broken_line_of_ditg_is_named(line: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text((DITG / "udp-receiver.txt").read_text() + line)
    with raises(InvalidData):
        read_all([log], UDP)


# --- NetPerfMeter ----------------------------------------------------------------------------------


def measurement(name: str, folder: Path) -> Path:
    """The files of one measurement in a folder of their own."""
    for path in NPM.glob(f"{name}-*"):
        shutil.copy(path, folder)
    return folder


def config(name: str, *flows: str) -> str:
    """Invented, in the form that NetPerfMeter 1.9 writes."""
    head = f'NUM_FLOWS={len(flows)}\nSCALAR_ACTIVE_NODE="there/{name}-active.sca"\n'
    parts = ("RATE_VALUE1=260.416667", "RATE_VALUE2=0.0", "RATE_RNG_ID=0", "SIZE_VALUE1=1440.000000")
    for number, protocol in enumerate(flows):
        head += f'FLOW{number}_PROTOCOL="{protocol}"\n'
        head += "".join(f"FLOW{number}_{way}_FRAME_{p}\n" for way in ("OUTBOUND", "INBOUND") for p in parts)
    return head


@pytest.mark.parametrize(
    ("name", "direction", "sent", "lost"),
    [("udp-up", "up", 155, 0), ("udp-down", "down", 172, 1), ("tcp-up", "up", 126, 2)],
)
def test_a_measurement_of_netperfmeter_is_a_flow(
    name: str, direction: str, sent: int, lost: int, tmp_path: Path
) -> None:
    folder = measurement(name, tmp_path)
    transport = name.partition("-")[0]
    (folder / "run.config").write_text(config(name, transport.upper()))
    flow = only(read_all([folder], Options()))
    report = flow.report
    assert (report["transport"], report["direction"], report["payload_bytes"]) == (transport, direction, 1440)
    assert report["offered_rate_mbps"] == pytest.approx(3.0)
    assert (report["sender"]["messages_sent"], report["receiver"]["messages_lost"]) == (sent, lost)
    assert flow.notes == ()
    assert flow.began_s == pytest.approx(1_795_279_806, abs=60)
    assert "run.config" in [source.path.name for source in flow.sources]


def test_a_measurement_lasts_from_its_first_to_its_last_message_and_one_gap(tmp_path: Path) -> None:
    """Whole seconds would make 11 s of 10.3 s, and 9 % less goodput."""
    flow = only(read_all([measurement("udp-up", tmp_path)], UDP))
    assert flow.report["duration_s"] == pytest.approx(0.988565 * 155 / 154)
    assert flow.report["sender"]["goodput_mbps"] == pytest.approx(155 * 1440 * 8e-6 / (0.988565 * 155 / 154))


def test_a_measurement_of_one_message_has_no_rate(tmp_path: Path) -> None:
    folder = measurement("udp-up", tmp_path)
    scalars = folder / "udp-up-active.sca"
    scalars.write_text(scalars.read_text().replace("1795279807894876", "1795279806906311"))
    same_sentence(str(read_all([folder], UDP).refused[0]))


@pytest.mark.parametrize(
    ("ip_version", "packet_bytes", "source"),
    [(None, None, "unknown"), (4, 1468.0, "computed"), (6, 1488.0, "computed")],
)
def test_without_addresses_the_ip_version_is_the_users(
    ip_version: int | None, packet_bytes: float | None, source: str, tmp_path: Path
) -> None:
    options = Options(transport="udp", ip_version=ip_version)
    report = only(read_all([measurement("udp-up", tmp_path)], options)).report
    assert (report["mean_ip_packet_bytes"], report["packetisation_source"]) == (packet_bytes, source)
    assert report["ip_version"] == (ip_version or 4)


def test_without_a_configuration_the_user_says_the_transport(tmp_path: Path) -> None:
    folder = measurement("udp-up", tmp_path)
    flow = only(read_all([folder], Options(transport="udp", generator_version="1.9.4")))
    assert [note.code for note in flow.notes] == ["offered_rate_assumed"]
    assert flow.report["generator"] == {"name": "netperfmeter", "version": "1.9.4"}
    found = read_all([folder], Options())
    assert found.flows == []
    same_sentence(str(found.refused[0]))


def test_compressed_files_are_read(tmp_path: Path) -> None:
    folder = measurement("udp-up", tmp_path)
    plain = only(read_all([folder], UDP)).report
    for path in list(folder.iterdir()):
        path.with_name(f"{path.name}.bz2").write_bytes(bz2.compress(path.read_bytes()))
        path.unlink()
    assert only(read_all([folder], UDP)).report == plain
    cut = folder / "udp-up-active.sca.bz2"
    cut.write_bytes(cut.read_bytes()[:-20])
    with raises(InvalidData):
        read_all([cut], UDP)
    same_sentence(str(read_all([folder], UDP).refused[0]))


def test_a_missing_file_of_a_measurement_is_named(tmp_path: Path) -> None:
    folder = measurement("udp-up", tmp_path)
    (folder / "udp-up-passive-00000000-0000.vec").unlink()
    found = read_all([folder], UDP)
    assert found.flows == []
    assert "lacks udp-up-passive-00000000-0000.vec" in str(found.refused[0])
    with raises(InvalidData):
        read_all([folder / "udp-up-passive.sca"], UDP)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "udp-up-active.sca",
            "1795279806906311",
            "nan",
        ),
        ("udp-up-active.sca", "1795279806906311", "x"),
        ("udp-up-active.sca", "1795279806906311", "1795079806906311"),
        ("udp-up-active.sca", '"First Transmission"', '"First"'),
        ("udp-up-passive-00000000-0000.vec", "70560 49 0", "70560 4900000000 0"),
        ("udp-up-passive-00000000-0000.vec", "000001 1795", "000001 broken "),
    ],
)
def test_rubbish_in_a_measurement_is_one_sentence(file: str, old: str, new: str, tmp_path: Path) -> None:
    folder = measurement("udp-up", tmp_path)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    found = read_all([folder], UDP)
    assert found.flows == []
    same_sentence(str(found.refused[0]))


def two_flows(tmp_path: Path, *protocols: str) -> Path:
    """Invented: a measurement with a second flow that has the first one's figures."""
    folder = measurement("udp-up", tmp_path)
    for path in list(folder.iterdir()):
        if path.suffix == ".vec":
            shutil.copy(path, folder / path.name.replace("00000000", "00000001"))
        else:
            text = path.read_text()
            mine = "".join(f"{line}\n" for line in text.splitlines() if "flow[0]" in line)
            path.write_text(text + mine.replace("flow[0]", "flow[1]"))
    (folder / "x.config").write_text(config("udp-up", *protocols))
    return folder


def test_each_flow_of_a_measurement_is_a_run(tmp_path: Path) -> None:
    folder = two_flows(tmp_path, "UDP", "UDP")
    one, two = (sound(flow) for flow in read_all([folder], Options()).flows)
    assert one.report["sender"] == two.report["sender"]
    assert [note.code for note in two.notes] == ["flows_at_once"]
    assert "udp-up-passive-00000001-0000.vec" in [source.path.name for source in two.sources]


@pytest.mark.parametrize("other", ["SCTP", "MPTCP"])
def test_a_flow_of_a_transport_that_is_not_held_is_left_out_and_named(other: str, tmp_path: Path) -> None:
    folder = two_flows(tmp_path, "UDP", other)
    found = read_all(sorted(folder.iterdir()), Options())
    (flow,) = found.flows
    assert sound(flow).report["transport"] == "udp"
    assert [note.code for note in flow.notes] == ["flows_at_once"]
    (words,) = map(str, found.refused)
    assert "flow 1" in words
    assert f"over {other.lower()}" in words


def test_a_measurement_with_no_flow_that_is_held_is_refused(tmp_path: Path) -> None:
    with raises(InvalidData):
        read_all(sorted(two_flows(tmp_path, "SCTP", "MPTCP").iterdir()), Options())


# --- any ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [IPERF3 / "tcp-omit-down.json", IPERF3 / "udp-bidir.json", DITG / "udp-receiver.txt", NPM / "udp-up"],
    ids=lambda path: path.name,
)
@given(places=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), min_size=1, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_give_flows_or_a_sentence(
    path: Path, places: list[tuple[float, bytes]], tmp_path: Path
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    named = sorted(NPM.glob("udp-up-*")) if path.parent == NPM else [path]
    data = {one.name: one.read_bytes() for one in named}
    for at, put in places:
        for name, whole in data.items():
            cut = round(at * len(whole))
            data[name] = whole[:cut] + put + whole[cut + len(put) :]
    for name, whole in data.items():
        (folder / name).write_bytes(whole)
    found = read_all([folder], UDP)
    for flow in found.flows:
        contracts.validate("flow_report", flow.report)
    if not found.flows:
        assert any(name in words for words in map(str, found.refused) for name in data)

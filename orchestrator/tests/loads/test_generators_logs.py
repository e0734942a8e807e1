# SPDX-License-Identifier: Apache-2.0
"""D-ITG and NetPerfMeter: their real logs as flow reports, and real flows where they are installed.

data/ditg: logs of D-ITG 2.8.1 between two network namespaces, as ITGDec wrote them; in udp-loss the link
was down for 0.15 s. data/netperfmeter: files of NetPerfMeter 1.9.4 between two namespaces on a kernel without
SCTP, whose (unused) SCTP control socket a preloaded library had replaced by a TCP one.
"""

import asyncio
import itertools
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from flows import ENDS, HERE, HOSTS, spec

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.loads.flow.generators import (
    FlowSpec,
    availability,
    ditg,
    generator,
    interval_rows,
    netperfmeter,
)
from netjoule.loads.flow.generators.base import Endpoints
from netjoule.loads.flow.generators.messages import Arrival, Clocks, Sent, flow_report, joint_jitter_ms
from netjoule.loads.flow.generators.one_shot import listening

DATA = Path(__file__).parents[1] / "data"
# 2026-11-21 16:51 UTC, when the logs of D-ITG were taken.
NEAR_NS = 1_795_279_860_000_000_000
CLOCKS = Clocks(offset_ns=-NEAR_NS, residual_ns=2000)
KERNELS_DCCP = Path("/proc/sys/net/dccp")


def ditg_report(name: str, flow: FlowSpec, near_ns: int = NEAR_NS) -> dict[str, Any]:
    sent, got = ((DATA / "ditg" / f"{name}-{end}.txt").read_text() for end in ("sender", "receiver"))
    return ditg.as_report(
        flow, sent, got, CLOCKS, near_ns=near_ns, version="2.8.1", hosts=HOSTS, boot_id="boot"
    )


def netperfmeter_files(name: str) -> dict[str, str]:
    folder = DATA / "netperfmeter"
    names = {f"{end}.sca": f"{name}-{end}.sca" for end in ("active", "passive")}
    names |= {f"{end}.vec": f"{name}-{end}-00000000-0000.vec" for end in ("active", "passive")}
    return {key: (folder / file).read_text() for key, file in names.items()}


def netperfmeter_report(name: str, flow: FlowSpec) -> dict[str, Any]:
    return netperfmeter.as_report(flow, netperfmeter_files(name), CLOCKS, hosts=HOSTS, boot_id="boot")


def assert_sound(flow: dict[str, Any], folder: Path) -> None:
    contracts.validate("flow_report", flow)
    sender, receiver = flow["sender"], flow["receiver"]
    assert flow["reconciles"]
    assert sender["messages_scheduled"] == sender["messages_sent"] + sender["messages_not_sent"]
    assert sender["messages_sent"] == receiver["messages_received_unique"] + receiver["messages_lost"]
    mine = [i for i in flow["intervals"] if i["end"] == "receiver"]
    assert sum(i["bytes"] for i in mine) == receiver["bytes_received_unique"]
    assert all(a["end_ns"] == b["start_ns"] for a, b in itertools.pairwise(mine))
    assert mine[-1]["end_ns"] >= sender["start_ns"] + round(flow["duration_s"] * 1e9)
    files.append_table(folder / "intervals.csv", "intervals", interval_rows(flow, 0, node="client"))
    assert list(contracts.table_defects("intervals", folder / "intervals.csv")) == []


# --- D-ITG -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("transport", "messages"), [("udp", 128), ("tcp", 126)])
def test_ditgs_logs_as_a_flow(transport: str, messages: int, tmp_path: Path) -> None:
    flow = ditg_report(transport, spec(transport))
    assert_sound(flow, tmp_path)
    assert (flow["sender"]["messages_sent"], flow["receiver"]["messages_lost"]) == (messages, 0)
    assert flow["sender"]["last_packet_ns"] - flow["sender"]["first_packet_ns"] == pytest.approx(
        5e8, rel=0.03
    )
    assert 0 < flow["receiver"]["one_way_delay_ms"]["p50"] < 5
    assert flow["receiver"]["jitter_ms"] > 0
    assert flow["sender"]["cpu_s"] is None  # it does not tell
    assert flow["nodelay"] == (True if transport == "tcp" else None)


def test_what_ditg_lost_is_seen_from_both_logs(tmp_path: Path) -> None:
    flow = ditg_report("udp-loss", spec("udp", duration_s=1.0))
    assert_sound(flow, tmp_path)
    assert flow["receiver"]["messages_lost"] == 249 - 198
    empty = [i for i in flow["intervals"] if i["end"] == "receiver" and i["messages"] < 5]
    assert empty, "the hole shows in an interval"


def test_times_of_day_get_the_day_of_the_flow() -> None:
    # 2026-11-22 00:00:00.5 UTC; the log began 0.7 s before midnight and ended after it.
    midnight_ns = 1_795_305_600_000_000_000
    line = "Flow>0001 Seq>{:7d} Src> 10.9.0.2/1 Dest> 10.9.0.1/2 txTime>{} rxTime>{} Size> 1440\n"
    log = line.format(1, "23:59:59.800000", "23:59:59.999999") + line.format(
        2, "0:0:0.200000", "0:0:0.200100"
    )
    clocks = Clocks(-midnight_ns, 0)
    flow = ditg.as_report(
        spec("udp"), log, log, clocks, near_ns=midnight_ns - 10**9, version="x", hosts=HOSTS, boot_id="b"
    )
    assert flow["sender"]["first_packet_ns"] == -200_000_000
    assert flow["sender"]["last_packet_ns"] == 200_000_000
    assert flow["receiver"]["last_packet_ns"] == 200_100_000


def test_a_log_of_ditg_without_messages_is_refused() -> None:
    with pytest.raises(RunFailed, match="no message") as caught:
        ditg.as_report(
            spec("udp"), "garbage\n", "", CLOCKS, near_ns=NEAR_NS, version="x", hosts=HOSTS, boot_id="b"
        )
    assert caught.value.code == "generator_failed"


def test_itgsend_is_asked_in_messages_a_second_and_milliseconds() -> None:
    argv = ditg.Ditg().arguments(spec("tcp", offered_rate_mbps=1.152), ENDS, Path("/x"))
    assert argv[argv.index("-C") + 1] == "100.000000"
    assert argv[argv.index("-t") + 1] == "500"
    assert argv[argv.index("-Sda") + 1] == "10.79.0.1"  # signalling stays off the radio
    assert argv[argv.index("-a") + 1] == "10.77.0.1"
    assert "-D" in argv
    dccp = ditg.Ditg().arguments(spec("dccp-kernel"), ENDS, Path("/x"))
    assert dccp[dccp.index("-T") + 1] == "DCCP"
    assert "-D" not in dccp


# --- NetPerfMeter ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "direction", "sent", "lost"),
    [("udp-up", "up", 155, 0), ("udp-down", "down", 172, 1), ("tcp-up", "up", 126, 2)],
)
def test_netperfmeters_files_as_a_flow(
    name: str, direction: str, sent: int, lost: int, tmp_path: Path
) -> None:
    flow = netperfmeter_report(name, spec(name.partition("-")[0], direction=direction, duration_s=1.0))
    assert_sound(flow, tmp_path)
    assert (flow["sender"]["messages_sent"], flow["receiver"]["messages_lost"]) == (sent, lost)
    assert flow["sender"]["host"] == ("laptop" if direction == "up" else "rack")
    assert flow["receiver"]["jitter_ms"] > 0
    assert flow["generator"] == {"name": "netperfmeter", "version": "unknown"}
    assert [i for i in flow["intervals"] if i["end"] == "sender"] == []


def test_messages_before_the_vector_are_spread_and_not_lost() -> None:
    flow = netperfmeter_report("udp-up", spec("udp", duration_s=1.0))
    first, second, *_ = (i["messages"] for i in flow["intervals"])
    assert 0 < first < 40  # 48 messages came in the quarter of a second before the first line
    assert second > 0


def test_a_missing_file_of_netperfmeter_is_named() -> None:
    found = netperfmeter_files("udp-up")
    del found["passive.vec"]
    with pytest.raises(RunFailed, match=r"netperfmeter's files lack 'passive.vec'") as caught:
        netperfmeter.as_report(spec("udp"), found, CLOCKS, hosts=HOSTS, boot_id="b")
    assert caught.value.code == "generator_failed"


def test_netperfmeters_flow_is_frames_a_second_by_direction() -> None:
    up = netperfmeter.Netperfmeter().arguments(spec("udp", offered_rate_mbps=1.152), ENDS, Path("/x"))
    assert up[-2:] == ["-udp", "const100.000000:const1440:const0:const0"]
    assert "-runtime=1" in up
    down = netperfmeter.Netperfmeter().arguments(spec("tcp", direction="down"), ENDS, Path("/x"))
    assert down[-1].startswith("const0:const0:const260.416667:const1440:nodelay=on")
    dccp = netperfmeter.Netperfmeter().arguments(spec("dccp-kernel", options={"ccid": 3}), ENDS, Path("/x"))
    assert dccp[-2] == "-dccp"
    assert dccp[-1].endswith(":ccid=3")
    ends = Endpoints(HERE, HERE, "fd77::1", "10.79.0.1", 5301)
    assert netperfmeter.Netperfmeter().arguments(spec("udp"), ends, Path("/x"))[0] == "[fd77::1]:5304"


# --- both ------------------------------------------------------------------------------------------


def test_copies_and_late_messages_are_counted_apart() -> None:
    arrivals = [Arrival(n * 10**6, number) for n, number in enumerate((0, 2, 1, 2, 3))]
    flow = flow_report(
        spec("udp"),
        Sent(5, 0, 4 * 10**6),
        arrivals,
        generator={"name": "x", "version": "y"},
        hosts=HOSTS,
        boot_id="b",
        residual_ns=0,
        duration_s=0.5,
        jitter_ms=None,
    )
    receiver = flow["receiver"]
    assert (receiver["messages_received_unique"], receiver["messages_lost"]) == (4, 1)
    assert (receiver["messages_duplicate"], receiver["messages_reordered"]) == (1, 1)


def test_jitter_is_the_estimate_of_rfc_3550() -> None:
    assert joint_jitter_ms([1.0]) is None
    assert joint_jitter_ms([1.0, 1.0, 1.0]) == 0
    assert joint_jitter_ms([1.0, 2.6]) == pytest.approx(0.1)


def test_the_wall_clock_is_tied_to_the_monotonic_one_on_both_sides() -> None:
    clocks = Clocks.between((1_000_000, 500_000), (2_000_000, 1_504_000))
    assert clocks.offset_ns == -498_000
    assert clocks.residual_ns == 3000


def test_availability_names_every_generator_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {a.name: a for a in availability()}
    assert set(found) == {"netjoule-traffic", "iperf3", "iperf-dccp", "ditg", "netperfmeter"}
    assert not found["ditg"].available
    assert "install the package d-itg" in found["ditg"].reason
    assert "install the package netperfmeter" in found["netperfmeter"].reason
    assert found["ditg"].transports == ("dccp-kernel", "tcp", "udp")
    assert all(a.available == (a.reason == "") for a in found.values())


def one_flow(name: str, transport: str, **changes: Any) -> dict[str, Any]:
    # Ports of its own for each of pytest's workers, which run at once.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ends = Endpoints(HERE, HERE, "127.0.0.1", "127.0.0.1", 5411 + 10 * worker)

    async def flow() -> dict[str, Any]:
        maker = generator(name)
        await maker.version()
        server = await maker.serve(ends)
        try:
            opened = await maker.open(spec(transport, **changes), ends)
            try:
                await opened.go()
                return await opened.report()
            finally:
                await opened.end()
        finally:
            if server is not None:
                await server.stop()

    return asyncio.run(flow())


def needs(name: str) -> None:
    try:
        generator(name).require()
    except HostLacks as error:
        pytest.skip(str(error))


def test_a_server_that_ends_is_told_at_once_with_its_words() -> None:
    with socket.socket() as held:  # bound, not listening: nobody else takes it meanwhile
        held.bind(("127.0.0.1", 0))
        argv = ["sh", "-c", "echo no memory >&2; exit 3"]
        with pytest.raises(RunFailed, match=r"server, port \d+: ended with 3: no memory$"):
            asyncio.run(asyncio.wait_for(listening(HERE, argv, held.getsockname()[1], name="server"), 20))


@pytest.mark.netns
@pytest.mark.parametrize(
    ("name", "transport"), list(itertools.product(("ditg", "netperfmeter"), ("udp", "tcp", "dccp-kernel")))
)
def test_a_real_flow_over_loopback(name: str, transport: str, tmp_path: Path) -> None:
    needs(name)
    if transport == "dccp-kernel" and not KERNELS_DCCP.exists():
        pytest.skip("this kernel has no DCCP loaded; the guest's has")
    # It sleeps between messages and falls behind on a busy host, so it may send less than 43 in 0.5 s.
    for _ in range(3):
        got = one_flow(name, transport)
        if got["sender"]["messages_sent"] > 20:
            break
    assert_sound(got, tmp_path)
    assert got["sender"]["messages_sent"] > 20
    assert got["receiver"]["messages_received_unique"] > 15
    # What falls behind comes in bursts; the kernel's DCCP drops what its queue of five does not hold.
    assert transport == "dccp-kernel" or got["receiver"]["messages_lost"] <= 3
    assert got["clock_offset"]["residual_ns"] < 50_000_000


@pytest.mark.netns
def test_dccp_without_the_kernels_support_is_a_sentence() -> None:
    needs("ditg")
    if KERNELS_DCCP.exists():
        pytest.skip("this kernel has DCCP")
    with pytest.raises(RunFailed, match="ITGSend: ") as caught:
        one_flow("ditg", "dccp-kernel")
    assert caught.value.code == "generator_failed"

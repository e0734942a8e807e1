# SPDX-License-Identifier: Apache-2.0
"""Finding instruments: who is recognised, who is left alone, and what is printed to paste."""

from __future__ import annotations

import os
import socket
import threading

import pytest
import yaml
from meter_processes import PATIENCE_S

from netjoule_contracts import validate
from netjoule_meters.probing.identification import (
    SERIAL_QUERIES,
    FoundInstrument,
    recognise_identification,
    recognise_serial,
)
from netjoule_meters.probing.network import identify_host, identify_ptdaemon, split_host
from netjoule_meters.probing.serial_and_usb import identify_serial, identify_usbtmc
from netjoule_meters.probing.topology_snippet import topology_snippet
from netjoule_meters.transports.ports_in_use import use_of
from netjoule_meters.transports.usbtmc import usbtmc_devices

CC128 = (
    b"<msg><src>CC128-v0.11</src><dsb>00089</dsb><time>13:02:39</time><tmpr>18.7</tmpr>"
    b"<sensor>1</sensor><id>01234</id><type>1</type><ch1><watts>00345</watts></ch1></msg>\r\n"
)


@pytest.mark.parametrize(
    ("answer", "adapter", "settings"),
    [
        (b"YOKOGAWA,760401,0,F2.01\r\n", "wt210", {}),
        (b"YOKOGAWA,WT310,C2PH13047V,F1.03\n", "wt310", {"model": "WT310"}),
        (b"YOKOGAWA,WT310E,C3,F1.0\n", "wt310", {"model": "WT310E"}),
        (b"\x13HAMEG HM8\x11115-2\r", "hm8115", {}),
        (b"IeS type ISW8001A\r", "hm8115", {}),
        (b"\xff\xfe half a line" + CC128, "cc128", {}),
        (b"KEITHLEY INSTRUMENTS,MODEL 2000,1,A\n", None, {}),
    ],
)
def test_an_instrument_is_known_by_what_it_says(answer, adapter, settings):
    found = recognise_serial("/dev/ttyX", answer)
    assert found is not None
    assert (found.adapter, dict(found.settings), found.resource) == (adapter, settings, "/dev/ttyX")


@pytest.mark.parametrize("answer", [b"", b"\r\n", b"\xf0\x80\x12\xff\x81", b"ab\r\n"])
def test_nothing_readable_is_nobody(answer):
    assert recognise_serial("/dev/ttyX", answer) is None


def test_a_prologix_controller_is_named_with_the_next_step():
    found = recognise_serial("/dev/ttyUSB0", b"Prologix GPIB-USB Controller version 6.107\r\n")
    assert found is not None and found.adapter is None
    assert "prologix:/dev/ttyUSB0:ADDRESS" in found.note


def test_every_question_only_asks():
    for greeting in SERIAL_QUERIES:
        text = (greeting.question or b"?").decode().strip()
        assert text.endswith("?") or text == "++ver"


def test_greetings_end_with_the_first_instrument_that_answers():
    asked = []

    def exchange(device, greeting):
        asked.append(greeting.name)
        return b"HAMEG HM8115-2\r" if greeting.question == b"\r*IDN?\r" else b""

    found, _ = identify_serial("/dev/ttyX", exchange)
    assert found is not None and found.adapter == "hm8115" and len(asked) == 2


def test_a_port_that_cannot_be_opened_and_a_silent_one_are_told_apart():
    def refuses(device, greeting):
        raise PermissionError(13, "Permission denied")

    assert identify_serial("/dev/ttyX", refuses) == (None, "cannot be opened (Permission denied)")
    assert identify_serial("/dev/ttyX", lambda *_: b"") == (None, "nothing answers")
    found, why = identify_serial("/dev/ttyX", lambda *_: b"\xf0\xf1\xf2")
    assert found is None and "3 unreadable bytes" in why


@pytest.fixture
def proc(tmp_path):
    """A /proc with one process that has a port open and one that is behind a pseudo-terminal."""
    folder = tmp_path / "proc"
    for pid, links in {"101": ["/dev/ttyUSB0"], "102": ["/dev/ptmx", "/dev/pts/9001"], "self": []}.items():
        (folder / pid / "fd").mkdir(parents=True)
        for number, link in enumerate(links):
            (folder / pid / "fd" / str(number)).symlink_to(link)
    return folder


def test_a_port_that_somebody_has_open_is_left_alone(proc, tmp_path):
    use = use_of("/dev/ttyUSB0", proc=proc, locks=tmp_path)
    assert not use.free and use.pids == (101,) and "open in process 101" in use.text()
    assert use_of("/dev/ttyUSB1", proc=proc, locks=tmp_path).free


def test_the_process_behind_a_pseudo_terminal_is_not_its_user(proc, tmp_path):
    assert use_of("/dev/pts/9001", proc=proc, locks=tmp_path).free


def test_a_lock_file_of_a_living_process_counts(proc, tmp_path):
    (tmp_path / "LCK..ttyUSB1").write_text("       101\n")
    (tmp_path / "LCK..ttyUSB2").write_text("       999\n")
    assert use_of("/dev/ttyUSB1", proc=proc, locks=tmp_path).text() == "locked by process 101: left alone"
    assert use_of("/dev/ttyUSB2", proc=proc, locks=tmp_path).free


def test_our_own_descriptors_do_not_make_a_port_busy():
    descriptor = os.open("/dev/null", os.O_RDONLY)
    try:
        assert os.getpid() not in use_of("/dev/null").pids
    finally:
        os.close(descriptor)


def test_usbtmc_devices_are_found_and_answer(tmp_path):
    (tmp_path / "usbtmc0").touch()
    assert usbtmc_devices(tmp_path) == [str(tmp_path / "usbtmc0")]
    found, why = identify_usbtmc(str(tmp_path / "absent"))
    assert found is None and "No such file" in why


def served(answers: dict[bytes, bytes]) -> int:
    """A TCP server for two connections at most; each line is answered from the table. Its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            listener.settimeout(PATIENCE_S)
            for _ in range(8):
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client, client.makefile("rb") as lines:
                    for line in lines:
                        answer = answers.get(line.strip())
                        if answer is not None:
                            client.sendall(answer)
                        if line in (b"\r\n", b"Identify\r\n"):
                            break

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def test_a_ptdaemon_says_who_it_reads():
    port = served(
        {b"Hello": b"Hello, PTDaemon here!\r\n", b"Identify": b"YokogawaWT310,1,version=1.11.1\r\n"}
    )
    found = identify_ptdaemon("127.0.0.1", port)
    assert found == FoundInstrument("ptd", f"tcp:127.0.0.1:{port}", "YokogawaWT310,1,version=1.11.1")


def test_a_socket_is_known_by_its_page():
    body = b'{"apower": 3.2}'
    page = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    port = served({b"GET /rpc HTTP/1.1": page})
    pages = [("shelly2", "/rpc", lambda seen: b"apower" in seen)]
    found, _ = identify_host(f"127.0.0.1:{port}", pages)
    assert [(one.adapter, one.resource, dict(one.settings)) for one in found] == [
        ("socket", f"http://127.0.0.1:{port}", {"preset": "shelly2"})
    ]


def test_a_host_without_meters_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert identify_host(f"127.0.0.1:{port}", []) == ([], ["nothing answers on the ports of meters"])
    assert split_host("192.0.2.1") == ("192.0.2.1", None) and split_host("plug:8080") == ("plug", 8080)


def test_the_snippet_is_a_topologys_meters_with_ranges_left_to_a_pass():
    found = [
        recognise_identification("/dev/ttyUSB0", "YOKOGAWA,760401,0,F2.01"),
        recognise_identification("/dev/ttyUSB1", "YOKOGAWA,760401,0,F2.01"),
        FoundInstrument(None, "/dev/ttyUSB2", "SOMETHING ELSE"),
        FoundInstrument("socket", "http://192.0.2.7", "shelly2\nmeters: {}", {"preset": "shelly2"}),
    ]
    meters = yaml.safe_load(topology_snippet(found))["meters"]
    assert [m["meter_id"] for m in meters] == ["client-wt210", "client-wt210-2", "client-socket"]
    assert meters[0]["settings"] == {"voltage_range_v": "auto", "current_range_a": "auto"}
    hosts = {name: {"roles": [name]} for name in ("client", "access_point", "server")}
    validate("topology", {"schema_version": 1, "name": "x", "kind": "lab", "hosts": hosts, "meters": meters})


def test_no_instrument_no_snippet():
    assert topology_snippet([FoundInstrument(None, "/dev/ttyUSB2", "SOMETHING ELSE")]) == ""

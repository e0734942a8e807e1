# SPDX-License-Identifier: Apache-2.0
"""Inside the guest: two network namespaces, a path between them, one flow per cell.

    client (10.99.0.1, fd00:99::1) -- veth with netem at both ends -- server (10.99.0.2, fd00:99::2)
    client (10.98.0.1)             -- veth, nothing in between   -- server (10.98.0.2)   control channel

Usage: inside.py FOLDER. FOLDER/cells.json lists the cells; FOLDER/NAME.json and NAME.pcap come out of each.
Plain Python of the guest's own: nothing of ours is imported.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator  # noqa: UP035  # any Python of the guest

FLOW_LIMIT_S = 90
CLOSE_LIMIT_S = 10.0
CLOSE_POLL_S = 0.2
HANDED_OVER_S = 2.0  # the kernel hands packets to tcpdump once a second; those it still holds would be lost
CONTROL_PORT = 5301
DATA = {4: ("10.99.0.1", "10.99.0.2"), 6: ("fd00:99::1", "fd00:99::2")}
CONTROL = ("10.98.0.1", "10.98.0.2")
ENDS = ("client", "server")

# The kernel answers DCCP packets that fit none of its sockets with Reset (No Connection), also those that a
# user-space stack is about to answer. Packets of a process have an owner (skuid), the kernel's Resets none.
KEEP_QUIET = """
  chain out {
    type filter hook output priority 0;
    meta l4proto 33 meta skuid 0-4294967294 accept
    meta l4proto 33 drop
  }
"""

# One packet of EVERY is lost, the first as number FIRST (from 0). netem's own losses are random and cannot be
# seeded in this kernel; the goodput of 5 s scatters by a quarter with them.
LOSE = """
  chain in {{
    type filter hook prerouting priority -300;
    iifname "data" meta l4proto {{ 17, 33 }} numgen inc mod {every} {first} drop
  }}
"""


def run(*command: str, text: str | None = None) -> str:
    """Run a program of the guest; its output. Ends this script when it fails."""
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}: {ended.stderr.strip() or ended.returncode}")
    return ended.stdout


def at(end: str, *command: str) -> list[str]:
    """A command line for one end's namespace."""
    return ["ip", "netns", "exec", end, *command]


def lay_path() -> None:
    """Namespaces, cables, addresses."""
    run("modprobe", "-a", "dccp_ipv4", "dccp_ipv6", "dccp_diag", "sch_netem", "veth")
    for end in ENDS:
        run("ip", "netns", "add", end)
        run("ip", "-n", end, "link", "set", "lo", "up")
    for cable in ("data", "control"):
        run(*f"ip link add {cable} netns client type veth peer name {cable} netns server".split())
    for number, end in enumerate(ENDS):
        run("ip", "-n", end, "addr", "add", DATA[4][number] + "/24", "dev", "data")
        run("ip", "-n", end, "addr", "add", DATA[6][number] + "/64", "dev", "data", "nodad")
        run("ip", "-n", end, "addr", "add", CONTROL[number] + "/24", "dev", "control")
        for cable in ("data", "control"):
            run("ip", "-n", end, "link", "set", cable, "up")


def shape(words: str) -> None:
    """What netem does at both ends of the data cable; nothing when ``words`` is empty."""
    for end in ENDS:
        if not words:
            subprocess.run(
                ["tc", "-n", end, "qdisc", "del", "dev", "data", "root"], capture_output=True, check=False
            )
            continue
        run("tc", "-n", end, "qdisc", "replace", "dev", "data", "root", "netem", *words.split())


def rules(cell: dict[str, Any], end: str) -> str:
    """The packet filter of one end; empty when it needs none."""
    chains = KEEP_QUIET if end in cell["raw_ends"] else ""
    if cell["lose"] is not None:
        chains += LOSE.format(**cell["lose"])
    return f"table inet cell {{{chains}}}\n" if chains else ""


@contextmanager
def filters(cell: dict[str, Any]) -> Iterator[None]:
    """Losses, and kernels that do not answer for a user-space end."""
    filtered = {end: text for end in ENDS if (text := rules(cell, end))}
    for end, text in filtered.items():
        run(*at(end, "nft", "-f", "-"), text=text)
    try:
        yield
    finally:
        for end in filtered:
            run(*at(end, "nft", "delete", "table", "inet", "cell"))


def wait_for_close() -> None:
    """Until the kernel's own connections have ended.

    A kernel sends its Close after the program has ended, and repeats a lost one (a full queue loses it as
    well) after 1 s and again after 2 s.
    """
    for _ in range(int(CLOSE_LIMIT_S / CLOSE_POLL_S)):
        time.sleep(CLOSE_POLL_S)
        listed = ("ss", "-Hdn", "state", "connected", "exclude", "time-wait")
        if not any(run(*at(end, *listed)) for end in ENDS):
            return


@contextmanager
def capture(file: Path) -> Iterator[None]:
    """What passes the client's end of the data cable, before losses in either end's packet filter.

    netem takes its losses of the client's packets before that: a lost Close is seen when it is repeated.
    """
    words = [*f"tcpdump -i data -w {file} -s 0 -Z root".split(), "ip proto 33 or ip6 proto 33 or udp"]
    with subprocess.Popen(at("client", *words), stderr=subprocess.PIPE, text=True) as dump:
        assert dump.stderr is not None
        said = dump.stderr.readline()
        if "listening" not in said:
            sys.exit(f"tcpdump: {said.strip()}")
        try:
            yield
        finally:
            wait_for_close()
            time.sleep(HANDED_OVER_S)
            dump.terminate()
            dump.communicate()


@contextmanager
def server(program: str, ip_version: int) -> Iterator[None]:
    """``netjoule-traffic serve`` at the server's end."""
    words = [program, "serve", "--bind", DATA[ip_version][1], "--control-bind", CONTROL[1]]
    words += ["--port", str(CONTROL_PORT), "--json", "--exit-with-stdin"]
    with subprocess.Popen(
        at("server", *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serve:
        assert serve.stdin is not None
        assert serve.stdout is not None
        if "listening" not in serve.stdout.readline():
            sys.exit("netjoule-traffic serve does not listen")
        try:
            yield
        finally:
            serve.stdin.close()
            try:
                serve.wait(10)
            except subprocess.TimeoutExpired:
                serve.kill()


def flow(program: str, cell: dict[str, Any], options: list[str]) -> dict[str, Any]:
    """One flow: exit code, the report, what was said on stderr."""
    words = [program, "send", *options, "--to", DATA[cell["ip_version"]][1]]
    words += ["--control", f"{CONTROL[1]}:{CONTROL_PORT}", "-b", cell["offered"]]
    words += ["-l", str(cell["message_bytes"]), "-t", str(cell["seconds"]), "--json"]
    try:
        ended = subprocess.run(
            at("client", *words), capture_output=True, text=True, timeout=FLOW_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"exit_code": None, "stderr": f"no end within {FLOW_LIMIT_S} s", "report": None}
    events = [json.loads(line) for line in ended.stdout.splitlines() if '"report"' in line]
    report = next((event for event in reversed(events) if event.get("event") == "report"), None)
    if report is not None:
        report.pop("intervals", None)
    return {"exit_code": ended.returncode, "stderr": ended.stderr.strip(), "report": report}


def one(program: str, cell: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One cell, with its capture when that is wanted."""
    shape(cell["netem"])
    if not cell["capture"]:
        with filters(cell), server(program, cell["ip_version"]):
            return flow(program, cell, cell["options"])
    scratch = Path("/run/cell.pcap")  # in memory: writing to the host would be part of the path
    with filters(cell), server(program, cell["ip_version"]), capture(scratch):
        outcome = flow(program, cell, cell["options"])
    shutil.move(scratch, folder / f"{cell['name']}.pcap")
    return outcome


def main() -> None:
    """All cells, one after the other."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "cells.json").read_text())
    started_s = time.monotonic()
    lay_path()
    for number, cell in enumerate(job["cells"], 1):
        outcome = one(job["program"], cell, folder)
        place = folder / f"{cell['name']}.json"
        place.write_text(json.dumps({"kernel": os.uname().release, **outcome}))
        goodput = (outcome["report"] or {}).get("receiver", {}).get("goodput_mbps")
        said = f"{goodput:.2f} Mb/s" if goodput is not None else f"failed: {outcome['stderr'][-300:]}"
        spent_s = time.monotonic() - started_s
        sys.stdout.write(f"[{spent_s:.0f} s] {number}/{len(job['cells'])} {cell['name']}: {said}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

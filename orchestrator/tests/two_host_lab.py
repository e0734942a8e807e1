# SPDX-License-Identifier: Apache-2.0
"""A lab of two hosts in namespaces, an sshd in each, and whatever is to be run on its controller.

::

    controller 192.0.2.1 --- control network (bridge) --- client 192.0.2.11, server 192.0.2.12
    client 10.77.0.2 ============ cable ============ server 10.77.0.1
    client-power: a WT210 (emulated, 8 W) on the controller; server-power: one (5 W) on the server, which
    finds its range; its control address is a name

The server is another machine by its clock (a time namespace) and its boot. Both hosts have RECORD, as one
that is provisioned.

`python two_host_lab.py FOLDER COMMAND...` runs COMMAND there, root needed; FOLDER/lab.yaml is the topology.
All of it lives in a sandbox and vanishes with it.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import sshd
import yaml

from netjoule.hosts import sandbox

CONTROL = {"client": "192.0.2.11", "server": "192.0.2.12"}
SERVER_NAME = "server.control.example"
TEST = {"client": "10.77.0.2", "server": "10.77.0.1"}
WATTS = {"client": 8.0, "server": 5.0}
AHEAD_S = 1000
HOST_RECORD = Path("/run/netjoule/host.json")
RECORD = {
    "kernel": "6.1.0",
    "machine": "x86_64",
    "cpu_model": "CPU of the rack",
    "governor": "performance",
    "sysctls": {"net.core.rmem_max": 4194304},
    "offloads": {"cable": {"generic-receive-offload": "on"}},
}


def topology(keys: sshd.Keys, folder: Path) -> dict[str, Any]:
    """Kind lab, joined by a cable: without radios."""
    settings = {"update_interval_s": 0.25, "voltage_range_v": 300, "current_range_a": 0.1}
    meters = [
        {
            "meter_id": f"{name}-power",
            "node": name,
            "adapter": "wt210",
            "resource": str(folder / f"{name}.tty"),
            "settings": settings,
        }
        for name in WATTS
    ]
    meters[1] |= {"host": "server", "settings": settings | {"current_range_a": "auto"}}
    return {
        "schema_version": 1,
        "name": "two-hosts",
        "kind": "lab",
        "hosts": {
            name: {
                "roles": roles,
                "control_address": SERVER_NAME if name == "server" else CONTROL[name],
                "ssh": keys.ssh(22),
                "test_addresses": {"ipv4": f"{TEST[name]}/24"},
            }
            for name, roles in (("client", ["client"]), ("server", ["server", "meter_host"]))
        },
        "meters": meters,
    }


def provisioned(record: dict[str, Any]) -> None:
    """Write what the role base_host leaves on each host; they share /run."""
    HOST_RECORD.parent.mkdir(exist_ok=True)
    HOST_RECORD.write_text(json.dumps(record))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def lay_cables() -> None:
    """Namespaces, a bridge to both for control, a cable between them for the flows."""
    ip("link", "add", "control", "type", "bridge")
    ip("address", "add", "192.0.2.1/24", "dev", "control")
    ip("link", "set", "control", "up")
    for name, address in CONTROL.items():
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "control", "netns", name)
        ip("link", "set", f"to-{name}", "master", "control", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "control")
        ip("-n", name, "link", "set", "control", "up")
    peer = ("peer", "name", "cable", "netns", "server")
    ip("link", "add", "cable", "netns", "client", "type", "veth", *peer)
    for name, address in TEST.items():
        ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
        ip("-n", name, "link", "set", "cable", "up")


def name_server(folder: Path) -> None:
    """Controller and hosts have one /etc/hosts, in which the server's control address has a name."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{CONTROL['server']} {SERVER_NAME}\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


def emulated_meter(name: str, folder: Path) -> subprocess.Popen[str]:
    """A WT210 on a pseudo-terminal; begins when it is ready.

    Its power moves a little: one that never moves is a frozen meter, and after 30 s no repetition counts.
    """
    program = str(Path(sys.executable).parent / "netjoule-meters")
    trace = folder / f"{name}-power.csv"
    powers_w = (WATTS[name] + (0.05 if step < 10 else 0.0) for step in range(21))
    trace.write_text("t_s,power_w\n" + "".join(f"{step / 10},{w}\n" for step, w in enumerate(powers_w)))
    argv = [program, "emulate", "wt210", "--power-trace", str(trace), "--repeat"]
    argv += ["--link", str(folder / f"{name}.tty")]
    meter = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert meter.stdout is not None
    assert json.loads(meter.stdout.readline())["resource"]
    return meter


def of_another_boot(folder: Path) -> list[str]:
    """Put before a command: what it starts has a boot id of its own and clocks that are AHEAD_S ahead."""
    boot_id = folder / "boot_id"
    boot_id.write_text("11111111-2222-3333-4444-555555555555\n")
    clocks = ["--time", "--monotonic", str(AHEAD_S), "--boottime", str(AHEAD_S)]
    script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
    return ["unshare", *clocks, "--mount", "sh", "-c", script, str(boot_id)]


def inside(folder: Path, command: list[str]) -> int:
    """Set the lab up, run the command to its end; its exit code."""
    Path("/run/lock").mkdir()
    Path("/run/lock").chmod(0o1777)
    provisioned(RECORD)
    lay_cables()
    name_server(folder)
    keys = sshd.make_keys(folder / "keys", [*CONTROL.values(), SERVER_NAME])
    (folder / "lab.yaml").write_text(yaml.safe_dump(topology(keys, folder)))
    with contextlib.ExitStack() as stack:
        for name, address in CONTROL.items():
            conf = sshd.configuration(keys, address, 22, folder / f"cache-{name}")
            other = of_another_boot(folder) if name == "server" else []
            start = ["ip", "netns", "exec", name, *other, *sshd.command(conf, own_run=False)]
            stack.enter_context(sshd.running(start, address, 22))
            meter = emulated_meter(name, folder)
            stack.callback(meter.wait)
            stack.callback(meter.terminate)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    if sandbox.inside() is None:
        sys.exit(sandbox.run_inside([sys.executable, *sys.argv]))
    sys.exit(inside(Path(sys.argv[1]), sys.argv[2:]))

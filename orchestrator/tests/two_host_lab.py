# SPDX-License-Identifier: Apache-2.0
"""A lab of two hosts in namespaces, an sshd in each, and whatever is to be run on its controller.

::

    controller 192.0.2.1 --- control network (bridge) --- client 192.0.2.11, server 192.0.2.12
    client 10.77.0.2 ============ cable ============ server 10.77.0.1
    client-power: a WT210 (emulated, 8 W and more by the frames of the cable) on the controller;
    server-power: one (5 W) on the server, which finds its range; its control address is a name

The server is another machine by its clock (a time namespace) and its boot. Both hosts have RECORD, as one
that is provisioned.

`python two_host_lab.py FOLDER COMMAND...` runs COMMAND there, root needed; FOLDER/lab.yaml is the topology.
With `--rigs 2` before COMMAND there are client-2 and server-2 as well, and meters of theirs: the topology
then describes the rigs left and right. All of it lives in a sandbox and vanishes with it.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sshd
import yaml

from netjoule.hosts import sandbox

HERE = Path(__file__).parent
CONTROL = {"client": "192.0.2.11", "server": "192.0.2.12"}
SERVER_NAME = "server.control.example"
TEST = {"client": "10.77.0.2", "server": "10.77.0.1"}
WATTS = {"client": 8.0, "server": 5.0}
SECOND = {"client": "192.0.2.21", "server": "192.0.2.22"}
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


def with_second_rig(lab: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same with two rigs."""
    right = {
        "hosts": {name: {"control_address": address} for name, address in SECOND.items()},
        "meters": {f"{name}-power": {"resource": str(folder / f"{name}-2.tty")} for name in WATTS},
    }
    return lab | {"rigs": {"left": {}, "right": right}}


def addresses(rigs: int) -> dict[str, str]:
    """Control addresses by the name of the host's namespace."""
    return CONTROL | ({f"{name}-2": address for name, address in SECOND.items()} if rigs > 1 else {})


def provisioned(record: dict[str, Any]) -> None:
    """Write what the role base_host leaves on each host; they share /run."""
    HOST_RECORD.parent.mkdir(exist_ok=True)
    HOST_RECORD.write_text(json.dumps(record))


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def lay_cables(control: dict[str, str]) -> None:
    """Namespaces, a bridge to all for control, a cable between client and server for the flows."""
    ip("link", "add", "control", "type", "bridge")
    ip("address", "add", "192.0.2.1/24", "dev", "control")
    ip("link", "set", "control", "up")
    for name, address in control.items():
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "control", "netns", name)
        ip("link", "set", f"to-{name}", "master", "control", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "control")
        ip("-n", name, "link", "set", "control", "up")
    for rig in sorted({name.removeprefix("client").removeprefix("server") for name in control}):
        peer = ("peer", "name", "cable", "netns", f"server{rig}")
        ip("link", "add", "cable", "netns", f"client{rig}", "type", "veth", *peer)
        for name, address in TEST.items():
            ip("-n", name + rig, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name + rig, "link", "set", "cable", "up")


def name_server(folder: Path) -> None:
    """Controller and hosts have one /etc/hosts, in which the server's control address has a name."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{CONTROL['server']} {SERVER_NAME}\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


@contextlib.contextmanager
def emulated_meter(name: str, folder: Path) -> Iterator[None]:
    """A WT210 on a pseudo-terminal, while the body runs; its power follows the frames of the host's cable."""
    idle_w, origin_ns = WATTS[name.removesuffix("-2")], time.monotonic_ns()
    counting = ["ip", "netns", "exec", name, sys.executable, str(HERE / "counted_power.py")]
    program = str(Path(sys.executable).parent / "netjoule-meters")
    argv = [program, "emulate", "wt210", "--power-stream", "-", "--origin-ns", str(origin_ns)]
    argv += ["--link", str(folder / f"{name}.tty")]
    with (
        subprocess.Popen([*counting, str(idle_w), str(origin_ns)], stdout=subprocess.PIPE) as device,
        subprocess.Popen(argv, stdin=device.stdout, stdout=subprocess.PIPE, text=True) as meter,
    ):
        assert meter.stdout is not None
        assert json.loads(meter.stdout.readline())["resource"]
        try:
            yield
        finally:
            meter.terminate()
            device.terminate()


def of_another_boot(folder: Path) -> list[str]:
    """Put before a command: what it starts has a boot id of its own and clocks that are AHEAD_S ahead."""
    boot_id = folder / "boot_id"
    boot_id.write_text("11111111-2222-3333-4444-555555555555\n")
    clocks = ["--time", "--monotonic", str(AHEAD_S), "--boottime", str(AHEAD_S)]
    script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
    return ["unshare", *clocks, "--mount", "sh", "-c", script, str(boot_id)]


def inside(folder: Path, command: list[str], rigs: int = 1) -> int:
    """Set the lab up, run the command to its end; its exit code."""
    Path("/run/lock").mkdir()
    Path("/run/lock").chmod(0o1777)
    provisioned(RECORD)
    control = addresses(rigs)
    lay_cables(control)
    name_server(folder)
    keys = sshd.make_keys(folder / "keys", [*control.values(), SERVER_NAME])
    lab = topology(keys, folder)
    (folder / "lab.yaml").write_text(yaml.safe_dump(with_second_rig(lab, folder) if rigs > 1 else lab))
    with contextlib.ExitStack() as stack:
        for name, address in control.items():
            conf = sshd.configuration(keys, address, 22, folder / f"cache-{name}")
            other = of_another_boot(folder) if name.startswith("server") else []
            start = ["ip", "netns", "exec", name, *other, *sshd.command(conf, own_run=False)]
            stack.enter_context(sshd.running(start, address, 22))
            stack.enter_context(emulated_meter(name, folder))
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    if sandbox.inside() is None:
        sys.exit(sandbox.run_inside([sys.executable, *sys.argv]))
    two = sys.argv[2:4] == ["--rigs", "2"]
    sys.exit(inside(Path(sys.argv[1]), sys.argv[4:] if two else sys.argv[2:], rigs=2 if two else 1))

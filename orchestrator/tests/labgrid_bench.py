# SPDX-License-Identifier: Apache-2.0
"""A labgrid for tests: a real coordinator on loopback, a real exporter, and outlets behind HTTP.

`python labgrid_bench.py FOLDER`, inside `two_host_lab.py`, tells `story` in FOLDER/story.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import sshd
import yaml
from lab_story import programs, seen, told
from tiny_campaign import netjoule
from two_host_lab import CONTROL

BIN = sshd.ROOT / ".labgrid/bin"
OUTLETS = ("laptop", "tower")
PLACE = "rack"


@dataclass
class Labgrid:
    """It runs; each of its places has the power of the two hosts.

    Attributes:
        switched: outlets as they were switched: name, and whether on.
        on: called when an outlet is switched on, before labgrid is told that it is.
    """

    env: dict[str, str]
    switched: list[tuple[str, bool]] = field(default_factory=list)
    on: Callable[[str], None] = lambda _: None

    def client(self, *words: str, **env: str) -> str:
        """What labgrid-client says."""
        argv = [str(BIN / "labgrid-client"), *words]
        environment = os.environ | self.env | env
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def holder(self, place: str = PLACE) -> str:
        """Who has acquired a place, as labgrid names them; None in words without one."""
        said = self.client("-p", place, "show")
        return next(line for line in said.splitlines() if "acquired:" in line).partition(": ")[2]


def outlets(of: Labgrid) -> type[BaseHTTPRequestHandler]:
    """A power strip as labgrid's backend simplerest switches it: /INDEX/VALUE."""

    class Strip(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index, value = self.path.strip("/").split("/")
            name = OUTLETS[int(index)]
            of.switched.append((name, value == "1"))
            if value == "1":
                of.on(name)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    return Strip


@contextlib.contextmanager
def started(folder: Path, *argv: str | Path, ready: str) -> Iterator[None]:
    """A program of labgrid's while the block runs; begins when it has said that it is ready.

    A coordinator keeps its places in `folder`.
    """
    process = subprocess.Popen(
        [str(word) for word in argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        cwd=folder,
    )
    assert process.stdout is not None
    said: list[str] = []
    with process.stdout as output:
        rest = threading.Thread(target=output.read)  # a full pipe would stop it
        try:
            for line in output:
                said.append(line)
                if ready in line:
                    break
            else:
                pytest.fail("".join(said))
            rest.start()
            yield
        finally:
            process.terminate()
            process.wait(30)
            if rest.ident is not None:
                rest.join()


@contextlib.contextmanager
def running(folder: Path, *places: str) -> Iterator[Labgrid]:
    """Everything of it, while the block runs."""
    address = f"127.0.0.1:{sshd.free_port()}"
    lab = Labgrid({"LG_COORDINATOR": address, "LG_HOSTNAME": "controller", "LG_USERNAME": "ann"})
    strip = ThreadingHTTPServer(("127.0.0.1", 0), outlets(lab))
    url = f"http://127.0.0.1:{strip.server_port}/{{index}}/{{value}}"
    port = {"cls": "NetworkPowerPort", "model": "simplerest", "host": url}
    groups = {place: {name: port | {"index": i} for i, name in enumerate(OUTLETS)} for place in places}
    (folder / "exporter.yaml").write_text(yaml.safe_dump(groups))
    exporter = ("--name", "bench", "--coordinator", address, folder / "exporter.yaml")
    with contextlib.ExitStack() as stack:
        threading.Thread(target=strip.serve_forever, daemon=True).start()
        stack.callback(strip.server_close)
        stack.callback(strip.shutdown)
        coordinator = (BIN / "labgrid-coordinator", "--listen", address)
        stack.enter_context(started(folder, *coordinator, ready="listening on"))
        stack.enter_context(started(folder, BIN / "labgrid-exporter", *exporter, ready="Exporter ready"))
        for place in places:
            lab.client("-p", place, "create")
            lab.client("-p", place, "add-match", f"bench/{place}/NetworkPowerPort")
        yield lab


@contextlib.contextmanager
def without_power(folder: Path, host: str, outlet: str, lab: Labgrid) -> Iterator[None]:
    """A host of `two_host_lab` is dead until its outlet is switched on; its meter has power of its own."""
    for pid, line in programs(host).items():
        if "counted_power.py" not in line:
            with contextlib.suppress(ProcessLookupError):  # a program may end with its parent, or by itself
                os.kill(pid, signal.SIGKILL)
    conf = folder / "keys" / f"sshd-{CONTROL[host]}-22.conf"
    start = ["ip", "netns", "exec", host, *sshd.command(conf, own_run=False)]
    with contextlib.ExitStack() as power:

        def on(switched: str) -> None:
            if switched == outlet:
                power.enter_context(sshd.running(start, CONTROL[host], 22))

        lab.on = on
        yield
    lab.on = lambda _: None


def story(folder: Path, lab: Labgrid) -> dict[str, Any]:
    """A campaign's place: another has it, the campaign is killed, a host dies, the campaign is resumed."""
    os.environ.update(lab.env)
    topology = folder / "lab.yaml"
    reservation = {"labgrid": PLACE, "power_cycle": {"client": OUTLETS[0]}}
    document = yaml.safe_load(topology.read_text()) | {"reservation": reservation}
    topology.write_text(yaml.safe_dump(document))
    out = folder / "campaign"
    run = ["run", str(folder / "workload.yaml"), "--testbed", str(topology), "--no-verify", "--out", str(out)]
    found: dict[str, Any] = {}
    lab.client("-p", PLACE, "acquire", LG_USERNAME="bob")
    found["of_another"] = seen(netjoule(*run)) | {"folder": out.exists()}
    lab.client("-p", PLACE, "release", LG_USERNAME="bob")
    argv = [sys.executable, "-m", "netjoule", *run, "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as campaign:
        told(campaign, "run_started")
        found["during"] = lab.holder()
        campaign.send_signal(signal.SIGKILL)
    found["killed"] = lab.holder()
    assert not lab.switched
    with without_power(folder, "client", OUTLETS[0], lab):
        found["resumed"] = seen(netjoule("resume", str(out), "--no-verify", "--json"))
    found["switched"] = lab.switched
    found["after"] = lab.holder()
    return found


if __name__ == "__main__":
    where = Path(sys.argv[1])
    with running(where, PLACE) as bench:
        (where / "story.json").write_text(json.dumps(story(where, bench)))

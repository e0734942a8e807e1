# SPDX-License-Identifier: Apache-2.0
"""What a campaign adds to a simulated sweep: two rigs against two bare loops that do half of it each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from netjoule_bench.tables import Section, at_most, by_arm

RUN_S = 0.05
"""CPU time of a run."""
ARMS = 100
RIGS = 2
MOST_OF_BARE = 1.2
MOST_GROWTH = 1.1
MOST_OVERHEAD_MS = 5.0
"""5 % of a run of 0.1 s."""


def section(repo: Path, *, quick: bool) -> Section:
    """Time of all runs, and memory of all processes of the campaign as it goes on."""
    blocks = 4 if quick else 100
    sys.path.append(str(repo / "orchestrator" / "tests"))  # the load whose simulation takes what it is told
    toy = import_module("toy_netjoule")
    subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)
    os.environ["TOY_WORK_S"] = str(RUN_S)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "simulated.yaml").write_text(
            "{schema_version: 1, name: sweep, kind: simulated, meters: [],"
            " hosts: {client: {roles: [client]}, server: {roles: [server]}}}\n"
        )
        workload = toy.WORKLOAD | {"blocks": blocks, "factors": {"wait_ms": list(range(20, 20 + ARMS))}}
        (folder / "sweep.yaml").write_text(json.dumps(workload))  # JSON is YAML, too
        runs = blocks * ARMS
        bare_s = _bare_s(toy.TOY / "bin" / "netjoule-simulate", runs)
        words = ["run", str(folder / "sweep.yaml"), "--testbed", str(folder / "simulated.yaml"), "--json"]
        program = toy.Program(toy.with_toy(folder / "contracts"))
        began_s = time.monotonic()
        process = program.start("-m", "netjoule", *words, "--rigs", str(RIGS), "--out", str(folder / "c"))
        memory = _Memory(process)
        out, err = process.communicate()
        took_s = time.monotonic() - began_s
        if process.returncode:
            raise RuntimeError(f"the sweep failed: {(out + err)[-500:]}")
    overhead_ms = 1000 * RIGS * (took_s - bare_s) / runs
    growth = memory.growth()
    seconds = {"two bare loops": bare_s, "a campaign on two rigs": took_s}
    return by_arm(
        f"A simulated sweep of {runs:,} runs of {1000 * RUN_S:g} ms",
        seconds,
        {"time s": lambda one: f"{one:.1f}", "of the loops'": lambda one: f"{one / bare_s:.3f}"},
        arms="who",
        note=f"From the command to its end, start of Dask included. Memory is that of all of the campaign's "
        f"processes: {memory.peak_mb():.0f} MB at most.",
        verdicts=[
            at_most(
                "simulated sweep: time over that of two bare loops", took_s / bare_s, MOST_OF_BARE, "{:.3f}"
            ),
            at_most("simulated sweep: overhead of a run, ms", overhead_ms, MOST_OVERHEAD_MS),
            at_most("simulated sweep: memory, last quarter over second", growth, MOST_GROWTH),
        ],
    )


def _bare_s(simulator: Path, runs: int) -> float:
    """Seconds that as many processes as there are rigs need, each for its share."""
    began_s = time.monotonic()
    with ThreadPoolExecutor(RIGS) as pool:
        list(pool.map(lambda _: _ask(simulator, runs // RIGS), range(RIGS)))
    return time.monotonic() - began_s


def _ask(simulator: Path, runs: int) -> None:
    with subprocess.Popen(
        [str(simulator)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(runs):
            process.stdin.write(
                json.dumps({"wait_s": 1.0, "each_s": 0.02, "seed": number, "id": number}) + "\n"
            )
            process.stdin.flush()
            process.stdout.readline()
        process.stdin.close()


class _Memory:
    """Memory of a process and of all below it, once a second."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._seen_mb: list[float] = []
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[Any]) -> None:
        while process.poll() is None:
            self._seen_mb.append(_resident_mb(process.pid))
            time.sleep(1.0)

    def peak_mb(self) -> float:
        """Greatest, MB."""
        return max(self._seen_mb)

    def growth(self) -> float | None:
        """Greatest of the last quarter over that of the second; None where it was too short to tell."""
        quarter = len(self._seen_mb) // 4
        if quarter < 2:
            return None
        return max(self._seen_mb[3 * quarter :]) / max(self._seen_mb[quarter : 2 * quarter])


def _resident_mb(root: int) -> float:
    parents, resident = {}, {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(proc.name)] = int((proc / "stat").read_text().rpartition(")")[2].split()[1])
            resident[int(proc.name)] = int((proc / "statm").read_text().split()[1])
        except OSError:
            continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(resident[pid] for pid in family) * os.sysconf("SC_PAGE_SIZE") / 1e6

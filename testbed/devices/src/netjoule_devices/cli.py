# SPDX-License-Identifier: Apache-2.0
"""netjoule-device: the power of a modelled client as a stream of samples on stdout (and in a log file)."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, TextIO

from netjoule_devices.control import Control
from netjoule_devices.cpu_time import NamespaceCpu
from netjoule_devices.errors import DeviceError, EnvironmentLacks, LinkLost, UsageError
from netjoule_devices.link_stats import LinkStats, subscribe
from netjoule_devices.model import DeviceModel, load_model, model_names
from netjoule_devices.sampler import Sample, Sampler, TrafficAdvance
from netjoule_devices.shutdown import Shutdown, WaitResult
from netjoule_devices.traffic import NamespaceTraffic


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, SIGINT or a closed stdout (0), or until something fails (1, 2, 3)."""
    chosen = _parsed(arguments)
    stop = Shutdown()
    try:
        if chosen.describe:
            sys.stdout.write(json.dumps(load_model(chosen.model).describe()) + "\n")
            return 0
        with _open_log(chosen.log) as log:
            for sample in _samples(chosen, stop):
                _write(sample, log)
    except BrokenPipeError:
        # The reader has gone: that is how a pipeline ends. The interpreter must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except DeviceError as error:
        sys.stderr.write(f"netjoule-device: {error}\n")
        return error.exit_code
    return 0


def entry() -> None:
    """Entry point of the installed program."""
    sys.exit(main())


def _samples(chosen: argparse.Namespace, stop: Shutdown) -> Iterator[Sample]:
    """Yield samples until the program is asked to end; between two of them the model may be changed."""
    netns = chosen.cpu_netns
    model, traffic = _model(chosen.model, netns)
    cpu = None if netns is None else NamespaceCpu(netns).advance_s

    def change(reference: str) -> dict[str, Any]:
        model, traffic = _model(reference, netns)
        sampler.change(model, traffic)
        return model.describe()

    with _control(chosen.control) as control:
        link = None
        if chosen.link_socket is not None:
            link = subscribe(chosen.link_socket, chosen.station, chosen.wait_s, stop.wait)
            if link is None:
                return
        sampler = Sampler(model, chosen.origin_ns, cpu, time.monotonic_ns(), traffic)
        interval_ns = round(chosen.interval_s * 1e9)
        for sample in (
            _grid_samples(sampler, chosen.origin_ns, interval_ns, stop)
            if link is None
            else _link_samples(sampler, link, chosen, stop)
        ):
            yield sample
            if control is not None:
                control.serve(change)


def _model(reference: str, netns: Path | None) -> tuple[DeviceModel, TrafficAdvance | None]:
    """Return a model, and what counts the connections of one that needs them."""
    model = load_model(reference)
    if model.form != "connections":
        return model, None
    if netns is None:
        raise UsageError(f"device model {model.name} counts connections: name a namespace by --cpu-netns")
    traffic = _traffic(netns)
    traffic.advance(time.monotonic_ns())  # what came under another model does not count
    return model, traffic.advance


@lru_cache
def _traffic(netns: Path) -> NamespaceTraffic:
    return NamespaceTraffic(netns)


def _control(path: Path | None) -> contextlib.AbstractContextManager[Control | None]:
    return contextlib.nullcontext() if path is None else contextlib.closing(Control(path))


def _grid_samples(sampler: Sampler, origin_ns: int, interval_ns: int, stop: Shutdown) -> Iterator[Sample]:
    """Yield samples on the grid origin + k x interval; a late wake-up makes one longer sample, not a hole."""
    start_ns = origin_ns - (origin_ns - time.monotonic_ns()) // interval_ns * interval_ns
    while stop.wait((start_ns + interval_ns - time.monotonic_ns()) * 1e-9) is not WaitResult.STOP:
        now_ns = time.monotonic_ns()
        end_ns = origin_ns + (now_ns - origin_ns) // interval_ns * interval_ns
        if end_ns > start_ns:
            yield sampler.on_grid(start_ns, end_ns, now_ns)
            start_ns = end_ns


def _link_samples(
    sampler: Sampler, link: LinkStats, chosen: argparse.Namespace, stop: Shutdown
) -> Iterator[Sample]:
    """Yield one sample per interval of the link's statistics."""
    deadline = time.monotonic() + chosen.wait_s
    while True:
        result = stop.wait(deadline - time.monotonic(), link)
        if result is WaitResult.STOP:
            return
        samples = sampler.on_link(link.receive(), time.monotonic_ns()) if result is WaitResult.READY else []
        if samples:
            deadline = time.monotonic() + chosen.wait_s
        elif time.monotonic() >= deadline:
            raise LinkLost(
                f"the link said nothing about station {chosen.station!r} for {chosen.wait_s:g} s; "
                "is that the name of a station in its configuration?"
            )
        yield from samples


def _write(sample: Sample, log: TextIO | None) -> None:
    line = sample.to_line()
    for stream in (log, sys.stdout):
        if stream is not None:
            stream.write(line)
            stream.flush()


def _open_log(path: Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    if path is None:
        return contextlib.nullcontext()
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise EnvironmentLacks(f"the log {path} cannot be opened: {error.strerror}") from None


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help()
        parser.exit()
    chosen = parser.parse_args(arguments)
    if chosen.origin_ns is None and not chosen.describe:
        parser.error("--origin-ns is needed: CLOCK_MONOTONIC, in nanoseconds, at campaign time 0")
    return chosen


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the other programs do."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see '{self.prog} --help'\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="netjoule-device",
        description="Stream the power of a modelled device as NDJSON (device_stream.schema.json).",
        epilog="example: netjoule-device --model laptop-cpu --link-socket link.sock --station client "
        "--cpu-netns /run/netns/client --origin-ns 0 --log client.ndjson",
    )
    parser.add_argument(
        "--version", action="version", version=f"netjoule-device {version('netjoule-devices')}"
    )
    parser.add_argument(
        "--model",
        required=True,
        help=f"{', '.join(model_names())}, or a YAML file; NAME:PARAMETER=VALUE,... changes parameters",
    )
    parser.add_argument("--link-socket", type=Path, help="statistics socket of netjoule-link")
    parser.add_argument("--station", default="client", help="whose air time it is (default: %(default)s)")
    parser.add_argument(
        "--cpu-netns", type=Path, help="network namespace whose CPU time and connections count"
    )
    parser.add_argument("--origin-ns", type=int, help="CLOCK_MONOTONIC at campaign time 0")
    parser.add_argument("--describe", action="store_true", help="print the model as one JSON line and end")
    parser.add_argument("--log", type=Path, help="file that the stream is appended to as well")
    parser.add_argument(
        "--control", type=Path, help='unix socket to make for requests of another model, {"model": NAME}'
    )
    parser.add_argument(
        "--interval-s",
        type=_seconds,
        default=0.1,
        help="sample length without a link; with one, its intervals are used (default: %(default)s)",
    )
    parser.add_argument(
        "--wait-s",
        type=_seconds,
        default=10.0,
        help="longest wait for the link to appear, and for the station to be named (default: %(default)s)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.001 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.001 to 3600")
    return value

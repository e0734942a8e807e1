# SPDX-License-Identifier: Apache-2.0
"""The instruments that can be emulated. A new one is a module beside these and a line in this table."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from netjoule_meters.emulated.instrument_loop import Instrument
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.socket_variants import ISOCKETS, ONE_PAGE, SOCKETS, Variant
from netjoule_meters.errors import MeterUnavailable, UsageError

_SHORTEST_UPDATE_S, _LONGEST_UPDATE_S = 0.01, 86_400.0


@dataclass(frozen=True, slots=True)
class EmulationOptions:
    """What an emulated instrument is told.

    Attributes:
        seed: draws this instrument's gain and offset errors within its specification; None: no error.
        update_interval_s: None stands for the instrument's own.
        variant: which of several devices of one kind (a preset of a socket); "" for the usual one.
        extra: further options of this model, by name.
    """

    seed: int | None = None
    update_interval_s: float | None = None
    supply: Supply = field(default_factory=Supply)
    variant: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def known_extra(self, model: str, known: Collection[str]) -> dict[str, Any]:
        """The further options, all of which ``model`` has.

        Raises:
            UsageError: naming the first that it has not.
        """
        unknown = set(self.extra) - set(known)
        if unknown:
            there = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise UsageError(f"an emulated {model} has no option '{min(unknown)}': {there}")
        return dict(self.extra)


@dataclass(frozen=True, slots=True)
class EmulatedModel:
    """One kind of emulated instrument.

    Attributes:
        home: ``module:function`` under ``netjoule_meters.emulated``; takes `EmulationOptions`, returns an
            `Instrument`. Raises UsageError for an option that the real instrument does not have.
        ports: kinds of port it can sit on, the usual one first: pty, tcp, tcp-once, udp, vxi11.
        adapter: the adapter that reads it.
        resource: how a client names it, ``{port}`` being the port's name (a path, HOST:PORT).
        variants: the variants there are, by name; the first is the usual one. Empty: no variants.
    """

    name: str
    home: str
    ports: tuple[str, ...]
    adapter: str
    resource: str = "{port}"
    variants: Mapping[str, Variant] = field(default_factory=dict)


EMULATED: dict[str, EmulatedModel] = {
    model.name: model
    for model in (
        EmulatedModel("wt210", "power_analysers.wt210:make", ("pty", "tcp"), "wt210"),
        EmulatedModel(
            "wt210-gpib", "power_analysers.prologix:make", ("pty", "tcp"), "wt210", "prologix:{port}:5"
        ),
        EmulatedModel(
            "wt310",
            "power_analysers.wt310:make",
            ("pty", "tcp", "vxi11"),
            "wt310",
            variants={
                "wt310": Variant(("pty", "tcp", "vxi11"), "{port}", {"model": "WT310"}),
                "wt310e": Variant(("pty", "tcp", "vxi11"), "{port}", {"model": "WT310E"}),
            },
        ),
        EmulatedModel(
            "hm8115",
            "power_analysers.hm8115:make",
            ("pty",),
            "hm8115",
            variants={form: Variant(("pty",), "{port}") for form in ("values", "ranges")},
        ),
        EmulatedModel("cc128", "energy_monitors.cc128:make", ("pty",), "cc128"),
        EmulatedModel(
            "socket",
            "plugs_and_pdus.sockets:make_socket",
            ONE_PAGE,
            "socket",
            "http://{port}",
            SOCKETS,
        ),
        EmulatedModel(
            "isockets",
            "plugs_and_pdus.sockets:make_isockets",
            ONE_PAGE,
            "isockets",
            "http://{port}",
            ISOCKETS,
        ),
        EmulatedModel(
            "ptd",
            "power_analysers.ptd:make",
            ("tcp",),
            "ptd",
            "tcp:{port}",
            variants={"wt210": Variant(("tcp",), "tcp:{port}", {"model": "WT210"})},
        ),
    )
}


_SCHEMES = {"tcp": "tcp:", "vxi11": "vxi11:"}


def client_resource(template: str, port_kind: str, port_name: str) -> str:
    """What a client puts into its configuration.

    ``template`` with the port's name in it; a bare name gets the scheme of its kind (``tcp:HOST:PORT``).
    """
    if template == "{port}":
        return _SCHEMES.get(port_kind, "") + port_name
    return template.format(port=port_name)


def emulated_model(name: str) -> EmulatedModel:
    """The emulated instrument called ``name``.

    Raises:
        UsageError: when there is none.
    """
    if name not in EMULATED:
        raise UsageError(f"no emulated instrument '{name}': there are {', '.join(sorted(EMULATED))}")
    return EMULATED[name]


def variant_of(model: EmulatedModel, variant: str) -> Variant:
    """How a variant is reached and read; the model's own way where it has no variants."""
    if not model.variants:
        return Variant(model.ports, model.resource)
    return model.variants.get(variant) or next(iter(model.variants.values()))


def make_instrument(name: str, options: EmulationOptions) -> Instrument:
    """A new emulated instrument.

    Raises:
        UsageError: for options that it does not have.
        MeterUnavailable: when a library that it needs is not installed.
    """
    model = emulated_model(name)
    if options.variant and options.variant not in model.variants:
        there = f"there are {', '.join(model.variants)}" if model.variants else "leave it out"
        raise UsageError(f"no variant '{options.variant}' of an emulated {name}: {there}")
    interval_s = options.update_interval_s
    if interval_s is not None and not _SHORTEST_UPDATE_S <= interval_s <= _LONGEST_UPDATE_S:
        raise UsageError(
            f"an update interval of {interval_s:g} s cannot be: choose one between {_SHORTEST_UPDATE_S:g} s "
            "and a day"
        )
    module, _, function = model.home.partition(":")
    make: Callable[[EmulationOptions], Instrument] = getattr(
        importlib.import_module(f"netjoule_meters.emulated.{module}"), function
    )
    try:
        return make(options)
    except ImportError as error:
        raise MeterUnavailable(
            f"an emulated {name} needs {error.name}: pip install './meters[network]'"
        ) from error

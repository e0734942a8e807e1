# SPDX-License-Identifier: Apache-2.0
"""Device models as data: loading them and holding them to their contract (device_model.schema.json)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

import netjoule_contracts
from netjoule_devices.errors import UsageError

REQUIRED_PARAMETERS = {
    "constant": {"p0_w"},
    "linear": {"p0_w", "frame_j", "air_time_w"},
    "cross_factor": {"rho_id_w", "gamma_xg_j", "gamma_xr_j", "tx_power_dbm"},
    "cpu": {"base_w", "core_w", "rho_idle_w", "rho_tx_w", "rho_rx_w"},
    "phone": {"cpu_idle_w", "core_w", "cpu_scale", "wifi_on_w", "wifi_active_w"},
    "connections": {"idle_w", "active_w", "rate_w_per_mbps", "connection_w"},
}
RANGES = ("frames_per_s", "phy_rate_mbps", "busy_cores", "rate_mbps", "connections")

Points = tuple[tuple[float, float], ...]
"""(PHY rate in Mb/s, rho in W) in rising order of rate."""
Ratios = tuple[float | None, ...]
"""Standard uncertainty over rho, point by point; None where none is stated."""


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """One device: parameters in the units their names carry, inclusive validity ranges, rho tables in W.

    relative_uncertainty: standard uncertainty over value, by parameter; None where the source states none.
    u_rho_tx, u_rho_rx: the same of each point of a table.
    """

    name: str
    title: str
    form: str
    status: str
    source: str
    parameters: dict[str, float]
    validity: dict[str, tuple[float, float]]
    rho_tx: Points = ()
    rho_rx: Points = ()
    relative_uncertainty: dict[str, float | None] = field(default_factory=dict)
    u_rho_tx: Ratios = ()
    u_rho_rx: Ratios = ()

    def describe(self) -> dict[str, Any]:
        """Return what others need to label a power figure and to say how sure it is, as JSON."""
        document: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "form": self.form,
            "status": self.status,
            "source": self.source,
            "parameters": self.parameters,
            "relative_uncertainty": self.relative_uncertainty,
            "validity": {name: list(bounds) for name, bounds in self.validity.items()},
        }
        if self.rho_tx:
            document["rho_tx"] = _described(self.rho_tx, self.u_rho_tx)
            document["rho_rx"] = _described(self.rho_rx, self.u_rho_rx)
        return document


def model_names() -> list[str]:
    """Return the names of the models that come with the package."""
    folder = resources.files("netjoule_devices") / "models"
    return sorted(
        entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )


def load_model(reference: str) -> DeviceModel:
    """Return a model by the name it has in the package, or from a YAML file.

    `NAME:PARAMETER=VALUE,...` changes parameters; the model then has all of that as its name, so that no
    figure of a changed model passes for one of the model itself.

    Raises:
        UsageError: when there is none of that name, the file is no valid model, or a change is none.
    """
    before, colon, changes = reference.rpartition(":")
    if not colon or "=" not in changes:
        return _unchanged(reference)
    model = _unchanged(before)
    changed = dict(_change(word, model, reference) for word in changes.split(","))
    return replace(
        model,
        name=f"{model.name}:{changes}",
        parameters=model.parameters | changed,
        relative_uncertainty=model.relative_uncertainty | dict.fromkeys(changed),
    )


def _change(word: str, model: DeviceModel, reference: str) -> tuple[str, float]:
    """Return the parameter that a word PARAMETER=VALUE names, and its value."""
    name, _, text = word.partition("=")
    if name not in model.parameters:
        known = ", ".join(model.parameters)
        raise UsageError(f"device model {reference}: it has no parameter {name!r}; there are {known}")
    if model.form == "cross_factor" and name == "tx_power_dbm":
        raise UsageError(f"device model {reference}: tx_power_dbm chooses a table; write a model file for it")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"device model {reference}: {text!r} is no number of 0 or more for {name}")
    return name, value


def _unchanged(name_or_path: str) -> DeviceModel:
    names = model_names()
    if name_or_path in names:
        place = resources.files("netjoule_devices") / "models" / f"{name_or_path}.yaml"
        return parse_model(place.read_text(encoding="utf-8"), name_or_path)
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"no device model {name_or_path!r}; there are {', '.join(names)}, or name a .yaml file"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"device model {path} cannot be read: {error.strerror}") from None
    return parse_model(text, str(path))


def parse_model(text: str, where: str) -> DeviceModel:
    """Return the model in a YAML text; `where` names it in errors.

    Raises:
        UsageError: naming the fault.
    """
    try:
        document = yaml.safe_load(text)
        netjoule_contracts.validate("device_model", document)
    except (yaml.YAMLError, netjoule_contracts.ContractError) as error:
        raise UsageError(f"device model {where} is not valid: {error}") from None
    form = document["form"]
    parameters = {name: float(entry["value"]) for name, entry in document["parameters"].items()}
    if parameters.keys() != REQUIRED_PARAMETERS[form]:
        wanted = ", ".join(sorted(REQUIRED_PARAMETERS[form]))
        raise UsageError(f"device model {where}: form {form} takes exactly the parameters {wanted}")
    if (form == "cross_factor") != ("tables" in document):
        raise UsageError(f"device model {where}: tables belong to the form cross_factor, and only to it")
    rho_tx, u_rho_tx = _points(document, "tx", parameters.get("tx_power_dbm"), where)
    rho_rx, u_rho_rx = _points(document, "rx", None, where)
    ranges = {name: document["validity"][name] for name in RANGES if name in document["validity"]}
    return DeviceModel(
        name=document["name"],
        title=document["title"],
        form=form,
        status=document["status"],
        source=document["source"],
        parameters=parameters,
        validity={name: (float(r["minimum"]), float(r["maximum"])) for name, r in ranges.items()},
        rho_tx=rho_tx,
        rho_rx=rho_rx,
        relative_uncertainty={
            name: entry.get("relative_uncertainty") for name, entry in document["parameters"].items()
        },
        u_rho_tx=u_rho_tx,
        u_rho_rx=u_rho_rx,
    )


def _described(points: Points, ratios: Ratios) -> list[dict[str, float | None]]:
    return [
        {"phy_rate_mbps": rate, "rho_w": rho, "relative_uncertainty": ratio}
        for (rate, rho), ratio in zip(points, ratios, strict=True)
    ]


def _points(
    document: dict[str, Any], table: str, tx_power_dbm: float | None, where: str
) -> tuple[Points, Ratios]:
    """Return the rows of a table at one transmit power (None: rows without one), and how sure each is."""
    if "tables" not in document:
        return (), ()
    rows = [row for row in document["tables"][table] if row.get("tx_power_dbm") == tx_power_dbm]
    rows.sort(key=lambda row: (float(row["phy_rate_mbps"]), float(row["rho_w"])))
    points = tuple((float(row["phy_rate_mbps"]), float(row["rho_w"])) for row in rows)
    if len({rate for rate, _ in points}) != len(points) or len(points) < 2:
        power = "no transmit power" if tx_power_dbm is None else f"{tx_power_dbm} dBm"
        raise UsageError(f"device model {where}: table {table} needs two or more different rates at {power}")
    return points, tuple(row.get("relative_uncertainty") for row in rows)

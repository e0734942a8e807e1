# SPDX-License-Identifier: Apache-2.0
"""Power of a device over one stretch of time, from what it did in it. Pure; nothing is ever clamped.

constant      p0
linear        p0 + frame_j x (frames sent + received)/s + air_time_w x (air time sent + received)
cross_factor  rho_id + rho_tx x air time sent + rho_rx x air time received + gamma_xg x frames generated/s
              + gamma_xr x frames received/s   (Serrano et al., IEEE/ACM ToN 23(4), 2015; no CPU term:
              gamma is the cost of the frame's way through the host)
cpu           base + radio (sending, receiving, idle by air time) + core_w x busy cores
phone         cpu_idle + wifi_on + wifi_active x (air time sent + received) + core_w x cpu_scale x busy cores
              (Android's power profile: what a state draws is added to what is always on; cpu_scale is CPU
              seconds of the phone for one of this host)
connections   idle + active while any connection moves bytes + rate_w_per_mbps x Mb/s received
              + connection_w x connections that move bytes (fitted; no mechanism)

Air time here is the share of the stretch (0 to 1).
"""

from __future__ import annotations

from dataclasses import dataclass

from netjoule_devices.model import DeviceModel, Points

UNSEEN_MBPS = 1.0
"""Where what a model that counts connections cannot see begins; below it are a transfer's last packets."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a device did in `length_s` seconds, counts and times of that stretch alone.

    airtime_tx_s, airtime_rx_s: seconds on air. frames_tx: frames sent, retries included. retries: frames sent
    again. phy_rate_mbps: None when unknown. cpu_s: CPU seconds of all its processes. received_bytes: by its
    interfaces, headers included. connections: those that move bytes (traffic.py).
    """

    length_s: float
    airtime_tx_s: float = 0.0
    airtime_rx_s: float = 0.0
    frames_tx: int = 0
    frames_rx: int = 0
    retries: int = 0
    phy_rate_mbps: float | None = None
    cpu_s: float = 0.0
    received_bytes: float = 0.0
    connections: int = 0

    @property
    def busy_cores(self) -> float:
        """CPU seconds per second."""
        return self.cpu_s / self.length_s

    @property
    def rate_mbps(self) -> float:
        """What was received, in Mb/s."""
        return 8e-6 * self.received_bytes / self.length_s

    @property
    def generated_frames_per_s(self) -> float:
        """Frames that came down through the host; a retry is the radio's work alone."""
        return (self.frames_tx - self.retries) / self.length_s


def terms_w(model: DeviceModel, activity: Activity) -> dict[str, float]:
    """Return the terms of the model in W; their sum is the power."""
    p, length_s = model.parameters, activity.length_s
    tx_share, rx_share = activity.airtime_tx_s / length_s, activity.airtime_rx_s / length_s
    if model.form == "constant":
        return {"p0": p["p0_w"]}
    if model.form == "linear":
        frames_per_s = (activity.frames_tx + activity.frames_rx) / length_s
        return {
            "p0": p["p0_w"],
            "frames": p["frame_j"] * frames_per_s,
            "air_time": p["air_time_w"] * (tx_share + rx_share),
        }
    if model.form == "cross_factor":
        rate_mbps = activity.phy_rate_mbps
        return {
            "idle": p["rho_id_w"],
            "tx": rho_w(model.rho_tx, rate_mbps) * tx_share if tx_share else 0.0,
            "rx": rho_w(model.rho_rx, rate_mbps) * rx_share if rx_share else 0.0,
            "generated_frames": p["gamma_xg_j"] * activity.generated_frames_per_s,
            "received_frames": p["gamma_xr_j"] * activity.frames_rx / length_s,
        }
    if model.form == "phone":
        return {
            "cpu_idle": p["cpu_idle_w"],
            "cpu": p["core_w"] * p["cpu_scale"] * activity.busy_cores,
            "wifi_on": p["wifi_on_w"],
            "wifi_active": p["wifi_active_w"] * (tx_share + rx_share),
        }
    if model.form == "connections":
        return {
            "idle": p["idle_w"],
            "active": p["active_w"] if activity.connections else 0.0,
            "rate": p["rate_w_per_mbps"] * activity.rate_mbps,
            "connections": p["connection_w"] * activity.connections,
        }
    return {
        "base": p["base_w"],
        "radio_idle": p["rho_idle_w"] * (1 - tx_share - rx_share),
        "radio_tx": p["rho_tx_w"] * tx_share,
        "radio_rx": p["rho_rx_w"] * rx_share,
        "cpu": p["core_w"] * activity.busy_cores,
    }


def is_extrapolated(model: DeviceModel, activity: Activity) -> bool:
    """Return whether the activity lies outside of what the model states to be valid for.

    The PHY rate counts only while something is on air. What comes without a connection that could be counted
    (to a socket without a peer) lies outside of a model that counts them.
    """
    on_air = activity.airtime_tx_s > 0 or activity.airtime_rx_s > 0
    found = {
        "frames_per_s": (activity.frames_tx + activity.frames_rx) / activity.length_s,
        "busy_cores": activity.busy_cores,
        "phy_rate_mbps": activity.phy_rate_mbps if on_air else None,
        "rate_mbps": activity.rate_mbps,
        "connections": activity.connections,
    }
    if "connections" in model.validity and not activity.connections and activity.rate_mbps > UNSEEN_MBPS:
        return True
    for name, (least, greatest) in model.validity.items():
        value = found[name]
        if name == "phy_rate_mbps" and on_air and value is None:
            return True
        if value is not None and not least <= value <= greatest:
            return True
    return False


def rho_w(points: Points, rate_mbps: float | None) -> float:
    """Return rho in W at a PHY rate, linear between tabulated rates; the outer segments go on as lines.

    An unknown rate takes the highest tabulated one (and `is_extrapolated` flags it).
    """
    if rate_mbps is None:
        return points[-1][1]
    upper = next((k for k, (rate, _) in enumerate(points) if rate >= rate_mbps), len(points) - 1)
    upper = max(upper, 1)
    (rate_0, rho_0), (rate_1, rho_1) = points[upper - 1], points[upper]
    return rho_0 + (rho_1 - rho_0) * (rate_mbps - rate_0) / (rate_1 - rate_0)

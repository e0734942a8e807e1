# SPDX-License-Identifier: Apache-2.0
"""The radio roles' templates rendered without Ansible: jinja2, the filters, and recorded outputs of iw."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ANSIBLE = Path(__file__).resolve().parents[1]
RECORDED = ANSIBLE.parent / "testbed/radio/tests/data"
PASSPHRASE = "correct horse battery #9"


def interface_info(wiphy: int) -> str:
    """What `iw dev wlanN info` says of an idle hwsim interface, reduced to what is read."""
    return f"Interface wlan{wiphy}\n\twiphy {wiphy}\n\ttype managed\n"


def filters() -> dict[str, Any]:
    """The filters of the plugin."""
    spec = importlib.util.spec_from_file_location(
        "netjoule_wifi", ANSIBLE / "plugins/filter/netjoule_wifi.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()


def plans(wifi: dict[str, Any], radio: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plans of access point and client on a recorded radio."""
    phy, own = (RECORDED / radio).read_text(), filters()
    return (
        own["netjoule_access_point_plan"](wifi, phy, interface_info(0)),
        own["netjoule_client_plan"](wifi, phy, interface_info(0)),
    )


def render(
    wifi: dict[str, Any], radio: str, *, interface: str = "wlan0", run_dir: str = "/run/netjoule"
) -> dict[str, str]:
    """hostapd.conf and wpa_supplicant.conf of one network on one recorded radio."""
    access_point, client = plans(wifi, radio)
    assert access_point["problems"] == client["problems"] == []
    variables = {
        "ansible_managed": "Ansible managed",
        "netjoule_wifi": wifi,
        "netjoule_radio_interface": interface,
        "access_point_plan": access_point,
        "access_point_bridge": "br-netjoule" if wifi.get("forwarding") == "bridging" else "",
        "radio_run_dir": run_dir,
        "wifi_client_plan": client,
    }
    templates = {"hostapd.conf": "access_point", "wpa_supplicant.conf": "wifi_client"}
    return {name: template(role, name).render(variables) for name, role in templates.items()}


def template(role: str, name: str) -> Any:
    """A template of a role, `name`.j2."""
    # The settings that Ansible renders with.
    environment = Environment(
        loader=FileSystemLoader(ANSIBLE / "roles" / role / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # configuration files, not HTML
    )
    environment.filters |= filters() | {"quote": shlex.quote, "regex_replace": _regex_replace}
    return environment.get_template(f"{name}.j2")


def _regex_replace(text: str, pattern: str, replacement: str) -> str:
    """As Ansible's filter."""
    return re.sub(pattern, replacement, text)

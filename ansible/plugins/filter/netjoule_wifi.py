# SPDX-License-Identifier: Apache-2.0
"""Filters of the radio roles: functions of netjoule_radio, and strings of wpa_supplicant.conf."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_OF_NETJOULE_RADIO = {
    "netjoule_access_point_differences": "link_state.access_point_differences",
    "netjoule_access_point_plan": "plan.access_point_plan_dict",
    "netjoule_client_differences": "link_state.client_differences",
    "netjoule_client_plan": "plan.client_plan_dict",
    "netjoule_key_values": "link_state.key_values",
    "netjoule_radio_one_snapshot": "bundle.one_snapshot",
    "netjoule_radio_remedies": "remedies.remedies",
    "netjoule_regulatory_country": "iw_dev.country_of_interface",
}


def _of_netjoule_radio(place: str) -> Callable[..., Any]:
    """A filter that imports its function when called: a plugin that fails to load is only warned of."""
    module, function = place.split(".")

    def call(*arguments: Any) -> Any:
        try:
            imported = importlib.import_module(f"netjoule_radio.{module}")
        except ImportError as error:
            from ansible.errors import AnsibleFilterError

            raise AnsibleFilterError(
                "the Python that runs ansible-playbook has no netjoule_radio; use `netjoule provision`, "
                "or install testbed/radio there"
            ) from error
        return getattr(imported, function)(*arguments)

    return call


def _wpa_string(text: str) -> str:
    """A string of wpa_supplicant.conf: quoted; in hexadecimal where quoting could be misread."""
    if text.isascii() and text.isprintable() and '"' not in text:
        return f'"{text}"'
    return text.encode().hex()


class FilterModule:
    """What templates and tasks may call."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Filters by name."""
        return {name: _of_netjoule_radio(place) for name, place in _OF_NETJOULE_RADIO.items()} | {
            "netjoule_wpa_string": _wpa_string,
        }

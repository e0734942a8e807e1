# SPDX-License-Identifier: Apache-2.0
"""Whose kernel and CPU stand for a rig: the client's, wherever the campaign was controlled from."""

from __future__ import annotations

from typing import Any

from runner_fakes import HOST

from netjoule.gate.fingerprint import fingerprint

HOSTS = {"tower": {"roles": ["server"]}, "laptop": {"roles": ["client"]}}
ON_TOWER = {"host": "tower", "kernel": "6.12", "cpu_model": "big"}
ON_LAPTOP = {"host": "laptop", "kernel": "6.1.0", "cpu_model": "small"}


def kernel_and_cpu(**of_lab: Any) -> tuple[str, str]:
    found = fingerprint({"host": HOST, **of_lab})["fingerprint"]
    return found["kernel"], found["cpu_model"]


def test_on_a_rack_they_are_the_client_s() -> None:
    lab = {"topology": {"hosts": HOSTS}, "lab_hosts": [ON_TOWER, ON_LAPTOP]}
    assert kernel_and_cpu(**lab) == ("6.1.0", "small")


def test_a_client_that_an_earlier_netjoule_wrote_down_has_no_cpu_of_another() -> None:
    lab = {"topology": {"hosts": HOSTS}, "lab_hosts": [{"host": "laptop", "kernel": "6.1.0"}]}
    assert kernel_and_cpu(**lab) == ("6.1.0", "unknown")


def test_on_one_machine_they_are_its_own() -> None:
    assert kernel_and_cpu() == (HOST["kernel"], HOST["cpu_model"])

# SPDX-License-Identifier: Apache-2.0
"""The published estimate as results/reference has it, and how its digits come about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import files, programs
from netjoule.core.errors import InvalidData
from netjoule.savings.calculation import Calculation, Question, exact, mean_power_w
from netjoule.savings.rounding import Judgement, cut_to, judge

FILE = "results/reference/udp-dccp-80211n.json"
_YEAR_SLIP = "leap-year"


@dataclass(frozen=True, slots=True)
class Percent:
    """A printed percentage of Table IV and what the printed E_A make of it.

    Attributes:
        application: skype or youtube.
        printed: as printed, without the sign.
        value_percent: (E_A of UDP - E_A) / E_A of UDP of the printed E_A.
        least_percent: the least that printed E_A of half a unit less or more allow.
        greatest_percent: the greatest.
    """

    application: str
    printed: str
    value_percent: Fraction
    least_percent: Fraction
    greatest_percent: Fraction

    @property
    def words(self) -> str:
        """The percentage in a sentence."""
        rounded = cut_to(self.value_percent, self.printed, "rounded")
        found = f"{float(self.value_percent):.2f} from the printed E_A"
        if rounded == self.printed:
            return f"{found}, rounded"
        least, greatest = float(self.least_percent), float(self.greatest_percent)
        allowed = f"the E_A before rounding allow {least:.1f} to {greatest:.1f}"
        return f"{found}, which rounds to {rounded}; {allowed}"


@dataclass(frozen=True, slots=True)
class Published:
    """A publication and its estimate.

    Attributes:
        document: the file, by reference.schema.json.
        question: its minutes, bit rate and household.
    """

    document: Mapping[str, Any]
    question: Question

    @property
    def title(self) -> str:
        """Title of the publication."""
        return str(self.document["title"])

    @property
    def conditions(self) -> str:
        """What its chain counts and leaves out."""
        return str(self.document["savings"]["conditions"])

    @property
    def minuend(self) -> Mapping[str, Any]:
        """The greater E_A of its difference, a value of the file."""
        return self._value(self.document["savings"]["dea"]["of"])

    @property
    def subtrahend(self) -> Mapping[str, Any]:
        """The other E_A."""
        return self._value(self.document["savings"]["dea"]["less"])

    @property
    def chain(self) -> Calculation:
        """Its chain, computed from its inputs; no uncertainty is published."""
        return Calculation(self.question, exact(self.minuend["low"]) - exact(self.subtrahend["low"]), None)

    def results(self) -> Iterator[tuple[str, str]]:
        """Each result in the publication's digits, computed, with its unit."""
        for step, as_printed in zip(self.chain.steps(), self._printed_steps, strict=True):
            yield cut_to(step.value, as_printed["printed"], as_printed["cut"]), step.unit

    def judgements(self) -> Iterator[tuple[str, Judgement]]:
        """How each printed result stands to the exact one, with its unit."""
        values = [step.value for step in self.chain.steps()]
        printed = [step["printed"] for step in self._printed_steps]
        for place, step in enumerate(self._printed_steps):
            yield step["unit"], judge(values, printed, place, step["cut"])

    def percentages(self) -> Iterator[Percent]:
        """The percentages of Table IV against its E_A."""
        half = Fraction(1, 2)  # of the last digit: the E_A are printed as whole J/Mb
        for value in self.document["values"]:
            if value["quantity"] == "dea_percent" and value["application"]:
                udp, other = self._pair(value["application"])
                yield Percent(
                    application=value["application"],
                    printed=value["printed"],
                    value_percent=_percent(udp, other),
                    least_percent=_percent(udp - half, other + half),
                    greatest_percent=_percent(udp + half, other - half),
                )

    def slips(self) -> Iterator[dict[str, str]]:
        """Its slips with the right values; what the length of the year would change is computed."""
        for slip in self.document["slips"]:
            effect = slip["effect"]
            if slip["slip_id"] == _YEAR_SLIP:
                right = int(slip["corrected_value"])
                powers = [float(mean_power_w(self.chain, days)) / 1e6 for days in (right - 1, right)]
                mean = f"{powers[0]:.3f} MW over {right - 1} days, {powers[1]:.3f} MW over {right}"
                effect = f"{effect.rstrip('.')} ({mean})."
            told = {name: slip[name] for name in ("slip_id", "printed", "corrected", "words")}
            yield told | {"place": slip["source"]["label"], "effect": effect}

    @property
    def _printed_steps(self) -> list[dict[str, str]]:
        return list(self.document["savings"]["steps"])

    def _value(self, value_id: str) -> Mapping[str, Any]:
        return next(v for v in self.document["values"] if v["value_id"] == value_id)

    def _pair(self, application: str) -> tuple[Fraction, Fraction]:
        of = {
            v["transport"]: exact(v["low"])
            for v in self.document["values"]
            if v["quantity"] == "ea_j_per_mbit" and v["application"] == application
        }
        return of["udp"], of["dccp"]


def _percent(reference: Fraction, other: Fraction) -> Fraction:
    return 100 * (reference - other) / reference


def read() -> Published:
    """The published estimate.

    Raises:
        HostLacks: when this is not a source tree.
        InvalidData: when the file does not fit its contract.
    """
    path = programs.shipped(FILE)
    document = files.read_json(path)
    defects = contracts.document_defects("reference", document)
    if defects:
        raise InvalidData(defects[0], where=str(path), next_step="restore the file from the source tree")
    given = document["savings"]
    question = Question(*(exact(given[name]) for name in ("minutes", "bit_rate_kbps", "household_kwh")))
    return Published(document, question)

# SPDX-License-Identifier: Apache-2.0
"""What a bundle holds beside the campaign: README, citation, licence, inputs, checksums.

All of it is made of masked documents; nothing depends on the day, the user or the machine of who publishes,
but for the version of netjoule that made the bundle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

import netjoule
import netjoule_contracts as contracts
from netjoule.core import files, programs
from netjoule.core.safe_text import escaped, escaped_lines
from netjoule.core.words import counted
from netjoule.publishing import archive
from netjoule.publishing.identifiers import Kind
from netjoule.store import datapackage
from netjoule.workload.cell import value_words
from netjoule.workload.workload import Workload
from netjoule_contracts.lift.workload import newest_workload
from netjoule_contracts.types.campaign import Campaign
from netjoule_contracts.types.topology import Topology

SUMS = "SHA256SUMS"
CITATION = "CITATION.cff"
WORKLOAD, TOPOLOGY = "workload.yaml", "topology.yaml"
LICENCES = {
    "CC-BY-4.0": (
        "Creative Commons Attribution 4.0 International",
        "https://creativecommons.org/licenses/by/4.0/",
    ),
    "CC-BY-SA-4.0": (
        "Creative Commons Attribution Share Alike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/",
    ),
    "CC0-1.0": (
        "Creative Commons Zero v1.0 Universal",
        "https://creativecommons.org/publicdomain/zero/1.0/",
    ),
    "ODC-By-1.0": (
        "Open Data Commons Attribution License v1.0",
        "https://opendatacommons.org/licenses/by/1-0/",
    ),
    "ODbL-1.0": (
        "Open Data Commons Open Database License v1.0",
        "https://opendatacommons.org/licenses/odbl/1-0/",
    ),
    "PDDL-1.0": (
        "Open Data Commons Public Domain Dedication & License 1.0",
        "https://opendatacommons.org/licenses/pddl/1-0/",
    ),
}
"""Licences for data by their SPDX identifier: title and address."""

_FOLDERS = (
    ("campaign.json", "effective workload and topology, versions, seed, hosts, meter passports, sessions"),
    ("workload.yaml, topology.yaml", "what was asked and where, in the form that netjoule reads"),
    ("plan.csv", "one row per run: block, mini-block, order, arm, cell"),
    ("status.csv", "what became of each run: a row at each change, the last one of a run holds"),
    ("meters/, devices/, radio/, clocks.csv", "raw readings of the whole campaign"),
    ("runs/", "each run: its windows, both ends' flow report, intervals, events, result"),
    ("datapackage.json", "Frictionless Data Package over the tables: every column with its unit"),
    (f"{CITATION}, LICENCE.txt, {SUMS}", "how to cite, what is allowed, SHA-256 of every other file"),
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the publisher says of a bundle, and what was done to it.

    Attributes:
        licence: SPDX identifier, one of `LICENCES`; None when none is granted.
        authors: ``Family, Given`` of a person, anything else is an organisation's or a group's name.
        masked: how many values of each kind have stand-ins.
        kept: kinds that stayed.
        captures: those that are not in the bundle, by their masked names with the reason.
        others: further files of the campaign's folder that are not, by their masked names.

    Of files that are not in the bundle it holds the number alone: a name may tell whose they are.
    """

    licence: str | None
    authors: tuple[str, ...]
    masked: Mapping[Kind, int]
    kept: frozenset[Kind]
    captures: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """All files of the campaign's folder that are not in the bundle."""
        return (*self.captures, *self.others)


def absent(topology: Topology) -> Iterator[str]:
    """Files that a masked topology names for its meters, which no contract counts to a campaign."""
    for meter in topology.meters:
        if meter.device is not None and re.search(r"/|\.ya?ml$", meter.device.model):
            yield f"device model of meter {meter.meter_id}"
        if meter.calibration:
            yield f"calibration of meter {meter.meter_id}"


def write(folder: Path, runs_done: int, terms: Terms) -> Campaign:
    """Write everything but the checksums; what the bundle's campaign.json says.

    Args:
        folder: the bundle, with the campaign's files in it, masked.
        runs_done: runs that count.
        terms: what the publisher says.
    """
    document = files.read_json(folder / "campaign.json")
    campaign = files.read_document(folder / "campaign.json", Campaign)
    _write_inputs(folder, document)
    package = datapackage.describe(folder, document) | _package_terms(terms)
    readme = "\n".join(_readme(campaign, runs_done, terms))
    texts = {
        "datapackage.json": json.dumps(package, indent=2, ensure_ascii=False) + "\n",
        CITATION: _yaml(_citation(campaign, terms)),
        "LICENCE.txt": escaped_lines(_licence_text(campaign, terms)),
        "README.md": escaped_lines(readme) + "\n",
    }
    for name, text in texts.items():
        _put(folder / name, text)
    return campaign


def write_sums(folder: Path) -> None:
    """Write the checksums of all other files, as ``sha256sum -c`` reads them."""
    lines = [
        f"{archive.sha256(folder / name)}  {name}\n" for name in archive.file_names(folder) if name != SUMS
    ]
    _put(folder / SUMS, "".join(lines))


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


class _Dumper(yaml.SafeDumper):
    """Writes no aliases: netjoule's own reader takes few of them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(document: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def _write_inputs(folder: Path, document: Mapping[str, Any]) -> None:
    """Workload and topology; a factor's document, which may be longer than YAML should be, beside them."""
    workload = dict(newest_workload(document["workload"]))
    for file, name in beside().items():
        for value in workload["factors"].get(name, []):
            _put(folder / file, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
            workload["factors"] = {**workload["factors"], name: [file]}
    _put(folder / WORKLOAD, _yaml(workload))
    _put(folder / TOPOLOGY, _yaml(document["topology"]))


def beside() -> dict[str, str]:
    """Files of a bundle that a factor's document may stand in, with the factor."""
    return {f"{name}.json": name for name in contracts.factor_documents()}


def _package_terms(terms: Terms) -> dict[str, Any]:
    people = [{"title": author, "roles": ["creator"]} for author in terms.authors]
    found: dict[str, Any] = {}
    if terms.licence is not None:
        title, address = LICENCES[terms.licence]
        found["licenses"] = [{"name": terms.licence, "path": address, "title": title}]
    return found | {
        **({"contributors": people} if people else {}),
        "masked": [str(kind) for kind in terms.masked],
        "kept": sorted(terms.kept),
        "left_out": {"captures": len(terms.captures), "others": len(terms.others)},
    }


def _citation(campaign: Campaign, terms: Terms) -> dict[str, Any]:
    """Citation File Format 1.2.0. No day of release: who archives the bundle knows it."""
    versions = campaign.versions
    software = {
        "type": "software",
        "title": "netjoule",
        "authors": [{"name": "netjoule contributors"}],
        "version": str(versions.get("netjoule") or netjoule.__version__),
    }
    return {
        "cff-version": "1.2.0",
        "message": "If you use these data, please cite them as below.",
        "type": "dataset",
        "title": escaped(f"netjoule campaign {campaign.campaign}"),
        "abstract": escaped_lines(_abstract(campaign)),
        "authors": [_author(name) for name in terms.authors] or [{"name": "anonymous"}],
        **({"license": terms.licence} if terms.licence else {}),
        "keywords": ["energy per megabit", "802.11", *_workload(campaign).arms],
        "references": [software | ({"commit": versions["commit"]} if versions.get("commit") else {})],
    }


def _author(name: str) -> dict[str, str]:
    family, comma, given = name.partition(",")
    if not comma:
        return {"name": name.strip()}
    return {"family-names": family.strip(), "given-names": given.strip()}


def _workload(campaign: Campaign) -> Workload:
    return Workload.from_document(msgspec.to_builtins(campaign.workload), where="campaign.json")


def _abstract(campaign: Campaign) -> str:
    workload = _workload(campaign)
    varied = "; ".join(
        ", ".join(value_words(name, value) for value in values)
        for name, values in workload.factors.items()
        if name != workload.arm and values != ((contracts.factor(name) or {}).get("default"),)
    )
    label = contracts.loads()[workload.load]["label"]
    said = f" {workload.description}" if workload.description else ""
    return (
        f"{label}: {', '.join(workload.arms)} at {varied or 'one condition'},"
        f" {counted(workload.blocks, 'block')}; power, radio and both ends' reports as they were"
        f" read.{said} {_sources(campaign)}"
    )


def _sources(campaign: Campaign) -> str:
    """Where power and radio come from, in a sentence."""
    powers = sorted({str(meter["power_source"]) for meter in campaign.meters}) or ["unknown"]
    radio = campaign.radio_source
    sentence = f"power_source: {', '.join(powers)}; radio_source: {radio}."
    if "modelled" in powers:
        sentence += " Modelled watts hold in this model alone; they are no measurement of a device."
    if radio == "hwsim":
        sentence += " There is no energy per megabit (E_A): this radio has no air time."
    elif powers == ["unknown"]:
        sentence += " There is no energy per megabit (E_A): no power was logged."
    return sentence


def _licence_text(campaign: Campaign, terms: Terms) -> str:
    who = "; ".join(terms.authors) or "anonymous"
    data = f"The data of netjoule campaign {campaign.campaign} are published by {who}"
    if terms.licence is None:
        return f"{data}\nwithout a licence: ask who published them before you use or share them.\n"
    title, address = LICENCES[terms.licence]
    return f"{data}\nunder the licence {title} (SPDX: {terms.licence}).\nIts text: {address}\n"


def _readme(campaign: Campaign, runs_done: int, terms: Terms) -> Iterable[str]:
    yield from (f"# netjoule campaign {campaign.campaign}", "", _abstract(campaign), "")
    yield f"Runs that count: {runs_done}; status {campaign.status}; begun {campaign.created_utc}."
    yield from ("", "## Look at it again", "", "```")
    yield f"sha256sum -c {SUMS}    # nothing was changed"
    yield from ("netjoule check .           # every file fits its contract", "netjoule report .", "```", "")
    yield "The last line is the re-analysis: it makes tables/, figures/ and report.html from the raw readings"
    yield "(`netjoule analyse .` leaves the report out). It needs netjoule with its R package, nothing else."
    if campaign.imported is None:
        yield "The campaign itself again, on a testbed of yours: adapt topology.yaml, then"
        yield "`netjoule run workload.yaml --testbed topology.yaml --out again`."
        missing = "; ".join(absent(campaign.topology))
        if missing:
            yield f"Files that topology.yaml names and that are not here: {missing}."
    yield from ("", "## What is inside", "", "| file | content |", "| --- | --- |")
    yield from (f"| {name} | {content} |" for name, content in _FOLDERS)
    yield from ("", datapackage.CELLS_ARE_DATA)
    yield from ("", "## Versions", "", "| what | version |", "| --- | --- |")
    yield from (f"| {_cell(what)} | {_cell(version)} |" for what, version in _versions(campaign))
    yield from ("", "## What was masked", "", *_masking(terms), "")
    licence = "No licence was given"
    if terms.licence is not None:
        title, address = LICENCES[terms.licence]
        licence = f"{title} ({terms.licence}), {address}"
    yield from ("## Licence and citation", "", f"{licence}. Cite as {CITATION} says.")


def _versions(campaign: Campaign) -> Iterable[tuple[str, str]]:
    """Versions of everything that made the data or this bundle."""
    for program, version in campaign.versions.items():
        yield program, version or "absent"
    host = campaign.host
    yield "controller", f"{host.distribution}, kernel {host.kernel}, {host.machine}, {host.cpu_model}"
    for entry in campaign.lab_hosts or ():
        since = f" (from session {entry.session})" if entry.session > 1 else ""
        model = f", {entry.cpu_model}" if entry.cpu_model else ""
        yield f"host {entry.host}{since}", f"kernel {entry.kernel}, {entry.machine}{model}"
    for meter in campaign.meters:
        firmware = f", firmware {meter['firmware']}" if meter["firmware"] else ""
        emulated = ", emulated" if meter["emulated"] else ""
        yield f"meter {meter['meter_id']}", f"{meter['make']} {meter['model']}{firmware}{emulated}"
    if campaign.imported is not None:
        yield campaign.imported.generator, ", ".join(campaign.imported.generator_versions) or "unknown"
    commit = programs.commit(programs.checkout())
    yield "bundle made by", f"netjoule {netjoule.__version__}" + (f", commit {commit}" if commit else "")
    yield "contracts", f"version {campaign.schema_version}"


def _masking(terms: Terms) -> Iterable[str]:
    counted = ", ".join(f"{kind} ({number})" for kind, number in terms.masked.items())
    yield f"Masked, with the number of values: {counted or 'nothing'}." + (
        f" Kept: {', '.join(sorted(terms.kept))}." if terms.kept else ""
    )
    yield (
        "A value has the same stand-in wherever it is masked; stand-ins are numbered by first appearance and"
        " say nothing of the value. Addresses of one network stay in one network. References to secrets are"
        " numbered, too."
    )
    if terms.left_out:
        yield ""
        yield f"Not in this bundle: captures {len(terms.captures)}, other files {len(terms.others)}."


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")

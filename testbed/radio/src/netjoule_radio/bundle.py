# SPDX-License-Identifier: Apache-2.0
"""The agent as one file that runs on a host with nothing but Python: `python3 netjoule-radio.pyz ...`.

Equal sources give equal bytes, so that a host which has the file needs no new copy.
"""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_MAIN = "from netjoule_radio.cli import main\n\nmain()\n"
_ONE_SNAPSHOT = """\
import base64, runpy, sys, tempfile
sys.argv[1:] = {options!r}
with tempfile.NamedTemporaryFile(suffix=".pyz") as file:
    file.write(base64.b64decode({zipapp!r}))
    file.flush()
    runpy.run_path(file.name, run_name="__main__")
"""


def agent_zipapp() -> bytes:
    """The whole package as a zipapp."""
    folder = Path(__file__).parent
    files = {f"netjoule_radio/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    buffer = io.BytesIO()
    buffer.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(buffer, "a") as archive:
        for name, content in {"__main__.py": _MAIN.encode(), **files}.items():
            entry = zipfile.ZipInfo(name, date_time=_LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def one_snapshot(interface: str, source: str = "auto") -> str:
    """A program for `python3 -`: the agent reads a radio once; nothing of it stays on the host."""
    options = ["--interface", interface, "--source", source, "--once"]
    return _ONE_SNAPSHOT.format(options=options, zipapp=base64.b64encode(agent_zipapp()).decode())

# SPDX-License-Identifier: Apache-2.0
"""Keeps what Python compiles out of zip files: in PYTHONPATH of the tests' hosts.

Each task of Ansible sends its module and the libraries of all modules as sources in a zip; most of a task's
time is their compilation.
"""

import importlib.util
import io
import marshal
import os
import zipimport
from types import CodeType

FOLDER = os.environ.get("NETJOULE_TEST_COMPILED", "")
compile_source = zipimport._compile_source


def kept(name: str, source: bytes) -> CodeType:
    """The code of a module: as it was compiled before, or compiled now and kept."""
    file = f"{FOLDER}/{importlib.util.source_hash(source).hex()}"
    try:
        with io.open_code(file) as found:
            return marshal.loads(found.read())
    except FileNotFoundError:
        code = compile_source(name, source)
    with io.FileIO(f"{file}.{os.getpid()}", "w") as own:
        own.write(marshal.dumps(code))
    os.rename(own.name, file)  # noqa: PTH104  pathlib takes longer to load than all this
    return code


if FOLDER:
    zipimport._compile_source = kept

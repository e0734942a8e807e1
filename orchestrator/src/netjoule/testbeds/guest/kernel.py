# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel: Debian's package, downloaded once and unpacked, never installed."""

from __future__ import annotations

import fcntl
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netjoule.core import programs
from netjoule.core.errors import HostLacks, file_errors
from netjoule.testbeds.guest.tools import tool

META_PACKAGE = "linux-image-amd64"
_NEEDED_BYTES = 700_000_000
_TRIES = 3
_DOWNLOAD_S = 900
_UNPACK_S = 300
_FIRST_WITHOUT_DCCP = (6, 16)
_PLAIN_IMAGE = "vmlinux"
_XZ_MAGIC = b"\xfd7zXZ\0"
_ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel.

    Attributes:
        package: Debian package name.
        version: Debian package version.
        release: what ``uname -r`` says.
        image: the bootable file.
        modules: the folder that belongs at /lib/modules/RELEASE.
    """

    package: str
    version: str
    release: str
    image: Path
    modules: Path

    @property
    def has_dccp(self) -> bool:
        """Linux removed DCCP in 6.16."""
        return _numbers(self.release)[:2] < _FIRST_WITHOUT_DCCP


def store() -> Path:
    """Where kernels are kept: .setup/guest of the source tree, else the user's cache.

    ``NETJOULE_GUEST_DIR`` names another place.
    """
    named = os.environ.get("NETJOULE_GUEST_DIR")
    if named:
        return Path(named).resolve()
    root = programs.checkout()
    if root is not None:
        place = root / ".setup" / "guest"
        nearest = next(folder for folder in (place, *place.parents) if folder.exists())
        if newest(place) is not None or os.access(nearest, os.W_OK):
            return place
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netjoule" / "guest"


def cached() -> Kernel | None:
    """The newest kernel that is here already."""
    return newest(store())


def newest(place: Path) -> Kernel | None:
    """The kernel with the highest version in a store; unfinished or damaged entries do not count."""
    found = [kernel for record in place.glob("*/kernel.json") if (kernel := _read(record)) is not None]
    return max(found, key=lambda kernel: _numbers(kernel.version), default=None)


def _read(record: Path) -> Kernel | None:
    folder = record.parent
    try:
        words = json.loads(record.read_text())
        release = words["release"]
        plain, packed = (folder / "boot" / name for name in (_PLAIN_IMAGE, f"vmlinuz-{release}"))
        image = plain if plain.is_file() else packed
        kernel = Kernel(**words, image=image, modules=folder / "lib" / "modules" / release)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kernel if kernel.image.is_file() and (kernel.modules / "modules.dep").is_file() else None


def plain_image(packed: bytes) -> bytes | None:
    """The ELF kernel inside a bzImage that is packed with xz, as Debian's is; None for anything else.

    Under software emulation the guest would take 6 s to unpack itself; QEMU boots the ELF file as well
    (x86/HVM direct boot ABI, "PVH").
    """
    at = packed.find(_XZ_MAGIC)
    if at < 0:
        return None
    try:
        plain = lzma.LZMADecompressor().decompress(packed[at:])
    except lzma.LZMAError:
        return None
    return plain if plain.startswith(_ELF_MAGIC) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def kernel_package(depends: str) -> str:
    """The package that ``apt-cache depends linux-image-amd64`` points at.

    Raises:
        HostLacks: when it names none.
    """
    names: Iterable[str] = re.findall(r"^\s*\|?Depends:\s*(linux-image-\S+)", depends, re.MULTILINE)
    for name in names:
        return name
    raise HostLacks(
        f"apt knows no package {META_PACKAGE}",
        next_step="run apt-get update; on other systems than Debian see testbed/guest/README.md",
    )


def ensure(say: Callable[[str], None]) -> Kernel:
    """The kernel, downloaded and unpacked when it is not here yet (70 MB, once).

    Args:
        say: told in one line what takes time.

    Raises:
        HostLacks: no apt, no such package, no network, no space, no depmod.
    """
    place = store()
    with file_errors("make", place):
        place.mkdir(parents=True, exist_ok=True)
    with _lock(place):
        kernel = newest(place)
        return kernel if kernel is not None else _fetch(place, say)


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    """One download at a time; a store that is not ours to write is only read."""
    try:
        handle = (place / "lock").open("w")
    except PermissionError:
        yield
        return
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(place: Path, say: Callable[[str], None]) -> Kernel:
    for program, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("depmod", "kmod")):
        tool(program, package)
    free = shutil.disk_usage(place).free
    if free < _NEEDED_BYTES:
        raise HostLacks(
            f"{place}: {free // 10**6} MB free, the guest's kernel needs {_NEEDED_BYTES // 10**6} MB",
            next_step="free some space, or name another folder in NETJOULE_GUEST_DIR",
        )
    depends = _run([tool("apt-cache", "apt"), "depends", META_PACKAGE], place, 60)
    package = kernel_package(depends.stdout)
    say(f"guest: downloading Debian's {package} (70 MB, once) into {place}")
    for unfinished in place.glob("new-*"):  # of a run that was killed; the lock is ours
        shutil.rmtree(unfinished, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=place) as scratch:
        folder = Path(scratch)
        archive = _download(package, folder, say)
        say(f"guest: unpacking {archive.name}")
        return _unpack(package, archive, folder, place)


def _download(package: str, folder: Path, say: Callable[[str], None]) -> Path:
    """``apt-get download`` with patience: mirrors are slow, lists get stale."""
    apt = [tool("apt-get", "apt"), "-q"]
    command = [*apt, "-o", "Acquire::Retries=3", "download", package]
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(5 * attempt)
            say(f"guest: trying again ({problem})")
            if os.geteuid() == 0:
                _run([*apt, "-o", "DPkg::Lock::Timeout=600", "update"], folder, _DOWNLOAD_S)
        answer = _run(command, folder, _DOWNLOAD_S)
        archives = sorted(folder.glob("*.deb"))
        if answer.returncode == 0 and archives:
            return archives[0]
        lines = [line for line in answer.stderr.splitlines() if line.startswith("E:")] or ["apt-get failed"]
        problem = lines[0]
    raise HostLacks(
        f"cannot download {package}: {problem}", next_step="check the network, apt-get update, and try again"
    )


def _unpack(package: str, archive: Path, folder: Path, place: Path) -> Kernel:
    version = _run([tool("dpkg-deb", "dpkg"), "-f", str(archive), "Version"], folder, 60).stdout.strip()
    tree = folder / "tree"
    answer = _run([tool("dpkg-deb", "dpkg"), "-x", str(archive), str(tree)], folder, _UNPACK_S)
    archive.unlink()
    releases = sorted(path.name for path in (tree / "lib" / "modules").glob("*"))
    if answer.returncode != 0 or not releases:
        said = (answer.stderr.strip().splitlines() or ["no modules in it"])[-1]
        raise HostLacks(f"cannot unpack {archive.name}: {said}", next_step="free some space and try again")
    _run([tool("depmod", "kmod"), "-b", str(tree), releases[0]], folder, _UNPACK_S)
    plain = plain_image((tree / "boot" / f"vmlinuz-{releases[0]}").read_bytes())
    if plain is not None:
        (tree / "boot" / _PLAIN_IMAGE).write_bytes(plain)
    record = {"package": package, "version": version, "release": releases[0]}
    (tree / "kernel.json").write_text(json.dumps(record) + "\n")
    tree.chmod(0o755)
    final = place / f"{package}_{version.replace(':', '%')}"
    shutil.rmtree(final, ignore_errors=True)
    tree.rename(final)
    kernel = _read(final / "kernel.json")
    if kernel is None:
        raise HostLacks(f"{package} {version} holds no bootable kernel", next_step="report it")
    return kernel


def _run(command: list[str], cwd: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return programs.said_by(command, cwd=cwd, timeout=limit_s, env=os.environ | {"LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"E: nothing came within {limit_s:.0f} s")

# SPDX-License-Identifier: Apache-2.0
"""The small archive that the guest's kernel starts from: busybox, two scripts, a few modules, the job."""

from __future__ import annotations

import lzma
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from netjoule.core.errors import HostLacks

BOOT_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
"""What stands between power-on and the host's root."""


def archive(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A cpio archive in the kernel's "newc" format (kernel documentation, early-userspace/buffer-format).

    Args:
        files: path without leading slash to content and permission bits; folders are made as needed.
    """
    folders = sorted({str(parent) for name in files for parent in Path(name).parents if str(parent) != "."})
    parts = [_entry(number, name, b"", stat.S_IFDIR | 0o755) for number, name in enumerate(folders, 1)]
    for number, (name, (content, mode)) in enumerate(files.items(), len(folders) + 1):
        parts.append(_entry(number, name, content, stat.S_IFREG | mode))
    # Without /dev/console the kernel gives init no standard streams.
    parts.append(_entry(0xFFFF0, "dev", b"", stat.S_IFDIR | 0o755))
    parts.append(_entry(0xFFFF1, "dev/console", b"", stat.S_IFCHR | 0o600, device=(5, 1)))
    parts.append(_entry(0, "TRAILER!!!", b"", 0))
    return b"".join(parts)


def _entry(inode: int, name: str, content: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> bytes:
    word = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    # ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (inode, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(word), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + word) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def load_order(modules_dep: str, wanted: Iterable[str]) -> list[str]:
    """Files to load, dependencies first, for modules named as ``modprobe`` names them.

    Args:
        modules_dep: text of modules.dep (``path: needed needed``).
        wanted: module names; one that is not listed is built into the kernel.
    """
    needs: dict[str, list[str]] = {}
    by_name: dict[str, str] = {}
    for line in modules_dep.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
        by_name[Path(path).name.split(".ko")[0].replace("-", "_")] = path
    order: list[str] = []
    for name in wanted:
        path = by_name.get(name.replace("-", "_"), "")
        # modules.dep lists what a module needs with the deepest need last.
        order += [file for file in (*reversed(needs.get(path, [])), path) if file and file not in order]
    return order


def module_bytes(path: Path) -> bytes:
    """A module as insmod wants it, unpacked when the distribution compresses modules.

    Raises:
        HostLacks: for a compression that this Python cannot undo.
    """
    data = path.read_bytes()
    if path.suffix == ".ko":
        return data
    if path.suffix == ".xz":
        return lzma.decompress(data)
    raise HostLacks(f"cannot unpack the kernel module {path.name}", next_step="use Debian 12's kernel")

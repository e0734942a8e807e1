# SPDX-License-Identifier: Apache-2.0
"""Does KVM work here? /dev/kvm may be there and still hang a guest: a timed trial boot decides.

It is made once per boot of the host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from netjoule.core.errors import RunFailed
from netjoule.testbeds.guest import kernel as kernels
from netjoule.testbeds.guest.boot import Limits, Outcome, boot
from netjoule.testbeds.guest.kernel import Kernel
from netjoule.testbeds.guest.machine import Job, Machine

_DEVICE = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LIMIT_S = 8.0
"""A guest is up within about 2 s under KVM."""
_MEMORY_MIB = 256


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether KVM boots a guest, and what was seen."""

    usable: bool
    seen: str


def verdict(kernel: Kernel, say: Callable[[str], None]) -> Verdict:
    """Try, or remember what was seen since the host's boot."""
    blocked = _device_problem()
    if blocked:
        return Verdict(False, blocked)
    known = remembered(kernel)
    if known is not None:
        return known
    say(f"guest: trying KVM (at most {_LIMIT_S:.0f} s, once per boot of this host)")
    found = judge(lambda: _trial(kernel))
    _remember(kernel, found)
    return found


def judge(attempt: Callable[[], Outcome]) -> Verdict:
    """What a trial boot shows."""
    try:
        outcome = attempt()
    except RunFailed as error:
        return Verdict(False, f"a trial boot with KVM failed: {error.what}")
    if outcome.exit_code != 0:
        return Verdict(False, f"'true' ended with {outcome.exit_code} in a trial boot with KVM")
    return Verdict(True, f"a trial boot with KVM took {outcome.boot_s:.1f} s")


def _trial(kernel: Kernel) -> Outcome:
    job = Job(command=("/run/netjoule/busybox", "true"), cwd=Path("/"))
    return boot(
        kernel,
        Machine("kvm", _MEMORY_MIB, 1),
        job,
        dict.fromkeys(("out", "err"), lambda _data: None),
        Limits(_LIMIT_S, _LIMIT_S),
    )


def _device_problem() -> str:
    if not _DEVICE.exists():
        return f"no {_DEVICE}"
    return "" if os.access(_DEVICE, os.R_OK | os.W_OK) else f"{_DEVICE}: permission denied"


def remembered(kernel: Kernel) -> Verdict | None:
    """The verdict of an earlier trial since the host's boot, of this user, with this kernel."""
    try:
        words = json.loads(_record().read_text())
        if words["key"] == _key(kernel):
            return Verdict(bool(words["usable"]), str(words["seen"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _remember(kernel: Kernel, found: Verdict) -> None:
    with suppress(OSError):  # a store that is not ours: tried again next time
        place = _record()
        scratch = place.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps({"key": _key(kernel), **asdict(found)}) + "\n")
        scratch.rename(place)


def _record() -> Path:
    return kernels.store() / f"kvm-trial-{os.geteuid()}.json"


def _key(kernel: Kernel) -> str:
    return f"{_BOOT_ID.read_text().strip()} {kernel.version}"

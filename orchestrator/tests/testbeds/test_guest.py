# SPDX-License-Identifier: Apache-2.0
"""The guest without booting it: what QEMU is told, which kernel is taken, how output ends."""

import json
import lzma
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from golden_sentences import raises, same_sentence
from hypothesis import given
from hypothesis import strategies as st

from netjoule.cli.app import run_command
from netjoule.core.errors import HostLacks, UsageError
from netjoule.testbeds.guest import initramfs, kernel, machine, tools, trial
from netjoule.testbeds.guest import run as running
from netjoule.testbeds.guest.boot import BootFailed, Outcome
from netjoule.testbeds.guest.machine import Job, Machine
from netjoule.testbeds.guest.stream import MarkedStream

PORTS = {"console": 5, "control": 6, "out": 7, "err": 8}


def qemu(hardware, shared=()):
    return machine.qemu_arguments(hardware, Path("/k/vmlinux"), 9, PORTS, shared)


def after(words, option):
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_software_emulation_uses_all_cores_and_no_network():
    words = qemu(Machine("tcg", 1024, 2))
    assert after(words, "-accel") == ["tcg,thread=multi"]
    assert after(words, "-smp") == ["2"]
    assert after(words, "-m") == ["1024M"]
    assert after(words, "-nic") == ["none"]
    assert not any("virtio-net" in word for word in words)
    assert "-icount" not in words


def test_virtual_time_counts_instructions_on_one_thread():
    words = qemu(Machine("tcg", 1024, 1, virtual_time=True))
    assert after(words, "-accel") == ["tcg,thread=single"]
    assert after(words, "-icount") == ["shift=1,sleep=on,align=off"]


def test_kvm_uses_the_processor_as_it_is():
    words = qemu(Machine("kvm", 512, 1))
    assert (after(words, "-accel"), after(words, "-cpu")) == (["kvm"], ["host"])


def test_only_shared_folders_are_writable():
    exports = after(qemu(Machine("tcg", 1024, 2), (Path("/a,b"), Path("/c"))), "-fsdev")
    assert [("readonly=on" in word) for word in exports] == [True, False, False]
    assert "path=/," in exports[0]
    assert "path=/a,,b," in exports[1]


def test_ports_and_initramfs_are_open_files():
    words = qemu(Machine("tcg", 1024, 2))
    assert after(words, "-initrd") == ["/proc/self/fd/9"]
    assert set(after(words, "-chardev")) == {f"socket,id={name},fd={fd}" for name, fd in PORTS.items()}


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_any_argument_reaches_the_command_unchanged(arguments):
    job = Job(("printf", "%s\\0", *arguments), Path("/"), (), {"NETJOULE_X": arguments[0]})
    ended = subprocess.run(["sh", "-c", machine.command_script(job)], capture_output=True, check=True)
    assert ended.stdout == b"".join(word.encode() + b"\0" for word in arguments)


def test_the_command_gets_system_folders_and_our_variables_only():
    host = {"PATH": "/usr/bin:/x", "SECRET": "s", "NETJOULE_BIN_DIR": "/b", "LANG": "C.UTF-8"}
    found = machine.guest_environment(host)
    assert found["PATH"] == "/usr/bin:/x:/usr/local/sbin:/usr/sbin:/sbin"
    assert (found["NETJOULE_BIN_DIR"], found["LANG"]) == ("/b", "C.UTF-8")
    assert "SECRET" not in found


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/nonexistent/folder"])
def test_folders_that_cannot_be_shared(folder):
    with pytest.raises(UsageError):
        machine.check_shared([Path(folder)])


MODULES_DEP = """kernel/a.ko: kernel/b.ko kernel/c.ko
kernel/b.ko: kernel/c.ko
kernel/c.ko:
kernel/d-e.ko.xz: kernel/b.ko kernel/c.ko
"""


def test_modules_load_after_what_they_need():
    assert initramfs.load_order(MODULES_DEP, ["a", "d_e"]) == [
        "kernel/c.ko",
        "kernel/b.ko",
        "kernel/a.ko",
        "kernel/d-e.ko.xz",
    ]


def test_a_built_in_module_needs_no_loading():
    assert initramfs.load_order(MODULES_DEP, ["ext4"]) == []


def test_a_compressed_module_is_unpacked(tmp_path):
    (tmp_path / "m.ko.xz").write_bytes(lzma.compress(b"ELF"))
    assert initramfs.module_bytes(tmp_path / "m.ko.xz") == b"ELF"
    (tmp_path / "m.ko.zst").write_bytes(b"")
    with pytest.raises(HostLacks):
        initramfs.module_bytes(tmp_path / "m.ko.zst")


@pytest.mark.skipif(shutil.which("busybox") is None, reason="no busybox to read the archive with")
def test_the_archive_is_one_that_others_read(tmp_path):
    made = initramfs.archive({"init": (b"#!x", 0o755), "job/modules/order": (b"one\n", 0o600)})
    subprocess.run(
        ["busybox", "cpio", "-id", "init", "job/modules/order"], input=made, cwd=tmp_path, check=True
    )
    assert (tmp_path / "job/modules/order").read_bytes() == b"one\n"
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755


def entry(place, version, release="6.1.0-9-amd64", whole=True):
    folder = place / f"linux_{version}"
    (folder / "boot").mkdir(parents=True)
    (folder / "boot" / f"vmlinuz-{release}").write_bytes(b"")
    modules = folder / "lib" / "modules" / release
    modules.mkdir(parents=True)
    if whole:
        (modules / "modules.dep").write_text("")
    words = {"package": "linux", "version": version, "release": release}
    (folder / "kernel.json").write_text(json.dumps(words))
    return folder


def test_the_newest_whole_kernel_is_taken(tmp_path):
    entry(tmp_path, "6.1.99-1")
    entry(tmp_path, "6.1.176-1")
    entry(tmp_path, "6.1.192-2", whole=False)
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "kernel.json").write_text("{")
    found = kernel.newest(tmp_path)
    assert found is not None
    assert found.version == "6.1.176-1"
    assert found.image.name == "vmlinuz-6.1.0-9-amd64"


def test_an_unpacked_image_is_preferred(tmp_path):
    (entry(tmp_path, "6.1.1-1") / "boot" / "vmlinux").write_bytes(b"")
    found = kernel.newest(tmp_path)
    assert found is not None
    assert found.image.name == "vmlinux"


@pytest.mark.parametrize(
    ("release", "there"), [("6.1.0-9-amd64", True), ("6.15.2", True), ("6.16-rc1", False)]
)
def test_dccp_ends_with_linux_6_16(release, there):
    assert kernel.Kernel("p", "v", release, Path(), Path()).has_dccp is there


def test_only_an_elf_kernel_packed_with_xz_is_unpacked():
    assert kernel.plain_image(b"setup" + lzma.compress(b"\x7fELF...") + b"tail") == b"\x7fELF..."
    assert kernel.plain_image(b"setup" + lzma.compress(b"other")) is None
    assert kernel.plain_image(b"\xfd7zXZ\0 damaged") is None
    assert kernel.plain_image(b"gzip") is None


def test_the_package_is_what_debian_points_at():
    text = (
        "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n    linux-image-6.1.0-56-amd64-unsigned\n"
    )
    assert kernel.kernel_package(text) == "linux-image-6.1.0-56-amd64"
    with raises(HostLacks):
        kernel.kernel_package("N: Unable to locate package")


def no_download(tmp_path, monkeypatch, **programs):
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("apt-get", "apt-cache", "dpkg-deb", "depmod"):
        body = programs.get(name.replace("-", "_"), "exit 0")
        if body is not None:
            (path / name).write_text(f"#!/bin/sh\n{body}\n")
            (path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("NETJOULE_GUEST_DIR", str(tmp_path / "store"))
    monkeypatch.setattr(kernel.time, "sleep", lambda _s: None)
    monkeypatch.setattr(tools, "_SBIN", "")
    with pytest.raises(HostLacks) as caught:
        kernel.ensure(lambda _line: None)
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["lock"]
    return caught.value


DEPENDS = "echo ' Depends: linux-image-6.1.0-1-amd64'"


def test_no_depmod_names_the_package(tmp_path, monkeypatch):
    assert "install the package kmod" in str(no_download(tmp_path, monkeypatch, depmod=None))


def test_a_mirror_that_fails_is_tried_three_times(tmp_path, monkeypatch):
    (tmp_path / "store" / "new-of-a-killed-run").mkdir(parents=True)
    note = tmp_path / "tries"
    error = no_download(
        tmp_path,
        monkeypatch,
        apt_cache=DEPENDS,
        apt_get=f'case "$*" in *download*) echo x >>{note}; echo "E: no route" >&2; exit 100;; esac',
    )
    assert str(error).startswith("cannot download linux-image-6.1.0-1-amd64: E: no route")
    assert len(note.read_text().split()) == 3


def test_a_full_disk_is_said_before_the_download(tmp_path, monkeypatch):
    full = shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6)  # type: ignore[attr-defined]
    monkeypatch.setattr(kernel.shutil, "disk_usage", lambda _place: full)
    assert "1 MB free, the guest's kernel needs 700 MB" in str(no_download(tmp_path, monkeypatch))


def test_an_archive_that_cannot_be_unpacked_leaves_nothing(tmp_path, monkeypatch):
    error = no_download(
        tmp_path,
        monkeypatch,
        apt_cache=DEPENDS,
        apt_get='case "$*" in *download*) echo >x.deb;; esac',
        dpkg_deb="echo 'dpkg-deb: error: No space left on device' >&2; exit 2",
    )
    assert "No space left on device" in str(error)


def test_a_trial_that_answers_is_usable():
    found = trial.judge(lambda: Outcome(0, 1.25, 0.1, "6.1"))
    assert (found.usable, found.seen) == (True, "a trial boot with KVM took 1.2 s")


def test_a_trial_that_hangs_or_fails_is_not():
    def hang():
        raise BootFailed("the guest was not up after 8 s")

    assert trial.judge(hang) == trial.Verdict(
        False, "a trial boot with KVM failed: the guest was not up after 8 s"
    )
    assert not trial.judge(lambda: Outcome(1, 1.0, 0.1, "6.1")).usable


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """A host whose /dev/kvm opens; the list grows by each trial."""
    attempts = []
    monkeypatch.setenv("NETJOULE_GUEST_DIR", str(tmp_path))
    monkeypatch.setattr(trial, "_DEVICE", tmp_path)
    monkeypatch.setattr(trial, "_BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("first\n")
    monkeypatch.setattr(trial, "_trial", lambda _kernel: attempts.append(1) or Outcome(0, 1.0, 0.1, "6.1"))
    return attempts


SOME = kernel.Kernel("linux", "6.1.1-1", "6.1.0-1-amd64", Path("/k"), Path("/m"))


def test_one_trial_per_boot_of_the_host(tried, tmp_path):
    assert trial.verdict(SOME, lambda _line: None) == trial.verdict(SOME, lambda _line: None)
    assert len(tried) == 1
    (tmp_path / "boot_id").write_text("second\n")
    assert trial.verdict(SOME, lambda _line: None).usable
    assert len(tried) == 2


def test_a_damaged_record_is_tried_again(tried, tmp_path):
    (tmp_path / f"kvm-trial-{os.geteuid()}.json").write_text("[]")
    assert trial.verdict(SOME, lambda _line: None).usable


def test_no_device_needs_no_trial(tried, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "_DEVICE", tmp_path / "none")
    assert not trial.verdict(SOME, lambda _line: None).usable
    assert tried == []


@given(st.binary(max_size=200), st.lists(st.integers(1, 40)), st.binary(max_size=20))
def test_a_stream_ends_at_its_mark_however_it_is_cut(content, cuts, rest):
    mark = b"0123456789abcdef"
    taken = []
    stream = MarkedStream(mark, taken.append)
    data = content + mark + rest
    for cut in [*cuts, len(data)]:
        stream.feed(data[:cut])
        data = data[cut:]
    expected, _, _ = (content + mark).partition(mark)
    assert b"".join(taken) == expected
    assert stream.ended


def test_bytes_that_cannot_be_the_mark_are_not_held_back():
    taken = []
    MarkedStream(b"abc", taken.append).feed(b"xyzab")
    assert taken == [b"xyz"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--", "no-such-program-x"], 127, "no program no-such-program-x"),
        (["--memory", "10", "--", "true"], 2, "needs 192 MiB or more"),
        (["--timeout", "0", "--", "true"], 2, "--timeout must be more than 0 s"),
        (["--rw", "/no/such/folder", "--", "true"], 2, "--rw /no/such/folder: no such folder"),
        (["--accel", "fast", "--", "true"], 2, "fast"),
        (["--memory", "300"], 2, "CMD..."),
    ],
)
def test_bad_input_is_one_sentence(capsys, words, code, sentence):
    assert run_command(["guest", "run", *words]) == code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert sentence in said[0]


def test_no_qemu_names_the_package(capsys, monkeypatch, tmp_path):
    (tmp_path / "true").write_text("#!/bin/sh\n")
    (tmp_path / "true").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "_SBIN", "")
    assert run_command(["guest", "run", "--", "true"]) == 3
    same_sentence(capsys.readouterr().err)


def test_the_commands_exit_code_and_flags_are_its_own(monkeypatch):
    seen = []

    def fake(request, *_sinks):
        seen.append(request)
        return Outcome(42, 1.0, 1.0, "6.1")

    monkeypatch.setattr("netjoule.testbeds.guest.run.run", fake)
    assert run_command(["guest", "run", "--timeout", "9", "--", "ls", "-v", "--", "--json"]) == 42
    assert list(seen[0].command) == ["ls", "-v", "--", "--json"]
    assert (seen[0].timeout_s, seen[0].memory_mib) == (9.0, running.DEFAULT_MEMORY_MIB)

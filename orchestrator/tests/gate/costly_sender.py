# SPDX-License-Identifier: Apache-2.0
"""A sender that costs more than the real one, on purpose: the product has no switch for it.

`made(folder)` compiles a library that the dynamic linker puts before libc's (LD_PRELOAD, ld.so(8)): each
message that netjoule-traffic hands to the kernel then takes `ns_per_message` more of CPU time, in the same
thread. As an arm of a gate: `--head LD_PRELOAD=LIBRARY`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

NS_OF_5_PERCENT = 850
"""Of E at 64 B and 12 Mb/s (23,438 messages a second) on the testbed of one CPU: 4.0 W, of which 0.2 W."""

_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <time.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static void spend(long messages) {
    long long until = now_ns() + messages * NS_PER_MESSAGE;
    while (now_ns() < until) {}
}
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags) {
    REAL(sendmmsg);
    int sent = real(fd, messages, count, flags);
    if (sent > 0) spend(sent);
    return sent;
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(sendmsg);
    spend(1);
    return real(fd, message, flags);
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t n) {
    REAL(sendto);
    spend(1);
    return real(fd, data, size, flags, to, n);
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(send);
    spend(1);
    return real(fd, data, size, flags);
}
"""


def made(folder: Path, ns_per_message: int = NS_OF_5_PERCENT) -> Path:
    """Compile the library into a folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "costly.c", folder / "costly.so"
    source.write_text(_LIBRARY)
    words = ["cc", "-shared", "-fPIC", "-O1", f"-DNS_PER_MESSAGE={ns_per_message}LL"]
    subprocess.run([*words, "-o", str(library), str(source)], check=True)
    return library

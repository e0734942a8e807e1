# SPDX-License-Identifier: Apache-2.0
"""A folder on a host that one program and its children alone see, and that goes with the last of them.

It is a tmpfs, mounted in a mount namespace of the program's own. The program is the first process of a PID
namespace, so that whatever ends it ends all that it has started: nothing stays, not after SIGKILL either.
"""

from __future__ import annotations

from collections.abc import Sequence

FOLDER = "/var/local"
"""Its path, of every such program. Every Debian has it, and no program or library lies in it."""

# $0 is the size, $1 a line of /etc/hosts, then comes the program. An ordinary user is root of a namespace.
_ENTER = """\
flags='--mount --pid --fork --kill-child'
[ "$(id -u)" = 0 ] || flags="--user --map-root-user $flags"
exec unshare $flags -- sh -ec "$NETJOULE_INSIDE" "$0" "$@"
"""
_INSIDE = f"""\
mount -t tmpfs -o "mode=0755,size=$0" netjoule {FOLDER}
if [ -n "$1" ]; then
  {{ cat /etc/hosts; printf '\\n%s\\n' "$1"; }} >{FOLDER}/hosts
  mount --bind {FOLDER}/hosts /etc/hosts
fi
shift
unset NETJOULE_INSIDE
exec "$@"
"""


def within(size_bytes: int, argv: Sequence[str], *, host: str = "") -> list[str]:
    """A program with its arguments, started in such a folder of at most this size.

    `host`: an address and its name, which it and its children then know.
    """
    return ["env", f"NETJOULE_INSIDE={_INSIDE}", "sh", "-c", _ENTER, str(size_bytes), host, *argv]

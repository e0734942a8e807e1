#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the newest commit that changed what the Rust programs are built from, with -dirty when files differ from it.
# Prints nothing outside of a git checkout. scripts/dist.sh writes it beside what it builds, netjoule compares.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SOURCES=(.cargo Cargo.toml Cargo.lock traffic protocols testbed/link ':!protocols/contracts')

[ -e .git ] || exit 0
commit=$(git log -1 --format=%h --abbrev=12 -- "${SOURCES[@]}")
[ -z "$(git status --porcelain -- "${SOURCES[@]}")" ] || commit+=-dirty
echo "$commit"

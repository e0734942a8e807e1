#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static netjoule-traffic, netjoule-transfer and netjoule-link for hosts of a lab: dist/<machine>/, machine as `uname -m`
# names it there, and in the file `commit` beside them what they are built from.
#   scripts/dist.sh [MACHINE...]     default: x86_64 aarch64
# Needs per machine Rust's target MACHINE-unknown-linux-gnu, a C++ compiler for it and its static C library; what is
# missing is said with the command that brings it, the other machine is built all the same, and the exit code is 3.
# Names are not resolved by a static glibc program without the host's own libraries: give flows addresses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PROGRAMS=(netjoule-traffic netjoule-transfer netjoule-link)

say() { printf 'dist: %s\n' "$*"; }

lacks() { # machine -> what is missing, with what brings it; nothing when all is there
  local machine=$1 target=$1-unknown-linux-gnu compiler
  [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ] || {
    echo "Rust's target $target ('rustup target add $target')"
    return
  }
  compiler=$(compiler_for "$machine" g++)
  command -v "$compiler" >/dev/null || {
    echo "the compiler $compiler ('apt-get install $([ "$machine" = "$(uname -m)" ] && echo g++ || echo "g++-${machine/_/-}-linux-gnu")')"
    return
  }
  [ "$("$compiler" -print-file-name=libc.a)" != libc.a ] || echo "a static C library for $machine (libc6-dev)"
}

compiler_for() { # machine, gcc or g++
  if [ "$1" = "$(uname -m)" ]; then echo "$2"; else echo "$1-linux-gnu-$2"; fi
}

build() { # machine; the caller looks at how it ends, so that set -e is off in here
  local machine=$1 target=$1-unknown-linux-gnu gcc gxx name upper program commit
  commit=$(scripts/rust-commit.sh) || return 1
  gcc=$(compiler_for "$machine" gcc) gxx=$(compiler_for "$machine" g++)
  name=${target//-/_} upper=$(tr a-z- A-Z_ <<<"$target")
  say "$machine: building (BoringSSL inside: some minutes when new)"
  # Optimised across crates (QUIC takes 13 % less CPU), which the many programs of the tests would take minutes for.
  env "CC_$name=$gcc" "CXX_$name=$gxx" "CARGO_TARGET_${upper}_LINKER=$gcc" CARGO_PROFILE_RELEASE_LTO=thin \
    "CARGO_TARGET_${upper}_RUSTFLAGS=-C target-feature=+crt-static" \
    cargo build --quiet --release --locked --target "$target" --target-dir target/dist "${PROGRAMS[@]/#/--package=}" || return 1
  mkdir -p "dist/$machine"
  rm -f "dist/$machine/commit"
  for program in "${PROGRAMS[@]}"; do
    "$(compiler_for "$machine" gcc | sed 's/gcc$/strip/')" -o "dist/$machine/$program" "target/dist/$target/release/$program" || return 1
    if LC_ALL=C readelf -lW "dist/$machine/$program" | grep -q INTERP; then
      say "$machine: $program is not static"
      return 1
    fi
    if [ "$machine" = "$(uname -m)" ]; then
      say "dist/$machine/$program: $("dist/$machine/$program" --version), run here"
    else
      say "dist/$machine/$program: static; not run, this is $(uname -m)"
    fi
  done
  echo "$commit" >"dist/$machine/commit"
}

status=0
for machine in "${@:-x86_64 aarch64}"; do
  for one in $machine; do
    missing=$(lacks "$one")
    if [ -n "$missing" ]; then
      say "$one: not built, this machine lacks $missing"
      status=3
    else
      build "$one" || status=1
    fi
  done
done
exit $status

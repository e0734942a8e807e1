#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything `make demo` (run), `make lint` (lint: nothing of ours is built; packages: Debian's alone), `make test` (test)
# and the guest (guest: packages and Debian's kernel; guest-test: also what its tests use) need on Debian 12, each step
# once, in one line each.
# Only the installation of Debian packages asks for root. Running it again does nothing that is already done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
level=${1:-run}

RUN_PACKAGES=(build-essential cmake clang libclang-dev pkg-config git iproute2 iperf3 util-linux
  r-base-core r-cran-ggplot2 r-cran-data.table r-cran-jsonlite r-cran-patchwork r-cran-svglite r-cran-ragg
  r-cran-htmltools r-cran-digest r-cran-withr r-cran-base64enc r-cran-rpact
  apache2-bin media-types openssl curl wget wget2 aria2 axel lftp)
TEST_PACKAGES=(r-cran-testthat r-cran-vdiffr r-cran-lintr r-cran-knitr r-cran-rmarkdown r-cran-roxygen2 pandoc shellcheck
  hostapd wpasupplicant iw libpcap0.8 procps openssh-client openssh-sftp-server libwrap0 ethtool iputils-ping uidmap systemd
  chromium libpq5 libldap-2.5-0 libxml2)
# Daemons that would start when installed: they are run from where they are unpacked. (Debian's apache2-bin starts none.)
RUN_DAEMONS=(nginx:sbin/nginx)
TEST_DAEMONS=(openssh-server:sbin/sshd chrony:sbin/chronyd postgresql-15:lib/postgresql/15/bin/postgres)
# Parts of the Python rooms with a lock of their own: Caddy for all, the others are optional.
RUN_EXTRAS=(web)
TEST_EXTRAS=(postgresql trend rigs)
command -v go >/dev/null || TEST_EXTRAS+=(go)
GUEST_PACKAGES=(qemu-system-x86 busybox-static kmod wireless-regdb)
# netbase: D-ITG asks /etc/protocols for the number of TCP, and says nothing where there is none.
GUEST_TEST_PACKAGES=(nftables tcpdump tshark wireless-tools d-itg netbase netperfmeter ns2)
OLDEST_RUST=1.89
OLDEST_PYTHON=3.11

say() { printf 'setup: %s\n' "$*"; }
fail() { # sentence, what to do
  printf 'setup: %s\n       %s\n' "$1" "$2" >&2
  exit 3
}
at_least() { # wanted, found
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

check_platform() {
  { command -v apt-get && command -v dpkg-query; } >/dev/null ||
    fail "this set-up knows Debian 12 only, and there is no apt-get here" \
      "install by hand what RUN_PACKAGES in scripts/setup.sh lists, and see README.md"
}

apt() { # the log, what to do...; lets another program that holds apt's locks finish, and says so
  local log=$1 wait_s=0 give_up=$((SECONDS + 600))
  shift
  until "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout="$wait_s" "$@" >"$log" 2>&1; do
    grep -qE 'Could not get lock|Unable to (lock|acquire)' "$log" && [ "$SECONDS" -lt "$give_up" ] || return 1
    [ "$wait_s" -gt 0 ] || say "Debian packages: another program holds apt's lock; waiting for it, at most 10 minutes"
    wait_s=60
    sleep 5 # the lock of apt's lists is not waited for
  done
}

install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "Debian packages: all there"
    return
  fi
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "missing Debian packages, and neither root nor sudo: ${missing[*]}" \
        "as root: apt-get install --no-install-recommends ${missing[*]}"
    root=(sudo)
  fi
  say "Debian packages: installing ${missing[*]}"
  local log=.setup/apt.log
  # A list that cannot be refreshed (one unreachable third-party source is enough) may still do: installing decides.
  apt "$log" update || true
  apt "$log" install -y --no-install-recommends "${missing[@]}" || {
    tail -n 5 "$log" >&2
    fail "apt-get could not install: ${missing[*]}" "read $log; then: apt-get install ${missing[*]}"
  }
}

check_rust() {
  command -v cargo >/dev/null ||
    fail "no Rust toolchain (cargo) on PATH" \
      "install Rust $OLDEST_RUST or newer with rustup, see https://rustup.rs; if it is in ~/.cargo/bin: . ~/.cargo/env"
  local found
  found=$(rustc --version | cut -d' ' -f2) || fail "cargo is there, but rustc does not run" "rustup default stable"
  at_least "$OLDEST_RUST" "$found" || fail "Rust $found is too old" "rustup update stable ($OLDEST_RUST or newer)"
}

check_python() {
  command -v python3 >/dev/null || fail "no python3 on PATH" "apt-get install python3 python3-venv"
  local found
  found=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  at_least "$OLDEST_PYTHON" "$found" || fail "Python $found is too old" "use Python $OLDEST_PYTHON or newer as python3"
  python3 -c 'import venv, ensurepip' 2>/dev/null && return
  # Debian keeps this part of Python in a package of its own; another Python brings it along.
  [ "$(command -v python3)" = /usr/bin/python3 ] ||
    fail "$(command -v python3) cannot make virtual environments (no ensurepip)" "use a whole Python, or Debian's /usr/bin/python3"
  RUN_PACKAGES+=(python3-venv)
}

python_environment() {
  local stamp wanted
  stamp=.setup/python.sha256
  wanted=$(cat scripts/requirements.txt ./*/pyproject.toml protocols/contracts/pyproject.toml testbed/*/pyproject.toml |
    { cat; python3 --version; pwd; } | sha256sum)
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    say "Python environment .venv: up to date"
    return
  fi
  say "Python environment .venv: installing the pinned packages of scripts/requirements.txt and the packages of this repository"
  rm -f "$stamp"
  python3 -m venv --clear .venv || fail "python3 -m venv .venv failed" "read the error above; then: make setup"
  .venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r scripts/requirements.txt ||
    fail "pip could not install scripts/requirements.txt" "check that the package index is reached; then: make setup"
  .venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --no-build-isolation \
    -e protocols/contracts -e energy -e meters -e testbed/devices -e testbed/radio -e orchestrator ||
    fail "pip could not install the packages of this repository" "read the error above; then: make setup"
  printf '%s\n' "$wanted" >"$stamp"
}

python_extras() { # what for, which; their stamp goes with the environment
  local stamp=.venv/extras-$1.sha256 wanted extra
  shift
  wanted=$(for extra in "$@"; do cat "scripts/requirements-$extra.txt"; done | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  say "Python environment .venv: installing the extras $*"
  for extra in "$@"; do
    .venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes \
      -r "scripts/requirements-$extra.txt" ||
      fail "pip could not install scripts/requirements-$extra.txt" "check that the package index is reached; then: make test"
  done
  printf '%s\n' "$wanted" >"$stamp"
}

labgrid_environment() { # one of its own: labgrid brings another pyserial
  local stamp=.labgrid/requirements.sha256 wanted
  wanted=$(sha256sum <scripts/requirements-labgrid.txt)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  say "Python environment .labgrid: installing the extra labgrid"
  python3 -m venv --clear .labgrid || fail "python3 -m venv .labgrid failed" "read the error above; then: make test"
  .labgrid/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes \
    -r scripts/requirements-labgrid.txt ||
    fail "pip could not install scripts/requirements-labgrid.txt" "check that the package index is reached; then: make test"
  printf '%s\n' "$wanted" >"$stamp"
}

rust_build() {
  # With the tests' own libraries some of the others have more features: a build without them would be a second one.
  local verb=(build)
  case $level in *test) verb=(test --no-run) ;; esac
  say "Rust: one release build of all programs (BoringSSL inside: about 4 minutes when new)"
  cargo "${verb[@]}" --quiet --release --locked --workspace ||
    fail "cargo ${verb[*]} --release failed" "read the error above; 'cargo ${verb[*]} --release' repeats it"
  [ "${verb[0]}" = build ] || return 0
  # Optimised across crates: QUIC takes 13 % less CPU. The tests bring the program back that they are built with.
  cargo rustc --quiet --release --locked --package netjoule-traffic --bin netjoule-traffic -- -C lto=thin ||
    fail "netjoule-traffic could not be linked" "read the error above; a RUSTFLAGS of your own hides .cargo/config.toml: unset it"
}

r_package() ( # the lock ends with it: tests ask for the package while others set up
  local stamp wanted
  exec 9>.setup/r.lock
  flock 9
  stamp=.setup/r.sha256
  wanted=$(find analysis-r protocols/contracts -type f -not -path '*/tests/*' -not -name '*.pyc' -print0 | sort -z |
    xargs -0 sha256sum | { cat; pwd; } | sha256sum)
  if [ -d .r-library/netjoule ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    say "R package netjoule: up to date"
    touch .r-library/netjoule/DESCRIPTION # as new as files that git wrote again with what they had
    return
  fi
  say "R package netjoule: installing into .r-library"
  rm -f "$stamp"
  mkdir -p .r-library
  R CMD INSTALL --library=.r-library --no-docs --no-test-load analysis-r >.setup/r.log 2>&1 || {
    tail -n 5 .setup/r.log >&2
    fail "R CMD INSTALL analysis-r failed" "read .setup/r.log"
  }
  printf '%s\n' "$wanted" >"$stamp"
)

unpack_daemons() {
  local pair package program folder=.setup/unpacked
  for pair in "$@"; do
    package=${pair%%:*} program=${pair##*:}
    { [ -x "/usr/$program" ] || [ -x "$folder/usr/$program" ]; } && continue
    say "${program##*/}: Debian's package $package, unpacked into $folder (never installed, so that it does not start)"
    mkdir -p "$folder"
    { (cd "$folder" && apt-get -q download "$package") && dpkg -x "$folder/${package}"_*.deb "$folder"; } >.setup/apt.log 2>&1 || {
      tail -n 5 .setup/apt.log >&2
      fail "the package $package could not be unpacked" "read .setup/apt.log; or install it: apt-get install $package"
    }
  done
}

guest_kernel() {
  say "guest: Debian's kernel, unpacked into .setup/guest (70 MB to download when new; never installed)"
  .venv/bin/netjoule guest prepare >/dev/null ||
    fail "the guest's kernel could not be prepared" "read the error above; '.venv/bin/netjoule guest prepare' repeats it"
}

mkdir -p .setup
if [ "$level" = r ]; then # the R package alone, anew where it is not of this source: for its tests
  r_package
  exit
fi
check_platform
check_python
check_rust
case $level in
  run) install_packages "${RUN_PACKAGES[@]}" ;;
  packages | lint | test) install_packages "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" ;;
  guest) install_packages "${RUN_PACKAGES[@]}" "${GUEST_PACKAGES[@]}" ;;
  guest-test) install_packages "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${GUEST_PACKAGES[@]}" "${GUEST_TEST_PACKAGES[@]}" ;;
  *) fail "unknown level '$level'" "use: scripts/setup.sh packages|run|lint|test|guest|guest-test" ;;
esac
[ "$level" = packages ] && exit # all that lint of Rust takes: the rest is set up beside it
unpack_daemons "${RUN_DAEMONS[@]}"
case $level in *test) unpack_daemons "${TEST_DAEMONS[@]}" ;; esac
python_environment
python_extras run "${RUN_EXTRAS[@]}"
case $level in *test) python_extras test "${TEST_EXTRAS[@]}" && labgrid_environment ;; esac
r_package
[ "$level" = lint ] || rust_build
case $level in guest*) guest_kernel ;; esac
say "ready"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All benches in one run; what is printed also goes to docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh run # after the tests' set-up, so that netjoule-traffic is the program that is optimised across crates
cargo rustc --quiet --release --locked --package netjoule-quic --example quiche_loop -- -C lto=thin
cargo build --quiet --release --locked --package netjoule-traffic --example two_alarms
.venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes --upgrade \
  --target .setup/curl-cffi -r scripts/requirements-bench.txt
PYTHONPATH=scripts/bench exec .venv/bin/python -m netjoule_bench --write --fetch-iperf3 "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the running relay against its model; one JSON line per case. Flags go to the example,
# for instance: testbed/link/relay/bench_relay.sh --io packet --seconds 5
set -eu
cd "$(dirname "$0")/../../.."
cargo build --release --quiet -p netjoule-link --bins --example bench_relay
program="${CARGO_TARGET_DIR:-target}/release/examples/bench_relay"
if [ "$(id -u)" = 0 ]; then
    exec "$program" "$@"
fi
exec unshare -Urnm "$program" "$@"

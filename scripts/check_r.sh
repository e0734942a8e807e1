#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# R CMD check of the R package as it is built: help, examples, vignette; errors and warnings fail.
# Its tests are those of analysis-r/tests/run.R and are not run a second time.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
# No look at a server's clock: nothing here needs the network.
export NETJOULE_CONTRACTS="$root/protocols/contracts" _R_CHECK_SYSTEM_CLOCK_=false
if ! { R CMD build "$root/analysis-r" && R CMD check --no-manual --no-tests netjoule_*.tar.gz; } > log 2>&1 ||
  grep -qE '\.\.\. (WARNING|ERROR)|^Status:.*(WARNING|ERROR)' log; then
  cat log
  echo "R CMD check: errors or warnings"
  exit 1
fi
grep '^Status:' log

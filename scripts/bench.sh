#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All benches in one run; what is printed also goes to docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec .venv/bin/python scripts/bench --write "$@"

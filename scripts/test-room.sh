#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of one room, by its folder: `make test ROOM=meters`, ROOM=orchestrator/store (the tests whose file is
# named so), ROOM=protocols/dccp (a crate), ROOM=analysis-r or ROOM=analysis-r/contrasts. Set-up must have run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
room=${1%/}

unknown() {
  printf "test-room: there are no tests of a room '%s'; name a folder, such as meters, orchestrator/store, %s\n" \
    "$room" "protocols/dccp, testbed/radio or analysis-r" >&2
  exit 2
}
crate() { # its tests out of the build of all crates: by itself cargo would build its libraries anew, with fewer features
  local built test
  built=$(cargo test --release --locked --workspace --no-run --message-format json-render-diagnostics)
  cd "$room"
  mapfile -t built < <(grep -F "\"manifest_path\":\"$PWD/Cargo.toml\"" <<<"$built" | grep '"test":true},"features"' |
    sed -nE 's/.*"executable":"([^"]+)".*/\1/p')
  for test in "${built[@]}"; do "$test"; done
  exit
}
python() { exec .venv/bin/python -m pytest --numprocesses 2 --durations 5 "$@"; }

case $room in
  /* | *..*) unknown ;;
  analysis-r) exec Rscript --vanilla analysis-r/tests/run.R ;;
  analysis-r/*)
    compgen -G "analysis-r/tests/testthat/test-*${room#*/}*.R" >/dev/null || unknown
    exec Rscript --vanilla analysis-r/tests/run.R "${room#*/}"
    ;;
esac
[ ! -f "$room/Cargo.toml" ] || crate
[ ! -d "$room/tests" ] || python "$room/tests"
[ ! -d "${room%/*}/tests/${room##*/}" ] || python "${room%/*}/tests/${room##*/}"
files=$(compgen -G "${room%/*}/tests/test_${room##*/}*.py" || true)
[ -n "$files" ] || unknown
# shellcheck disable=SC2086  # one word a file
python $files

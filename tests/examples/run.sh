#!/usr/bin/env bash
# Runs the examples of the documents against the built program with its demo organization, and compares their output with the
# answers that the documents show. Then it restores a backup.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/services/common.sh

command -v node >/dev/null || die "the JavaScript examples need Node (tests/services/install.sh edge)"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/switchboard-examples.XXXXXX")
pids=()
finish() {
  [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait || true
  rm -rf "$WORK"
}
trap finish EXIT

if [ -z "${SWITCHBOARD_BINARY:-}" ]; then
  # The program of the test build: a plain build has other features of dependencies and would compile them again.
  cargo test --locked --workspace --features "${FEATURES:-switchboard/evaluation}" --all-targets --no-run --quiet
  SWITCHBOARD_BINARY=$(cargo metadata --locked --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/switchboard
fi
# The program is copied, because a concurrent build would replace it.
cp "$SWITCHBOARD_BINARY" "$WORK/switchboard"
PORT=$(free_ports 2)
# start_service DATA : starts the program on a data directory
start_service() {
  # Variables of the caller must not reach this service, which would then depend on the machine.
  env -i PATH="$PATH" HOME="$HOME" RUST_LOG=warn SWITCHBOARD__DATA_DIR="$1" \
    SWITCHBOARD__INGRESS__LISTEN="127.0.0.1:$PORT" SWITCHBOARD__OPS__LISTEN="127.0.0.1:$((PORT + 1))" \
    "$WORK/switchboard" >"$WORK/log" 2>&1 & pids+=($!)
  wait_for 60 "${pids[-1]}" "$WORK/log" curl -fsS "http://127.0.0.1:$((PORT + 1))/readyz" || die "the service does not become ready"
}
start_service "$WORK/data"
URL=http://127.0.0.1:$PORT KEY=$(cat "$WORK/data/demo-key")
# The first start prints a command for the demo agent.
AGENT=$(grep -o 'agt_[0-9a-z]*' "$WORK/log" | head -n 1)
export URL KEY AGENT
python3 tests/examples/check.py "$@" 'README.md#Use it' 'docs/api.md#Quick start' ingress/src/assets/docs.html

# deploy/README.md: a copy that is taken while the process is frozen continues as after a kill.
history() { curl -fsS "$URL/api/public/agents/$AGENT/conversations/visit-1" -H "X-API-Key: $KEY"; }
history >"$WORK/before"
kill -STOP "${pids[-1]}"
cp -a "$WORK/data" "$WORK/copy"
kill -KILL "${pids[-1]}"
wait "${pids[-1]}" 2>/dev/null || true
start_service "$WORK/copy"
history | cmp - "$WORK/before" || die "the restored conversation differs"
say "restored a backup"

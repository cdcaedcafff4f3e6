#!/usr/bin/env bash
# Sends valid and invalid requests by the OpenAPI document to a running service and compares every
# response with the document (Schemathesis). The service is the built program with embedded backends
# and its demo model; the agents' replies are a few words long, so that they end soon.
set -euo pipefail
cd "$(dirname "$0")/../.."
ROOT=$PWD
. tests/services/common.sh
# The same cases in every run, so that failures are reproducible.
SEED=20260314
# Ids are derived from it, so that they are the same in every run.
SECRET=c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00
EXAMPLES=${CONTRACT_EXAMPLES:-100}
VENV=$ROOT/target/contract

# An incomplete installation, or one of other versions, has no mark and is replaced.
install() {
  local wanted
  wanted=$(sha256sum <tests/contract/requirements.txt)
  [ "$(cat "$VENV/complete" 2>/dev/null)" = "$wanted" ] && return 0
  tests/services/install.sh contract
  say "fetching Schemathesis (once, into $VENV)"
  rm -rf "$VENV"
  python3 -m venv "$VENV"
  retry 3 "$VENV/bin/pip" install --quiet --disable-pip-version-check -r tests/contract/requirements.txt \
    || die "pip could not fetch Schemathesis"
  printf '%s\n' "$wanted" >"$VENV/complete"
}

target_directory() {
  cargo metadata --locked --no-deps --format-version 1 | "$VENV/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])'
}

WORK=$(mktemp -d "${TMPDIR:-/tmp}/switchboard-contract.XXXXXX")
pids=()
finish() {
  local status=$?
  [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait || true
  if [ $status != 0 ] && [ -f "$WORK/log" ]; then grep -E 'WARN|ERROR|panicked' "$WORK/log" | tail -n 20 >&2 || true; fi
  rm -rf "$WORK"
}
trap finish EXIT

# start_service BINARY FIRST_PORT : the public API on that port, its private port on the next
start_service() {
  local binary=$1 port=$2
  # Variables of the caller must not reach this service, which would then depend on the machine.
  env -i PATH="$PATH" HOME="$HOME" RUST_LOG=warn \
    SWITCHBOARD__DEMO=false SWITCHBOARD__SECRET="$SECRET" SWITCHBOARD__DATA_DIR="$WORK/data" SWITCHBOARD__ADMIN__TOKEN="$TOKEN" \
    SWITCHBOARD__INGRESS__FAILED_AUTHENTICATIONS_PER_MINUTE=0 SWITCHBOARD__INGRESS__UNKNOWN_SESSIONS_PER_MINUTE=0 \
    SWITCHBOARD__INGRESS__LISTEN="127.0.0.1:$port" SWITCHBOARD__OPS__LISTEN="127.0.0.1:$((port + 1))" \
    "$binary" serve >"$WORK/log" 2>&1 & pids+=($!)
  wait_for 60 "${pids[-1]}" "$WORK/log" curl -fsS "http://127.0.0.1:$((port + 1))/readyz" || die "the service does not become ready"
}

# id LIST NAME FIELD : prints a field of a resource in the response to the applied document
id() { "$VENV/bin/python" -c 'import json, sys
items = json.load(open(sys.argv[1]))["organizations"][0][sys.argv[2]]
print(items[0][sys.argv[3]])' "$WORK/applied.json" "$1" "$2"; }

install
# The program of the test build: a plain build has other features of dependencies and would compile them again.
cargo test --locked --workspace --features "${FEATURES:-switchboard/evaluation}" --all-targets --no-run --quiet
BINARY=$(target_directory)/debug/switchboard
TOKEN=$(head -c 24 /dev/urandom | base64 | tr '+/' '-_')
PORT=$(free_ports 2)
# The program is copied, because a concurrent build would replace it.
cp "$BINARY" "$WORK/switchboard"
start_service "$WORK/switchboard" "$PORT"
curl -fsS "http://127.0.0.1:$PORT/api/admin/apply" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
  --data-binary @tests/contract/organization.json >"$WORK/applied.json"
CONTRACT_AGENT=$(id agents id) CONTRACT_TEAM=$(id teams id) CONTRACT_KEY=$(id keys value)
# Creates a conversation to read and a reply to follow.
curl -fsS "http://127.0.0.1:$PORT/api/public/agents/$CONTRACT_AGENT/chat" -H "X-API-Key: $CONTRACT_KEY" \
  -H 'Content-Type: application/json' -d '{"message": "Do you ship?", "sessionId": "contract"}' -D "$WORK/headers" -o "$WORK/reply"
CONTRACT_MESSAGE=$(sed -nE 's/^x-message-id: (msg_[0-9a-z]+).*/\1/p' "$WORK/headers")
export CONTRACT_AGENT CONTRACT_TEAM CONTRACT_KEY CONTRACT_MESSAGE

CONTRACT_CONVERSATION=$(sed -nE 's/^x-conversation-id: (conv_[0-9a-z]+).*/\1/p' "$WORK/headers")
CONTRACT_ORG=$("$VENV/bin/python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["organizations"][0]["id"])' "$WORK/applied.json")
CONTRACT_TOKEN=$TOKEN
export CONTRACT_CONVERSATION CONTRACT_ORG CONTRACT_TOKEN

# check_api NAME CONFIGURATION EXAMPLES [OPTION]... : compares an API with its document
check_api() {
  local name=$1 config=$2 examples=$3
  shift 3
  # Read from a file, because Schemathesis skips the operation that it fetched the document from.
  curl -fsS "http://127.0.0.1:$PORT/api/$name/openapi.json" -o "$WORK/$name.json"
  "$VENV/bin/st" --config-file "tests/contract/$config" --no-color run \
    "$WORK/$name.json" --url "http://127.0.0.1:$PORT" --seed "$SEED" --max-examples "$examples" \
    --report ndjson --report-ndjson-path "$WORK/$name.ndjson" "$@"
  "$VENV/bin/python" tests/contract/figures.py "$WORK/$name.ndjson"
}

check_api public schemathesis.toml "$EXAMPLES" "$@"
check_api admin schemathesis-admin.toml "$((EXAMPLES / 4))" "$@"
! grep -q panicked "$WORK/log" || die "the service panicked"
